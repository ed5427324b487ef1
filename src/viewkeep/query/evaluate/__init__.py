"""Scalar expressions compiled into Python functions of a row."""
