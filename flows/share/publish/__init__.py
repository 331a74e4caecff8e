"""Gives cubes to others and takes them over: immutable copies whose every byte is accounted for."""
