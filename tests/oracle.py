"""Recomputation from scratch by nested loops: the definition of what every engine must return."""

from collections.abc import Iterator, Mapping
from typing import Any

from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.evaluate import compile_condition, compile_expression

Row = tuple[Any, ...]
Database = Mapping[str, Mapping[Row, int]]
"""For each relation its rows with their multiplicities."""


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
    results = {row: _aggregates(query, members) for row, members in groups.items()}
    # A group is there as long as anything about it is not zero, as in the product ring.
    return {row: result for row, result in results.items() if counts[row] or any(result)}


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


def _aggregates(
    query: ConjunctiveQuery, members: list[tuple[dict[str, Any], int]]
) -> tuple[Any, ...]:
    count = sum(n for _, n in members)
    found: list[Any] = []
    for aggregate in query.aggregates:
        if aggregate.argument is None:
            found.append(count)
            continue
        values = [
            (compile_expression(aggregate.argument, tuple(b))(tuple(b.values())), n)
            for b, n in members
        ]
        total = sum(value * n for value, n in values) if aggregate.function in ("sum", "avg") else 0
        present = _net(values)
        match aggregate.function:
            case "sum":
                found.append(total)
            case "avg":
                found.append(total / count if count else None)
            case "min":
                found.append(min(present, default=None))
            case _:
                found.append(max(present, default=None))
    return tuple(found)


def _net(values: list[tuple[Any, int]]) -> list[Any]:
    net: dict[Any, int] = {}
    for value, n in values:
        net[value] = net.get(value, 0) + n
    return [value for value, n in net.items() if n]
