"""Factors of a view tree: relations with variables and measures, joined and summed up."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from viewkeep.diffs.passes.identify import ROWS
from viewkeep.diffs.programs.grouped_join import GroupedJoin
from viewkeep.diffs.programs.measures import COUNT, ONE, SUM, Measure, product
from viewkeep.diffs.rules.build import project, select
from viewkeep.query.algebra import AggregateColumn, GroupBy, Join, Node
from viewkeep.query.expressions import Call, Cast, Column, Expression, conjunction, literal
from viewkeep.query.types.inference import type_of


@dataclass(frozen=True)
class Factor:
    """Rows over some scans: `variables` and `measures` are expressions over their columns, and
    `free` the variables that are not summed away. A measure of ONE counts each row once."""

    rows: Node
    scans: frozenset[int]
    variables: Mapping[str, Expression]
    measures: Mapping[Measure, Expression]
    free: tuple[str, ...]
    key: frozenset[str] | None = None
    """For a single scan, the variables of its table's key."""

    def summed_to(self, variables: Iterable[str]) -> "Factor":
        """The factor with these free variables."""
        return replace(self, free=tuple(v for v in variables if v in self.variables))


def scan_factor(join: GroupedJoin, scan: int, measures: Iterable[Measure]) -> Factor:
    """A scan under its own conditions, with its factors of all measures."""
    rows = select(join.scans[scan], conjunction(join.conditions[scan]))
    own: dict[Measure, Expression] = {}
    for measure in within(measures, frozenset({scan})):
        own[measure] = measure.factors[0][1] if measure.factors else ONE
    variables = join.variables[scan]
    key = join.key_variables(scan)
    return Factor(rows, frozenset({scan}), variables, own, tuple(variables), key)


def within(measures: Iterable[Measure], scans: frozenset[int]) -> list[Measure]:
    """What is left of measures for some scans, each once; rows are always counted."""
    own = [measure.within(scans) for measure in (COUNT, *measures)]
    return list(dict.fromkeys(each for each in own if each is not None))


def as_rows(factor: Factor, name: str) -> Factor:
    """The factor with its variables and measures as columns, row by row."""
    columns, variables = _key_columns(factor, name)
    measures: dict[Measure, Expression] = {}
    for number, (measure, value) in enumerate(factor.measures.items()):
        if value == ONE:
            measures[measure] = ONE
        else:
            columns[f"{name}#{number}"] = value
            measures[measure] = Column(f"{name}#{number}")
    return replace(
        factor, rows=project(factor.rows, columns), variables=variables, measures=measures
    )


def as_map(factor: Factor, name: str, own_names: bool = False) -> Factor:
    """The factor summed down to its free variables: a group-by that is cached. With `own_names` its
    keys are called after variables, whatever columns they come from."""
    columns, variables = _key_columns(factor, name, own_names)
    keys = tuple(columns)
    aggregates: list[AggregateColumn] = []
    outputs: dict[str, Expression] = {key: Column(key) for key in keys}
    measures: dict[Measure, Expression] = {}
    for number, (measure, value) in enumerate(factor.measures.items()):
        own = ROWS if measure == COUNT else f"#{number}"
        if value == ONE:
            aggregates.append(AggregateColumn(own, "count"))
        else:
            columns[f"{name}#{number}"] = value
            argument = Column(f"{name}#{number}")
            aggregates.append(AggregateColumn(own, measure.function, argument))
        outputs[f"{name}#{number}"] = Column(own)
        measures[measure] = Column(f"{name}#{number}")
    rows = project(factor.rows, columns) if columns else factor.rows
    group = GroupBy(rows, keys, tuple(aggregates))
    return Factor(project(group, outputs), factor.scans, variables, measures, factor.free)


def _key_columns(
    factor: Factor, name: str, own_names: bool = False
) -> tuple[dict[str, Expression], dict[str, Expression]]:
    """The columns of the free variables, and the variables over them."""
    columns: dict[str, Expression] = {}
    variables: dict[str, Expression] = {}
    for variable in factor.free:
        value = factor.variables[variable]
        is_plain = isinstance(value, Column) and not own_names
        column = value.name if isinstance(value, Column) and is_plain else f"{name}#{variable}"
        columns[column] = value
        variables[variable] = Column(column)
    return columns, variables


def join_factors(factors: Sequence[Factor], measures: Iterable[Measure]) -> Factor:
    """Factors joined on their common variables, from left to right."""
    all_measures = tuple(measures)
    return reduce(lambda left, right: _joined_factors(left, right, all_measures), factors)


def _joined_factors(left: Factor, right: Factor, measures: Iterable[Measure]) -> Factor:
    common = [v for v in left.variables if v in right.variables]
    pairs = [Call("=", (left.variables[v], right.variables[v])) for v in common]
    rows = Join(left.rows, right.rows, conjunction(pairs))
    scans = left.scans | right.scans
    values = {m: _joined_measure(m, left, right, rows) for m in within(measures, scans)}
    variables = {**right.variables, **left.variables}
    return Factor(rows, scans, variables, values, tuple(variables))


def _joined_measure(measure: Measure, left: Factor, right: Factor, rows: Node) -> Expression:
    """A measure of pairs: the product of what each side has of it, or the extreme of one side."""
    sides = [(side, measure.within(side.scans)) for side in (left, right)]
    values = [side.measures[own] for side, own in sides if own is not None]
    values = [value for value in values if value != ONE]
    if not values:
        return ONE
    return reduce(lambda a, b: product(a, b, rows.schema), values)


def only_if_rows(factor: Factor) -> Factor:
    """A map without keys, whose one row is dropped where it counts no rows; its sums are never NULL
    then."""
    some = Call(">", (factor.measures[COUNT], literal(0)))
    schema = factor.rows.schema

    def never_null(measure: Measure, value: Expression) -> Expression:
        if measure.function != SUM:
            return value
        return Call("coalesce", (value, Cast(literal(0), type_of(value, schema).type)))

    measures = {measure: never_null(measure, value) for measure, value in factor.measures.items()}
    return replace(factor, rows=select(factor.rows, some), measures=measures)
