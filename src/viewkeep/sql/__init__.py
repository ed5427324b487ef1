"""SQL text to the algebra of `query/`, and from there to conjunctive queries.

The flow: `parse` reads a view (`source`: tokens and positions; `select`: one query block;
`from_clause` and `joins`: its tables; `scalar`: its expressions; `grouping`: its aggregates;
`subquery`: IN and EXISTS; `set_operation`: UNION and its kin). `schema` reads CREATE TABLE.
`conjunctive` takes the algebra on to a conjunctive query, where the view is one.
"""

from viewkeep.query.flatten import NotConjunctive
from viewkeep.sql.conjunctive import from_sql, to_conjunctive
from viewkeep.sql.parse import parse_view
from viewkeep.sql.schema import read_schema

__all__ = ["NotConjunctive", "from_sql", "parse_view", "read_schema", "to_conjunctive"]
