"""Levels of values by their degree (triangle_ivm_epsilon, section 4), as relations and expressions.

    base      M, with floor(M / 4) <= size < M, where size is the number of tuples of all maps
    level     how many thresholds M^t a value is above: it comes above one when its degree reaches
              3/2 M^t, and falls below it when its degree is less than 1/2 M^t
    anew      the size has left its bounds: M becomes 2 size + 1, and M^t alone decides

Powers are compared as `degree^q` with `M^p` for t = p / q: products of doubles are the same in
every engine, roots need not be.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from viewkeep.diffs.passes.identify import ALL
from viewkeep.diffs.programs.measures import ONE, ZERO
from viewkeep.diffs.rules.build import project, union_all
from viewkeep.plan.program import Split
from viewkeep.query.algebra import AggregateColumn, GroupBy, Join, Node, Values
from viewkeep.query.expressions import Call, Cast, Column, Expression, literal
from viewkeep.query.types.data_types import BIGINT, DOUBLE

BALANCE = "cache_balance"
BASE, SIZE, MOVES, REBUILDS, ANEW = "#base", "#size", "#moves", "#rebuilds", "#anew"
BALANCE_COLUMNS = (BASE, SIZE, MOVES, REBUILDS)
UP, DOWN, EVEN = Fraction(3, 2), Fraction(1, 2), Fraction(1)


@dataclass(frozen=True)
class Levels:
    """The degrees and the level of each value of a split, with a degree for each of its atoms."""

    name: str
    split: Split

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns of the values."""
        return tuple(map(self.column, self.split.variables))

    @property
    def level(self) -> str:
        """The column of the level."""
        return f"{self.name}#level"

    @property
    def new_level(self) -> str:
        """The column of the level after a change."""
        return f"{self.name}#new"

    @property
    def degrees(self) -> tuple[str, ...]:
        """The columns of the degrees, atom by atom."""
        return tuple(f"{self.name}#degree{atom}" for atom in self.split.atoms)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are kept."""
        return (*self.ids, self.level, *self.degrees)

    def column(self, variable: str) -> str:
        """The column of a variable."""
        return f"{self.name}.{variable}"

    def changes(self, tuples: Node, atom: int, values: Mapping[str, str], by: Expression) -> Node:
        """What tuples of an atom add to the degrees of their values."""
        columns: dict[str, Expression] = {
            self.column(v): Column(values[v]) for v in self.split.variables
        }
        columns[self.level] = ZERO
        for each, name in zip(self.split.atoms, self.degrees, strict=True):
            columns[name] = by if each == atom else ZERO
        return project(tuples, columns)

    def summed(self, bags: Sequence[Node]) -> Node:
        """Levels and degrees by value."""
        return summed_counts(bags, self.ids, (self.level, *self.degrees))

    def with_new_level(self, rows: Node, balance: Node) -> Node:
        """Values with the level that their degrees and the one row of `balance` make due."""
        names = [*self.columns, ANEW]
        columns: dict[str, Expression] = {name: Column(name) for name in names}
        return project(Join(rows, balance), columns | {self.new_level: self._due_expression()})

    def without_any(self) -> Expression:
        """Whether a value has no tuple left."""
        return Call("=", (self._degree_expression(), literal(0)))

    def _degree_expression(self) -> Expression:
        columns = tuple(map(Column, self.degrees))
        return Call("greatest", columns) if columns[1:] else columns[0]

    def _due_expression(self) -> Expression:
        above = [self._is_above(i, t) for i, t in enumerate(self.split.thresholds)]
        return reduce(lambda a, b: Call("+", (a, b)), above)

    def _is_above(self, number: int, threshold: float) -> Expression:
        exponent = Fraction(threshold).limit_denominator(1000)

        def reaches(share: Fraction) -> Expression:
            return _case_expression(
                _degree_at_least(self._degree_expression(), share, exponent), ONE, ZERO
            )

        slack = _case_expression(
            Call(">", (Column(self.level), literal(number))), reaches(DOWN), reaches(UP)
        )
        return _case_expression(Call(">", (Column(ANEW), literal(0))), reaches(EVEN), slack)


def _degree_at_least(degree: Expression, share: Fraction, exponent: Fraction) -> Expression:
    """Whether a degree is at least `share * M^exponent`."""
    root, power = exponent.denominator, exponent.numerator
    left = _product_expression([_number_literal(share.denominator), _double_literal(degree)] * root)
    right = _product_expression(
        [_number_literal(share.numerator)] * root + [_double_literal(Column(BASE))] * power
    )
    return Call(">=", (left, right))


def _product_expression(factors: Iterable[Expression]) -> Expression:
    return reduce(lambda a, b: Call("*", (a, b)), factors)


def _number_literal(value: int) -> Expression:
    return _double_literal(literal(value))


def _double_literal(value: Expression) -> Expression:
    return Cast(value, DOUBLE)


def _case_expression(condition: Expression, value: Expression, otherwise: Expression) -> Expression:
    return Call("case", (condition, value, otherwise))


# --- the balance ----------------------------------------------------------------------------------


def balance_of(tuples: Iterable[Node]) -> Node:
    """The balance of relations that were just partitioned: one row."""
    sizes = [size_change(each, ONE) for each in tuples]
    zero = tuple(Cast(literal(0), BIGINT) for _ in (ALL, *BALANCE_COLUMNS))
    group = balance_sum([Values((ALL, *BALANCE_COLUMNS), (zero,)), *sizes])
    return project(group, {**_balance_columns(), BASE: _new_base()})


def size_change(tuples: Node, by: Expression) -> Node:
    """What tuples add to the size."""
    columns: dict[str, Expression] = {ALL: ZERO, **dict.fromkeys(BALANCE_COLUMNS, ZERO)}
    return project(tuples, {**columns, SIZE: by})


def count_moves(values: Node) -> Node:
    """What values that change their level add to the balance."""
    columns: dict[str, Expression] = {ALL: ZERO, **dict.fromkeys(BALANCE_COLUMNS, ZERO)}
    return project(values, {**columns, MOVES: ONE})


def balance_sum(bags: Sequence[Node]) -> Node:
    """The balance and what is added to it, as one row."""
    return summed_counts(bags, (ALL,), BALANCE_COLUMNS)


def checked_balance(balance: Node) -> Node:
    """The balance with a base that fits the size, and whether that is another one."""
    base, size = Column(BASE), Column(SIZE)
    most = Call("+", (Call("*", (Cast(literal(4), BIGINT), size)), Cast(literal(3), BIGINT)))
    outside = Call("or", (Call(">=", (size, base)), Call(">", (base, most))))
    anew = _case_expression(outside, ONE, ZERO)
    columns = {**_balance_columns(), BASE: _case_expression(outside, _new_base(), base)}
    columns[REBUILDS] = Call("+", (Column(REBUILDS), anew))
    return project(balance, {**columns, ANEW: anew})


def _new_base() -> Expression:
    return Call("+", (Call("*", (Cast(literal(2), BIGINT), Column(SIZE))), ONE))


def _balance_columns() -> dict[str, Expression]:
    """The columns of the balance as they are."""
    return {name: Column(name) for name in (ALL, *BALANCE_COLUMNS)}


def summed_counts(bags: Sequence[Node], keys: tuple[str, ...], counts: Iterable[str]) -> Node:
    """Counts added up by key."""
    sums = tuple(AggregateColumn(name, "sum", Column(name)) for name in counts)
    return GroupBy(union_all(bags), keys, sums)
