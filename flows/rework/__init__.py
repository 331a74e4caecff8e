"""Make another cube out of a cube, or mend one."""
