"""What applying diffs means, row by row (id_based_ivm, section 2): the definition that executors
follow, and the test of whether a diff tells the final state."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from viewkeep.diffs.model import DELETE, UPDATE, DiffSchema
from viewkeep.diffs.script import ORDER

Row = Mapping[str, Any]
DiffRow = Mapping[str, Any]


def apply_diffs(
    rows: Iterable[Row], ids: Sequence[str], diffs: Iterable[tuple[DiffSchema, Sequence[DiffRow]]]
) -> list[Row]:
    """The rows after deletes, then updates, then inserts; an insert replaces the row of its IDs.

    >>> price = DiffSchema(UPDATE, ("pid",), ("price",), ("price",), ("price",))
    >>> view = [{"did": "D1", "pid": "P1", "price": 10}, {"did": "D2", "pid": "P1", "price": 10}]
    >>> changed = apply_diffs(view, ("did", "pid"), [(price, [{"pid": "P1", "price#post": 11}])])
    >>> [row["price"] for row in changed]
    [11, 11]
    """
    current = list(rows)
    for schema, changes in sorted(diffs, key=lambda each: ORDER.index(each[0].kind)):
        for change in changes:
            current = _applied(current, ids, schema, change)
    return current


def _applied(
    rows: Sequence[Row], ids: Sequence[str], schema: DiffSchema, change: DiffRow
) -> list[Row]:
    named = [row for row in rows if all(row[c] == change[c] for c in schema.ids)]
    others = [row for row in rows if not any(row is each for each in named)]
    if schema.kind == DELETE:
        return others
    values = {c: change[schema.value_after(c)] for c in schema.changed}
    if schema.kind == UPDATE:
        return [{**row, **values} if any(row is each for each in named) else row for row in rows]
    return [*others, {c: change[c] for c in ids} | values]


def is_effective(schema: DiffSchema, changes: Iterable[DiffRow], after: Sequence[Row]) -> bool:
    """Whether each change agrees with the rows after all changes.

    >>> gone = DiffSchema(DELETE, ("pid",))
    >>> is_effective(gone, [{"pid": "P1"}], [{"pid": "P2"}])
    True
    >>> is_effective(gone, [{"pid": "P2"}], [{"pid": "P2"}])
    False
    """
    return all(_agrees(schema, change, after) for change in changes)


def _agrees(schema: DiffSchema, change: DiffRow, after: Sequence[Row]) -> bool:
    named = [row for row in after if all(row[c] == change[c] for c in schema.ids)]
    final = all(row[c] == change[schema.value_after(c)] for row in named for c in schema.changed)
    match schema.kind:
        case "insert":
            return len(named) == 1 and final
        case "delete":
            return not named
    return final
