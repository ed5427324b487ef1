"""Engines run trigger programs in one process."""
