"""A record of a reply -> one trial's outcome and sizes."""
