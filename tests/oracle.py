"""Recomputation from scratch by nested loops: the definition of what every engine must return."""

from collections.abc import Iterator, Mapping
from typing import Any

from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.evaluate.compile import compile_condition, compile_expression

Row = tuple[Any, ...]
Database = Mapping[str, Mapping[Row, int]]
"""For each relation its rows with their multiplicities."""

UNREADABLE = "no min, max or number of values: a value was deleted more often than inserted"
"""Stands for an extreme that no multiset of values explains; reading it must be an error."""


def recompute(
    query: ConjunctiveQuery, database: Database, given: Mapping[str, Any] | None = None
) -> dict[Row, Any]:
    """Output tuples with their counts, or with a tuple of the query's aggregates."""
    groups: dict[Row, list[tuple[dict[str, Any], int]]] = {}
    for binding, count in _bindings(query, database, 0, dict(given or {}), 1):
        row = tuple(binding[v] for v in query.outputs)
        groups.setdefault(row, []).append((binding, count))
    counts = {row: sum(n for _, n in members) for row, members in groups.items()}
    if not query.aggregates:
        return {row: count for row, count in counts.items() if count}
    return {
        row: tuple(_aggregate(query, i, members) for i in range(len(query.aggregates)))
        for row, members in groups.items()
        if counts[row] or _is_anything_left(query, members)
    }


def of_nothing(query: ConjunctiveQuery) -> Any:
    """The value of a query without outputs when nothing joins."""
    if not query.aggregates:
        return 0
    return tuple(0 if a.function.startswith("count") else None for a in query.aggregates)


def _bindings(
    query: ConjunctiveQuery, database: Database, position: int, binding: dict[str, Any], count: int
) -> Iterator[tuple[dict[str, Any], int]]:
    if position == len(query.atoms):
        names = tuple(binding)
        if compile_condition(query.conditions, names)(tuple(binding.values())):
            yield dict(binding), count
        return
    atom = query.atoms[position]
    for row, multiplicity in database.get(atom.relation, {}).items():
        extended = dict(binding)
        if multiplicity and all(
            extended.setdefault(v, x) == x for v, x in zip(atom.variables, row, strict=True)
        ):
            yield from _bindings(query, database, position + 1, extended, count * multiplicity)


def _aggregate(
    query: ConjunctiveQuery, position: int, members: list[tuple[dict[str, Any], int]]
) -> Any:
    function, count = query.aggregates[position].function, sum(n for _, n in members)
    net = _net(query, position, members)
    total, present = 0, sum(net.values())
    if function in ("sum", "avg"):
        total = sum(value * n for value, n in net.items())
    match function:
        case "count":
            return count if query.aggregates[position].argument is None else present
        case "sum":
            return total if total or present else None
        case "avg":
            return total / present if present else None
    if any(n < 0 for n in net.values()):
        return UNREADABLE
    if function == "count_distinct":
        return len(net)
    return (min if function == "min" else max)(net, default=None)


def _is_anything_left(query: ConjunctiveQuery, members: list[tuple[dict[str, Any], int]]) -> bool:
    """Where inserts and deletes of other values add up to no rows, a group is still there as
    long as anything about it is not zero."""
    for position, aggregate in enumerate(query.aggregates):
        net = _net(query, position, members)
        summed = aggregate.function in ("sum", "avg")
        if sum(net.values()) or (sum(v * n for v, n in net.items()) if summed else net):
            return True
    return False


def _net(
    query: ConjunctiveQuery, position: int, members: list[tuple[dict[str, Any], int]]
) -> dict[Any, int]:
    """The values of an aggregate's argument with their multiplicities; no zeros."""
    argument = query.aggregates[position].argument
    net: dict[Any, int] = {}
    for binding, n in members if argument is not None else ():
        value = compile_expression(argument, tuple(binding))(tuple(binding.values()))
        if value is not None:  # rows in which the argument is null do not take part
            net[value] = net.get(value, 0) + n
    return {value: n for value, n in net.items() if n}
