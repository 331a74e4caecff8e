"""What other tools call the fields of their logs, and cubes written in their forms."""
