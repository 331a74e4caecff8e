"""Model servers that evalcube starts and stops itself."""
