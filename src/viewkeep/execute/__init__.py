"""Runs delta scripts over tables."""
