"""The ring of a map as columns: sums of products, one factor per scan, and extremes.

    sum(r.a * s.b)  over  V(y) = r(y) * s(y)    is    sum(r.a) of r(y)  *  sum(s.b) of s(y)

A measure of some scans is the product of what its factors are for them; without a factor it counts
rows (ivm_lecture, part 1: lifting functions). NULL counts for nothing in a sum, and a count of
values beside it tells whether there was any.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from viewkeep.diffs.optimize.cannot_fail import cannot_fail
from viewkeep.diffs.programs.grouped_join import GroupedJoin
from viewkeep.diffs.rules.group import AVERAGED, average
from viewkeep.query.algebra import AggregateColumn
from viewkeep.query.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    columns_of,
    literal,
    substitute,
)
from viewkeep.query.flatten import NotConjunctive
from viewkeep.query.show import formula_text
from viewkeep.query.types.data_types import BIGINT, DOUBLE, FLOAT, INTEGRAL, VOID, Type
from viewkeep.query.types.inference import Schema, find_field, type_of
from viewkeep.query.types.rules import is_decimal

SUM, MIN, MAX = "sum", "min", "max"
ONE, ZERO = Cast(literal(1), BIGINT), Cast(literal(0), BIGINT)
MINUS_ONE = literal(-1)

Value = Callable[["Measure"], Expression]
"""The column of a measure of all scans."""


@dataclass(frozen=True)
class Measure:
    """A sum of products, or the extreme of one factor; factors are pairs of scan and expression."""

    function: str
    factors: tuple[tuple[int, Expression], ...] = ()

    def within(self, scans: frozenset[int]) -> "Measure | None":
        """What is left of it for some scans; None for an extreme of others."""
        own = tuple((scan, factor) for scan, factor in self.factors if scan in scans)
        return None if self.function != SUM and not own else Measure(self.function, own)


COUNT = Measure(SUM)
"""The number of rows."""


@dataclass(frozen=True)
class Term:
    """A product of constants and of one factor for each of some scans."""

    constants: tuple[Expression, ...]
    factors: Mapping[int, Expression]


@dataclass(frozen=True)
class AggregateReading:
    """How an aggregate is read from measures."""

    aggregate: AggregateColumn
    terms: tuple[tuple[tuple[Expression, ...], Measure], ...]
    present: Measure
    """The number of rows in which the argument is not NULL."""

    @property
    def measures(self) -> Iterator[Measure]:
        """The measures that it is computed from."""
        yield from (measure for _, measure in self.terms)
        yield self.present


def aggregate_reading(join: GroupedJoin, aggregate: AggregateColumn) -> AggregateReading:
    """The measures of an aggregate, or NotConjunctive if it does not fall into factors."""
    argument = aggregate.argument
    if aggregate.others or aggregate.function not in ("count", SUM, "avg", MIN, MAX):
        raise NotConjunctive(f"the aggregate {aggregate.function}()")
    if argument is None:
        return AggregateReading(aggregate, (), COUNT)
    if aggregate.function in (MIN, MAX):
        factor = _only_scan(join, argument), _safe_factor(join, argument)
        return AggregateReading(aggregate, (((), Measure(aggregate.function, (factor,))),), COUNT)
    products = [_term_of_product(join, product) for product in _measure_products(join, argument)]
    present = Measure(SUM, tuple(_presence_of_factors(join, products)))
    if aggregate.function == "count":
        return AggregateReading(aggregate, (), present)
    _check_exact_sum(join, aggregate)
    terms = tuple((each.constants, _measure_of_term(join, each, products)) for each in products)
    return AggregateReading(aggregate, terms, present)


def _only_scan(join: GroupedJoin, argument: Expression) -> int:
    scans = join.scans_of(argument)
    if len(scans) != 1:
        raise NotConjunctive(f"{formula_text(argument)} in an aggregate, which is not of one table")
    return min(scans)


def _check_exact_sum(join: GroupedJoin, aggregate: AggregateColumn) -> None:
    assert aggregate.argument is not None
    kind = type_of(aggregate.argument, join.schema).type
    if aggregate.function == "avg" and (kind.precision or 0) > AVERAGED:
        raise NotConjunctive(f"avg({formula_text(aggregate.argument)}), of {kind}: too many digits")
    if kind in (FLOAT, DOUBLE):
        raise NotConjunctive(
            f"{aggregate.function}({formula_text(aggregate.argument)}), a sum of floats: it "
            "depends on the order in which parts are rounded"
        )


# --- terms ----------------------------------------------------------------------------------------


def _measure_products(join: GroupedJoin, expression: Expression) -> list[tuple[Expression, ...]]:
    """An expression as a sum of products; what reads one scan stays whole. A value under a
    condition, or else 0, is the product with 1 or 0."""
    if len(join.scans_of(expression)) > 1 and isinstance(expression, Call):
        match expression.function, expression.arguments:
            case "+", (left, right):
                return _measure_products(join, left) + _measure_products(join, right)
            case "-", (left, right):
                return _measure_products(join, left) + [
                    (MINUS_ONE, *p) for p in _measure_products(join, right)
                ]
            case "negate", (argument,):
                return [(MINUS_ONE, *p) for p in _measure_products(join, argument)]
            case "*", (left, right):
                return [
                    (*p, *q)
                    for p in _measure_products(join, left)
                    for q in _measure_products(join, right)
                ]
            case "case", (condition, value, Literal(value=0)) if not _nullable_factors(
                join, [value]
            ):
                indicator = Call("case", (condition, ONE, ZERO))
                return [(indicator, *p) for p in _measure_products(join, value)]
    return [(expression,)]


def _term_of_product(join: GroupedJoin, product: Sequence[Expression]) -> Term:
    factors: dict[int, Expression] = {}
    for factor in product:
        if columns_of(factor):
            scan = _only_scan(join, factor)
            factors[scan] = Call("*", (factors[scan], factor)) if scan in factors else factor
    safe_factors = {scan: _safe_factor(join, factor) for scan, factor in factors.items()}
    return Term(tuple(f for f in product if not columns_of(f)), safe_factors)


def _safe_factor(join: GroupedJoin, factor: Expression) -> Expression:
    """A factor that has a value for rows that meet no others; integers are computed as bigint, so
    that only numbers beyond that type, and decimals beyond 38 digits, are too large."""

    def wide(column: Column) -> Expression:
        kind = find_field(column.name, join.schema).type
        return Cast(column, BIGINT) if kind in INTEGRAL and kind != BIGINT else column

    if len(join.scans) == 1 or cannot_fail(factor, join.schema):
        return factor
    if not _is_arithmetic(factor, join.schema):
        raise NotConjunctive(f"{formula_text(factor)}, which may fail for rows that meet no others")
    return substitute(factor, wide)


def _is_arithmetic(factor: Expression, schema: Schema) -> bool:
    """Whether nothing but a number that is too large can make an expression fail."""
    if isinstance(factor, Call) and factor.function in ("+", "-", "*", "negate", "case"):
        return all(_is_arithmetic(part, schema) for part in factor.arguments)
    return cannot_fail(factor, schema)


def _presence_of_factors(
    join: GroupedJoin, terms: Iterable[Term]
) -> Iterator[tuple[int, Expression]]:
    """For each scan whether all its factors have values, where they may be NULL."""
    for scan in range(len(join.scans)):
        factors = _nullable_factors(join, (t.factors[scan] for t in terms if scan in t.factors))
        if factors:
            yield scan, Call("case", (_any_factor_null(factors), ZERO, ONE))


def _measure_of_term(join: GroupedJoin, term: Term, terms: Sequence[Term]) -> Measure:
    """A term as a measure: 0 where a factor of any term is NULL."""
    factors: list[tuple[int, Expression]] = []
    for scan in range(len(join.scans)):
        own = term.factors.get(scan)
        nullable = _nullable_factors(join, (t.factors[scan] for t in terms if scan in t.factors))
        if own is None and nullable:
            factors.append((scan, Call("case", (_any_factor_null(nullable), ZERO, ONE))))
        elif own is not None:
            factors.append((scan, _factor_or_zero(join, own, nullable)))
    return Measure(SUM, tuple(factors))


def _factor_or_zero(
    join: GroupedJoin, own: Expression, nullable: Sequence[Expression]
) -> Expression:
    """A factor, or 0 where one of some expressions is NULL."""
    nothing = Cast(literal(0), type_of(own, join.schema).type)
    others = [each for each in nullable if each != own]
    value = Call("coalesce", (own, nothing)) if own in nullable else own
    return Call("case", (_any_factor_null(others), nothing, value)) if others else value


def _nullable_factors(join: GroupedJoin, factors: Iterable[Expression]) -> list[Expression]:
    return [f for f in dict.fromkeys(factors) if type_of(f, join.schema).nullable]


def _any_factor_null(factors: Sequence[Expression]) -> Expression:
    nulls: list[Expression] = [Call("isnull", (factor,)) for factor in factors]
    return reduce(lambda a, b: Call("or", (a, b)), nulls)


# --- from measures to aggregates ------------------------------------------------------------------


def result(read: AggregateReading, kind: Type, sum_kind: Type, value: Value) -> Expression:
    """The value of an aggregate of type `kind`, whose sum is of type `sum_kind`."""
    count = value(read.present)
    if read.aggregate.function == "count":
        return Cast(count, kind)
    some = Call(">", (count, literal(0)))
    total = reduce(
        lambda a, b: Call("+", (a, b)), (_scaled_value(c, value(m)) for c, m in read.terms)
    )
    if read.aggregate.function == "avg":
        total = average(Cast(total, sum_kind), sum_kind, count)
    return Call("case", (some, Cast(total, kind), Cast(Literal(None, VOID), kind)))


def _scaled_value(constants: Sequence[Expression], value: Expression) -> Expression:
    return reduce(lambda a, b: Call("*", (a, b)), (value, *constants))


def product(first: Expression, second: Expression, schema: Schema) -> Expression:
    """The product of two measures; refused where Spark's rules would cut digits off."""
    multiplied = Call("*", (first, second))
    kind = type_of(multiplied, schema).type
    scale = sum(type_of(each, schema).type.scale or 0 for each in (first, second))
    if is_decimal(kind) and (kind.scale or 0) < scale:
        raise NotConjunctive(f"a product of decimals with {scale} digits behind the point")
    return multiplied
