"""Strategies for conjunctive views as delta scripts: what their maps hold becomes group-bys that
are kept as caches, and a trigger becomes the rules of joins and group-bys over a whole batch."""
