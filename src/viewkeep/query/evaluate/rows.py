"""Operators of the algebra on rows in memory, with exactly the rows that Spark SQL gives.

Rows are tuples in the order of a node's columns. What Python would compute otherwise is refused
with `InexactError`, as in `evaluate_exact`. Keys of joins and groups take every NaN for the same
value, and -0.0 for 0.0, as Spark does.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from operator import itemgetter
from typing import Any

from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Project,
    Select,
    SemiJoin,
    Unnest,
    Values,
)
from viewkeep.query.evaluate.exact import (
    InexactError,
    compile_exact,
    compile_exact_condition,
    fit_to_type,
)
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.functions import STRICT
from viewkeep.query.evaluate.order import normal, sort_value
from viewkeep.query.expressions import TRUE, Call, Column, Expression, conjunction, conjuncts
from viewkeep.query.types.data_types import DOUBLE, FLOAT, INTEGRAL, Type
from viewkeep.query.types.inference import Schema, find_field, type_of
from viewkeep.query.types.rules import is_decimal

Rows = list[Row]
Paired = Join | SemiJoin | AntiJoin
Pair = tuple[str, str, bool]
"""Columns of the left and of the right side that are equal, and whether NULL equals NULL."""

COMPILED = 4096
"""How many operators stay compiled: scripts are run again and again."""


def select_rows(node: Select, rows: Iterable[Row]) -> Rows:
    """The rows for which the condition holds."""
    return list(filter(_row_condition(node), rows))


def project_rows(node: Project, rows: Iterable[Row]) -> Rows:
    """The computed columns of every row."""
    return list(map(_row_projection(node), rows))


@lru_cache(maxsize=COMPILED)
def _rows_of_values(node: Values) -> tuple[Row, ...]:
    return tuple(tuple([compile_exact(each, ())(()) for each in row]) for row in node.rows)


def constant_rows(node: Values) -> Rows:
    """The rows that a query holds."""
    return list(_rows_of_values(node))


def unnest(node: Unnest, rows: Iterable[Row]) -> Rows:
    """Every row with each of its elements, numbered from 0."""
    place, width = node.child.names.index(node.column), len(node.elements)
    nulls, result = (None,) * width, []
    for row in rows:
        values = row[place] or ()
        for position, each in enumerate(values):
            result.append((*row, position, *(each if width > 2 else (each,))))
        if node.outer and not values:
            result.append(row + nulls)
    return result


def distinct_rows(node: Distinct, rows: Iterable[Row]) -> Rows:
    """Every row once."""
    return list(dict.fromkeys(map(key_of(node.names, node.schema), rows)))


@lru_cache(maxsize=COMPILED)
def _row_condition(node: Select) -> Callable[[Row], bool]:
    return compile_exact_condition(node.condition, node.schema)


@lru_cache(maxsize=COMPILED)
def _row_projection(node: Project) -> Callable[[Row], Row]:
    expressions = [output.expression for output in node.outputs]
    columns = [each.name for each in expressions if isinstance(each, Column)]
    if len(columns) == len(expressions):
        return _values_at_places([node.child.names.index(each) for each in columns])
    values = [compile_exact(each, node.child.schema) for each in expressions]
    return lambda row: tuple([value(row) for value in values])


# --- joins ----------------------------------------------------------------------------------------


def equal_columns(node: Paired) -> list[Pair]:
    """The parts of a condition that compare a left column with a right one for equality."""
    pairs = (_equal_pair(part, node) for part in conjuncts(node.condition))
    return [pair for pair in pairs if pair is not None]


@lru_cache(maxsize=COMPILED)
def looked_up_columns(node: Paired) -> tuple[Pair, ...]:
    """The equal columns by which rows of a join are looked up."""
    return tuple(_hash_join_keys(node)[0])


def comparable(first: Type, second: Type) -> bool:
    """Whether values of two types are equal in Python when they are in SQL."""
    return first == second or (first in INTEGRAL and second in INTEGRAL)


def meetings(node: Paired, left: Rows, right: Rows) -> Iterator[tuple[Row, Rows]]:
    """Every left row with the right rows that it meets; equal columns are looked up."""
    meeting = _row_join(node)
    index: dict[Row, Rows] = {}
    for row in right:
        key = meeting.right(row)
        if all(key[i] is not None for i in meeting.strict):
            index.setdefault(key, []).append(row)
    holds = meeting.holds
    for row in left:
        near = index.get(meeting.left(row), [])
        yield row, near if holds is None else [each for each in near if holds(row + each)]


@dataclass(frozen=True)
class _RowJoin:
    """How rows of a join meet: by equal keys, of which some must not be NULL, and what else."""

    left: Callable[[Row], Row]
    right: Callable[[Row], Row]
    strict: tuple[int, ...]
    holds: Callable[[Row], bool] | None


@lru_cache(maxsize=COMPILED)
def _row_join(node: Paired) -> _RowJoin:
    pairs, rest = _hash_join_keys(node)
    return _RowJoin(
        key_of([pair[0] for pair in pairs], node.left.schema),
        key_of([pair[1] for pair in pairs], node.right.schema),
        tuple(i for i, (_, _, null_safe) in enumerate(pairs) if not null_safe),
        None
        if rest == TRUE
        else compile_exact_condition(rest, node.left.schema + node.right.schema),
    )


def key_of(columns: Sequence[str], schema: Schema) -> Callable[[Row], Row]:
    """The function from a row to its values of some columns, equal where Spark's are."""
    names = [field.name for field in schema]
    places = [names.index(column) for column in columns]
    if not any(schema[i].type.has_float for i in places):
        return _values_at_places(places)
    return lambda row: tuple([normal(row[i]) for i in places])


def _values_at_places(places: Sequence[int]) -> Callable[[Row], Row]:
    if len(places) > 1:
        return itemgetter(*places)
    if not places:
        return lambda row: ()
    [place] = places
    return lambda row: (row[place],)


def _equal_pair(part: Expression, node: Paired) -> Pair | None:
    left, right = node.left.names, node.right.names
    match part:
        case Call("=" | "<=>" as function, (Column(a), Column(b))):
            if a in left and b in right:
                return a, b, function == "<=>"
            if b in left and a in right:
                return b, a, function == "<=>"
    return None


def _hash_join_keys(node: Paired) -> tuple[list[Pair], Expression]:
    """The equalities that rows are looked up by, and what else must hold."""
    pairs, rest = [], []
    for part in conjuncts(node.condition):
        pair = _equal_pair(part, node)
        if pair is not None and _has_hash_types(node, pair):
            pairs.append(pair)
        else:
            rest.append(part)
    return pairs, conjunction(rest)


def _has_hash_types(node: Paired, pair: Pair) -> bool:
    left = find_field(pair[0], node.left.schema).type
    return comparable(left, find_field(pair[1], node.right.schema).type)


# --- groups ---------------------------------------------------------------------------------------


def aggregate_rows(node: GroupBy, rows: Iterable[Row]) -> Rows:
    """A row per group; one also of no rows where there are no keys."""
    key = key_of(node.keys, node.child.schema)
    groups: dict[Row, Rows] = {} if node.keys else {(): []}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    computed = _row_aggregates(node)
    return [key + tuple([value(members) for value in computed]) for key, members in groups.items()]


@lru_cache(maxsize=COMPILED)
def _row_aggregates(node: GroupBy) -> list[Callable[[Rows], Any]]:
    return [
        aggregate_function(each, node.child.schema, find_field(each.name, node.schema).type)
        for each in node.aggregates
    ]


def aggregate_function(
    aggregate: AggregateColumn, schema: Schema, result: Type
) -> Callable[[Rows], Any]:
    """The aggregate of rows of a schema, as a value of a type."""
    if aggregate.argument is None:
        return len
    argument = compile_exact(aggregate.argument, schema)
    compute = _aggregate_of_values(aggregate, type_of(aggregate.argument, schema).type)
    fit = fit_to_type(result)

    def aggregated(rows: Rows) -> Any:
        values = [value for value in map(argument, rows) if value is not None]
        if aggregate.function == "count":
            return len(values)
        return fit(compute(values)) if values else None

    return aggregated


def _aggregate_of_values(aggregate: AggregateColumn, type_: Type) -> Callable[[list[Any]], Any]:
    """The aggregate of values; doubles are added one by one, as Spark adds them."""
    match aggregate.function:
        case "sum":
            zero = 0.0 if type_ in (DOUBLE, FLOAT) else 0
            return lambda values: reduce(STRICT["+"], values, zero)
        case "avg" if not is_decimal(type_):
            return lambda values: reduce(STRICT["+"], map(float, values), 0.0) / len(values)
        case "min" | "max":
            return _extreme_of_values(min if aggregate.function == "min" else max, type_)
    if aggregate.function == "count":
        return len
    raise InexactError(f"{aggregate.function} of {type_}")


def _extreme_of_values(choose: Callable[..., Any], type_: Type) -> Callable[[list[Any]], Any]:
    if type_.is_nested:
        return partial(choose, key=sort_value)
    check = fit_to_type(type_) if type_ in (DOUBLE, FLOAT) else None
    return choose if check is None else lambda values: choose(list(map(check, values)))
