"""A cube's space in a directory, local or on NFS: each object is a file under its key.

What others may see of a file is never half of it: it is written under a name of its own, put on disk, and renamed.
Names that begin with a dot or end in ``.partial`` are such files on their way, and no objects.

========  ========================================================================
objects   files under keys, put on a condition, listed, made durable
creation  a directory that appears whole, or not at all
records   a file that grows by lines, and one that is renewed by its time and taken under a lock
========  ========================================================================
"""

from evalcube.storage.cube.directory.objects import Directory

__all__ = ["Directory"]
