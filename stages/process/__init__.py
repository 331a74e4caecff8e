"""Read and grade a reply: one trial's status, sizes and layer scores."""
