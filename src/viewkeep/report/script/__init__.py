"""The delta script of an SQL view as text and as a picture."""
