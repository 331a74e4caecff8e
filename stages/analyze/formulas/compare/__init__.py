"""Comparisons of several models: clusters, win rates, ratings, paired differences and ranks."""
