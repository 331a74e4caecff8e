"""The formulas applied to labelled datasets of a cube."""
