"""Brings views to the newest versions of what they read."""
