"""GROUP BY with all that belongs to it: aggregates, HAVING, grouping sets."""
