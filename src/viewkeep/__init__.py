"""Viewkeep keeps the results of queries fresh while the data under them changes."""
