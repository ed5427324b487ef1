"""The query notation: from text to conjunctive queries."""
