"""Aggregates in a query's head, and the lifting functions they need.

A sum over a product of functions of single variables is kept by lifting each variable just before
it is summed away (recent_increments_in_ivm, section 2; ivm_lecture, part 1: SUM(C * D)). Sums of
products are kept as several such terms.
"""

from dataclasses import dataclass
from functools import cached_property

from viewkeep.errors import QueryError
from viewkeep.query.expressions import Call, Expression, columns_of, literal

EXTREMES = ("min", "max")

COUNT_DISTINCT = "count_distinct"

ORDERED = (*EXTREMES, COUNT_DISTINCT)
"""Aggregates that need the values of a group, which are kept in order."""

FUNCTIONS = ("sum", "count", "avg", *ORDERED)
"""The aggregates of the notation."""


@dataclass(frozen=True, slots=True)
class Term:
    """A product `constants * lifts`; every lift reads at least one variable."""

    constants: tuple[Expression, ...]
    lifts: tuple[Expression, ...]


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function and its argument; `count()` has none and counts all rows.

    Rows in which the argument is null do not take part, as in SQL.

    >>> from viewkeep.query.expressions import Column
    >>> print(Aggregate("sum", Call("*", (Column("c"), Column("d")))), Aggregate("count"))
    sum(c * d) count()
    """

    function: str
    argument: Expression | None = None

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise QueryError(
                f"unknown aggregate {self.function}(); there are {', '.join(FUNCTIONS)}"
            )
        if self.argument is None and self.function != "count":
            raise QueryError(f"aggregate {self.function}() takes one argument")

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The argument as a sum of products of lifts; one empty product for `count()`.

        What is kept in order does not distribute over sums, so its argument is one lift.
        """
        if self.argument is None:
            return (Term((), ()),)
        if self.function in ORDERED:
            return (Term((), (self.argument,)),)
        return tuple(_product_term(product) for product in _lift_products(self.argument))

    @property
    def lifts(self) -> tuple[Expression, ...]:
        """The parts of the argument that are lifted, each once; it is null if any of them is."""
        return tuple(dict.fromkeys(lift for term in self.terms for lift in term.lifts))

    def __str__(self) -> str:
        return f"{self.function}({'' if self.argument is None else self.argument})"


_MINUS_ONE = literal(-1)


def _lift_products(expression: Expression) -> list[tuple[Expression, ...]]:
    """The expression as a sum of products, distributing * over + and - between variables.

    A part that reads a single variable stays whole: it is one lift however it is written.
    """
    if len(columns_of(expression)) > 1 and isinstance(expression, Call):
        match expression.function, expression.arguments:
            case "+", (left, right):
                return _lift_products(left) + _lift_products(right)
            case "-", (left, right):
                return _lift_products(left) + [(_MINUS_ONE, *p) for p in _lift_products(right)]
            case "negate", (argument,):
                return [(_MINUS_ONE, *p) for p in _lift_products(argument)]
            case "*", (left, right):
                return [(*p, *q) for p in _lift_products(left) for q in _lift_products(right)]
    return [(expression,)]


def _product_term(product: tuple[Expression, ...]) -> Term:
    constants = tuple(factor for factor in product if not columns_of(factor))
    return Term(constants, tuple(factor for factor in product if columns_of(factor)))
