"""Rules of unnested arrays and maps: a row's elements are named by its IDs and their position."""

from collections.abc import Sequence
from dataclasses import replace

from viewkeep.diffs.model import INSERT, UPDATE
from viewkeep.diffs.rules.common import (
    Change,
    Operator,
    as_insert,
    insert_rows,
    pass_on,
    recompute,
)
from viewkeep.query.algebra import Unnest


def unnest_rules(operator: Operator, inputs: Sequence[Sequence[Change]]) -> None:
    """Changes of other columns name all elements of their rows; elements are compared."""
    node = operator.node
    assert isinstance(node, Unnest)
    [changes] = inputs
    for change in changes:
        schema = change.schema
        if schema.kind == INSERT:
            rows = replace(node, child=insert_rows(change, node.child.names))
            inserted = as_insert(rows, operator.ids, operator.attributes)
            operator.emit("unnest +", *inserted, change.sources, change.exact)
        elif schema.kind == UPDATE and node.column in schema.changed:
            recompute(operator, "unnest u", change.leaf, schema.ids, change.sources)
        else:
            pass_on(operator, change, f"unnest {schema.kind}")
