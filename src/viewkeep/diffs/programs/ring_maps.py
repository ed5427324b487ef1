"""Maps of a trigger program as relations: one row per key, with a column per measure.

A change of a map is a bag of signed rows with the same columns. Joins and sums are linear, so that
a map after some changes may be read as the bag of its rows and of theirs: nothing has to be merged
before it is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from viewkeep.diffs.passes.identify import ALL
from viewkeep.diffs.programs.factors import Factor
from viewkeep.diffs.programs.grouped_join import GroupedJoin
from viewkeep.diffs.programs.measures import ZERO, Measure
from viewkeep.diffs.rules.build import equal, project, select, union_all
from viewkeep.query.algebra import AggregateColumn, AntiJoin, GroupBy, Node, SemiJoin
from viewkeep.query.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    conjunction,
    literal,
)
from viewkeep.query.flatten import NotConjunctive
from viewkeep.query.show import formula_text
from viewkeep.query.types.data_types import BIGINT, INTEGRAL, Type
from viewkeep.query.types.inference import type_of
from viewkeep.query.types.rules import is_decimal

MOST_DIGITS = 38


@dataclass(frozen=True)
class RingMap:
    """Some scans joined and summed up to some variables; the first measure counts rows."""

    name: str
    prefix: str
    """What its columns start with: parts of one table have the same columns."""
    key: tuple[str, ...]
    scans: frozenset[int]
    measures: tuple[tuple[Measure, Type], ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns of its key; the only row of a map without variables has one all the same."""
        return tuple(map(self.column, self.key)) or (ALL,)

    @property
    def sums(self) -> tuple[str, ...]:
        """The columns of its measures."""
        return tuple(f"{self.prefix}#{number}" for number in range(len(self.measures)))

    @property
    def rows_column(self) -> Expression:
        """How many joined rows a row stands for."""
        return Column(self.sums[0])

    def column(self, variable: str) -> str:
        """The column of a variable."""
        return f"{self.prefix}.{variable}"

    def factor(self, rows: Node) -> Factor:
        """Rows with the columns of the map, to be joined."""
        variables = {v: Column(self.column(v)) for v in self.key}
        pairs = zip(self.measures, self.sums, strict=True)
        return Factor(
            rows, self.scans, variables, {m: Column(name) for (m, _), name in pairs}, self.key
        )

    def rows(self, factor: Factor) -> Node:
        """The rows of a factor with the columns of the map, not summed up yet."""
        columns: dict[str, Expression] = {self.column(v): factor.variables[v] for v in self.key}
        if not self.key:
            columns[ALL] = ZERO
        for (measure, kind), name in zip(self.measures, self.sums, strict=True):
            columns[name] = _measure_cast(factor.measures[measure], kind, factor.rows)
        return project(factor.rows, columns)

    def summed(self, bags: Sequence[Node]) -> Node:
        """Bags of rows with the columns of the map, summed up to one row per key."""
        sums = tuple(AggregateColumn(name, "sum", Column(name)) for name in self.sums)
        group = GroupBy(union_all(bags), self.ids, sums)
        columns: dict[str, Expression] = {name: Column(name) for name in self.ids}
        for (_, kind), name in zip(self.measures, self.sums, strict=True):
            columns[name] = _measure_cast(Column(name), kind, group)
        return project(group, columns)

    def negated(self, rows: Node) -> Node:
        """The rows as they are taken away."""
        columns: dict[str, Expression] = {name: Column(name) for name in self.ids}
        for (_, kind), name in zip(self.measures, self.sums, strict=True):
            columns[name] = Cast(Call("negate", (Column(name),)), kind)
        return project(rows, columns)

    def changing(self, rows: Node) -> Node:
        """The rows that are not zero in all measures."""
        parts: list[Expression] = [Call("<>", (Column(name), literal(0))) for name in self.sums]
        return select(rows, reduce(lambda a, b: Call("or", (a, b)), parts))


def ring_map(
    join: GroupedJoin,
    name: str,
    prefix: str,
    key: Sequence[str],
    scans: frozenset[int],
    measures: Sequence[Measure],
) -> RingMap:
    """A map with the types of its measures: integers are `bigint`, decimals as wide as can be."""
    typed = tuple((each, _measure_type(join, each)) for each in measures)
    return RingMap(name, prefix, tuple(key), scans, typed)


def rows_with_keys(rows: Node, keys: Node, columns: Sequence[tuple[str, str]]) -> SemiJoin:
    """The rows with the values of some keys."""
    names = {other: f"{other}#key" for _, other in columns}
    key_rows = project(keys, {new: Column(old) for old, new in names.items()})
    schema = rows.schema + key_rows.schema
    pairs = [equal(own, names[other], schema) for own, other in columns]
    return SemiJoin(rows, key_rows, conjunction(pairs))


def not_matching(rows: Node, keys: Node, columns: Sequence[tuple[str, str]]) -> AntiJoin:
    """The rows without the values of any key."""
    semijoin = rows_with_keys(rows, keys, columns)
    return AntiJoin(semijoin.left, semijoin.right, semijoin.condition)


def _measure_type(join: GroupedJoin, measure: Measure) -> Type:
    kinds = [type_of(factor, join.schema).type for _, factor in measure.factors]
    for kind, (_, factor) in zip(kinds, measure.factors, strict=True):
        if kind not in INTEGRAL and not is_decimal(kind):
            raise NotConjunctive(f"{formula_text(factor)}, of {kind}, in a sum")
    if not any(map(is_decimal, kinds)):
        return BIGINT
    return Type("decimal", MOST_DIGITS, sum(kind.scale or 0 for kind in kinds))


def _measure_cast(value: Expression, kind: Type, rows: Node) -> Expression:
    return value if type_of(value, rows.schema).type == kind else Cast(value, kind)
