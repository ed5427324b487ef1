"""Ordered multisets: the minimum and maximum of a group whose values also disappear."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from viewkeep.errors import RingError
from viewkeep.rings.ordered_tree import (
    Node,
    Tree,
    Visits,
    add_value,
    build,
    entries,
    find,
    merge,
    require_ordered,
    scale,
)
from viewkeep.rings.ring import Ring


class Multiset:
    """An integer plus values with multiplicities; never changed once made.

    The minimum and maximum are known in O(1). Multiplicities may be negative for a while, when
    deletes overtake their inserts; asking for an extreme meanwhile is an error, because no multiset
    of values explains such a state.
    """

    __slots__ = ("number", "values")

    def __init__(self, number: int, values: Tree) -> None:
        self.number, self.values = number, values

    @property
    def minimum(self) -> Any:
        """The smallest value, or None if there is none."""
        tree = self._valid_tree()
        return None if tree is None else tree.lowest

    @property
    def maximum(self) -> Any:
        """The largest value, or None if there is none."""
        tree = self._valid_tree()
        return None if tree is None else tree.highest

    @property
    def distinct(self) -> int:
        """How many different values there are."""
        tree = self._valid_tree()
        return 0 if tree is None else tree.size

    def _valid_tree(self) -> Tree:
        if self.values is not None and self.values.negative:
            raise RingError(
                "a value was deleted more often than inserted: there is no min or max, and no "
                "number of distinct values, yet"
            )
        return self.values

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Multiset):
            return NotImplemented
        return (self.number, [*entries(self.values)]) == (other.number, [*entries(other.values)])

    __hash__ = None  # type: ignore[assignment]  # values may be many, and nobody looks it up

    def __repr__(self) -> str:
        return f"Multiset({self.number}, {dict(entries(self.values))})"

    def __reduce__(self) -> tuple[Callable[..., "Multiset"], tuple[Any, ...]]:
        return _restored, (self.number, list(entries(self.values)))


def multiset_of_size(size: int, count: int) -> Multiset:
    """A multiset that is asked for the number of its values only: they lie elsewhere."""
    if not size:
        return _ZERO
    node = Node(size, count)
    node.size = size
    return Multiset(0, node)


def _restored(number: int, pairs: Iterable[tuple[Any, int]]) -> Multiset:
    return Multiset(number, build(list(pairs)))


_ZERO, _ONE = Multiset(0, None), Multiset(1, None)


@dataclass(frozen=True)
class Multisets(Ring[Multiset]):
    """Multisets of ordered values: the relational payloads over one column, kept in order.

    A value is added or removed in O(log n), a multiplicity is multiplied in O(1), and no element is
    copied for that. Adding two multisets takes O(log n) for each value of the smaller one.

    >>> ages = MULTISETS.zero
    >>> for age in (35, 40, 40, 30):
    ...     ages = MULTISETS.add(ages, MULTISETS.lift(age))
    >>> younger = MULTISETS.add(ages, MULTISETS.negate(MULTISETS.lift(40)))
    >>> ages.minimum, ages.maximum, younger
    (30, 40, Multiset(0, {30: 1, 35: 1, 40: 1}))
    """

    visits: Visits = field(default_factory=lambda: [0], compare=False, repr=False)
    """Where the nodes are counted that additions look at."""

    name = "ordered multisets"
    zero = _ZERO
    one = _ONE

    def add(self, left: Multiset, right: Multiset) -> Multiset:
        return Multiset(left.number + right.number, merge(left.values, right.values, self.visits))

    def multiply(self, left: Multiset, right: Multiset) -> Multiset:
        if left.values is not None and right.values is not None:
            return self._multiset_product(left, right)
        values = scale(right.values, left.number) or scale(left.values, right.number)
        return Multiset(left.number * right.number, values)

    def _multiset_product(self, left: Multiset, right: Multiset) -> Multiset:
        """A value times itself is that value, as in a natural join; times another one, nothing."""
        values = merge(
            scale(right.values, left.number), scale(left.values, right.number), self.visits
        )
        for value, count in entries(left.values):
            if common := find(right.values, value):
                values = add_value(values, value, count * common, self.visits)
        return Multiset(left.number * right.number, values)

    def negate(self, element: Multiset) -> Multiset:
        return Multiset(-element.number, scale(element.values, -1))

    def is_zero(self, element: Multiset) -> bool:
        return not element.number and element.values is None

    def from_integer(self, n: int) -> Multiset:
        return Multiset(n, None)

    def lift(self, value: Any) -> Multiset:
        """The multiset of one value; nulls are no values."""
        if value is None:
            return _ZERO
        require_ordered(value)
        return Multiset(0, build([(value, 1)]))

    def counted(self, counter: list[int]) -> "Multisets":
        return Multisets(counter)


MULTISETS = Multisets()


class OrderedMultiset:
    """Values with multiplicities that change; insert and remove in O(log n), extremes in O(1).

    What the min and max semirings lack: a delete uncovers the next value.

    >>> ages = OrderedMultiset()
    >>> for age in (35, 40, 40, 30):
    ...     ages.add(age)
    >>> ages.add(30, -1)
    >>> ages.minimum(), ages.maximum(), ages.total()
    (35, 40, 3)
    """

    __slots__ = ("_total", "_values")

    def __init__(self) -> None:
        self._values: Tree = None
        self._total = 0

    def add(self, value: Any, multiplicity: int = 1) -> None:
        """Insert (or, if negative, remove) this many copies of a value."""
        require_ordered(value)
        if multiplicity:
            self._values = add_value(self._values, value, multiplicity, [0])
            self._total += multiplicity

    def multiplicity(self, value: Any) -> int:
        """How many copies of a value there are."""
        return find(self._values, value)

    def minimum(self) -> Any:
        """The smallest value, or None if there is none."""
        self._require_valid()
        return None if self._values is None else self._values.lowest

    def maximum(self) -> Any:
        """The largest value, or None if there is none."""
        self._require_valid()
        return None if self._values is None else self._values.highest

    def total(self) -> int:
        """The number of values, copies included; negative while deletes are ahead."""
        return self._total

    def _require_valid(self) -> None:
        if self._values is not None and self._values.negative:
            raise RingError(
                f"{self._values.negative} value(s) have been removed more often than inserted; "
                "apply the missing inserts before asking for the minimum or maximum"
            )
