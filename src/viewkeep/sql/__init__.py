"""SQL text to the algebra of `query/`, and from there to conjunctive queries.

The flow: `parse` reads a view (`source`: tokens and positions; `blocks/`: a query block clause by
clause, from `select` to `from_clause`, and `set_operation`: UNION and its kin; `expressions/`: its
expressions and subqueries; `groups/`: its groups and aggregates). `schema` reads CREATE TABLE.
`conjunctive` takes the algebra on to a conjunctive query, where the view is one; `text` and its
neighbours write algebra as SQL.
"""

from viewkeep.query.flatten import NotConjunctive
from viewkeep.sql.conjunctive import OutputForm, from_sql, output_form, to_conjunctive
from viewkeep.sql.parse import parse_view
from viewkeep.sql.schema import read_schema

__all__ = [
    "NotConjunctive",
    "OutputForm",
    "from_sql",
    "output_form",
    "parse_view",
    "read_schema",
    "to_conjunctive",
]
