"""Ordered multisets: the minimum and maximum of a group whose values also disappear."""

from collections.abc import Callable, Collection
from heapq import heapify, heappop, heappush
from typing import Any

from viewkeep.errors import RingError


class _Descending:
    """A value that sorts the other way round, to make a max-heap of heapq's min-heap."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: "_Descending") -> bool:
        return bool(other.value < self.value)


def _ascending(value: Any) -> Any:
    return value


class _LazyHeap:
    """A heap whose removed values stay inside until they reach the top."""

    __slots__ = ("_heap", "_key", "_values")

    def __init__(self, key: Callable[[Any], Any]) -> None:
        self._key = key
        self._heap: list[tuple[Any, Any]] = []
        self._values: set[Any] = set()

    def top(self) -> Any:
        return self._heap[0][1]

    def push(self, value: Any) -> None:
        if value not in self._values:
            self._values.add(value)
            heappush(self._heap, (self._key(value), value))

    def drop_stale(self, present: Collection[Any]) -> None:
        # Rebuilding when half is stale keeps space linear, and the removals before it pay for it.
        if 2 * len(present) <= len(self._heap):
            self._heap = [(self._key(value), value) for value in present]
            heapify(self._heap)
            self._values = set(present)
        while self._heap and self._heap[0][1] not in present:
            self._values.remove(heappop(self._heap)[1])


class OrderedMultiset:
    """Values with multiplicities; insert, remove, minimum and maximum in amortized O(log n).

    What the min and max semirings lack: a delete uncovers the next value. Multiplicities may be
    negative for a while, when deletes overtake their inserts; asking for an extreme meanwhile
    is an error, because no multiset of values explains such a state.

    >>> ages = OrderedMultiset()
    >>> for age in (35, 40, 40, 30):
    ...     ages.add(age)
    >>> ages.add(30, -1)
    >>> ages.minimum(), ages.maximum(), ages.total()
    (35, 40, 3)
    """

    __slots__ = ("_maxima", "_minima", "_multiplicities", "_negative", "_total")

    def __init__(self) -> None:
        self._multiplicities: dict[Any, int] = {}
        self._minima = _LazyHeap(_ascending)
        self._maxima = _LazyHeap(_Descending)
        self._negative = 0
        self._total = 0

    def add(self, value: Any, multiplicity: int = 1) -> None:
        """Insert (or, if negative, remove) this many copies of a value."""
        self._require_ordered(value)
        before = self._multiplicities.get(value, 0)
        after = before + multiplicity
        self._negative += (after < 0) - (before < 0)
        self._total += multiplicity
        if after:
            self._multiplicities[value] = after
            self._minima.push(value)
            self._maxima.push(value)
        elif before:
            del self._multiplicities[value]
            self._minima.drop_stale(self._multiplicities)
            self._maxima.drop_stale(self._multiplicities)

    def multiplicity(self, value: Any) -> int:
        """How many copies of a value there are."""
        return self._multiplicities.get(value, 0)

    def minimum(self) -> Any:
        """The smallest value, or None if there is none."""
        self._require_valid()
        return self._minima.top() if self._multiplicities else None

    def maximum(self) -> Any:
        """The largest value, or None if there is none."""
        self._require_valid()
        return self._maxima.top() if self._multiplicities else None

    def total(self) -> int:
        """The number of values, copies included; negative while deletes are ahead."""
        return self._total

    def _require_ordered(self, value: Any) -> None:
        """Refuse a value before anything is changed: a half-done heap insert is not a heap."""
        try:
            if not self._multiplicities:
                ordered = bool(value <= value)
            else:
                smallest = self._minima.top()
                ordered = bool(value < smallest or value >= smallest)
        except TypeError:
            ordered = False
        # NaN is also refused: it is neither below nor above anything.
        if not ordered:
            raise RingError(f"an ordered multiset cannot order {value!r} among its values")

    def _require_valid(self) -> None:
        if self._negative:
            raise RingError(
                f"{self._negative} value(s) have been removed more often than inserted; "
                "apply the missing inserts before asking for the minimum or maximum"
            )
