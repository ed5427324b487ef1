"""Values as 64-bit codes: integers as they are, everything else by a dictionary.

Values are compared as dict keys are, so 2.0, Decimal(2) and True, which equal integers, get the
codes of those. A *domain* is a set of variables whose values meet in joins; it remembers of what
type such values were, so that floats come out as floats. Values that no table holds any more are
forgotten from time to time, and their codes given to others.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewkeep.query.conjunctive import ConjunctiveQuery

PLAIN = 2**62
"""Integers within +-PLAIN are their own codes; other values are coded from here on."""

Column = NDArray[np.int64]
_LIKE_INTEGERS = (bool, float, Decimal, Fraction, complex, np.generic)


class Domain:
    """The type of those values of some variables that equal integers."""

    __slots__ = ("kind", "seen")

    def __init__(self) -> None:
        self.kind: type = int
        self.seen = False

    def note(self, kind: type) -> None:
        """Note a value that equals an integer; values of several types are shown as integers."""
        if kind is not self.kind:
            self.kind = int if self.seen else kind
        self.seen = True


class Coder:
    """The dictionary of one maintainer, and its domains by variable."""

    def __init__(self, query: ConjunctiveQuery) -> None:
        self.codes: dict[Any, int] = {}
        self.values: list[Any] = []
        self.free: list[int] = []
        """Places in `values` that stand for nothing now."""
        self.kept = 0
        """How many values there were when the others were last forgotten."""
        self.domains = _query_domains(query)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"free": [], "kept": 0, **state})  # files may be older than these

    def code(self, value: Any, domain: Domain) -> int:
        """The code of a value, a new one if need be."""
        if type(value) is int and -PLAIN < value < PLAIN:
            domain.note(int)
            return value
        earlier = self.codes.get(value)
        if earlier is not None:
            return earlier
        whole = _integer_of_value(value)
        if whole is not None:
            domain.note(type(value.item()) if isinstance(value, np.generic) else type(value))
            return whole
        if self.free:
            place = self.free.pop()
            self.values[place] = value
        else:
            place = len(self.values)
            self.values.append(value)
        code = self.codes[value] = PLAIN + place
        return code

    def forget_all_but(self, used: NDArray[np.bool_]) -> None:
        """Keep the values at these places, and no others."""
        places = np.flatnonzero(used).tolist()
        del self.values[places[-1] + 1 if places else 0 :]
        self.free = np.flatnonzero(~used[: len(self.values)])[::-1].tolist()
        for place in self.free:
            self.values[place] = None
        self.codes = {self.values[place]: PLAIN + place for place in places}
        self.kept = len(places)

    def find(self, value: Any) -> int | None:
        """The code of a value, None if it was never met."""
        if type(value) is int and -PLAIN < value < PLAIN:
            return value
        code = self.codes.get(value)
        return code if code is not None else _integer_of_value(value)

    def value(self, code: int, domain: Domain) -> Any:
        """The value of a code."""
        if code >= PLAIN:
            return self.values[code - PLAIN]
        return code if domain.kind is int else domain.kind(code)

    def rows(
        self, columns: Sequence[Column], domains: Sequence[Domain]
    ) -> Iterator[tuple[Any, ...]]:
        """Rows of values from columns of codes."""
        decoded = [self.decode(each, own) for each, own in zip(columns, domains, strict=True)]
        return zip(*decoded, strict=True)

    def decode(self, column: Column, domain: Domain) -> list[Any]:
        """The values of a column of codes."""
        codes: list[Any] = column.tolist()
        if len(column) and int(column.max()) >= PLAIN:
            values, kind = self.values, domain.kind
            return [values[c - PLAIN] if c >= PLAIN else kind(c) for c in codes]
        return codes if domain.kind is int else [domain.kind(c) for c in codes]

    def encode(self, values: Iterable[Any], domain: Domain) -> Column:
        """The codes of a column of values, each distinct one coded once."""
        column = list(values)
        try:
            distinct = dict.fromkeys(column)
        except TypeError:
            distinct = {}
        if len(distinct) * 2 > len(column) or any(type(v) is bool for v in distinct):
            return np.fromiter((self.code(v, domain) for v in column), np.int64, len(column))
        codes = {value: self.code(value, domain) for value in distinct}
        return np.fromiter(map(codes.__getitem__, column), np.int64, len(column))


def _integer_of_value(value: Any) -> int | None:
    """The plain integer that a value equals, if there is one."""
    if not isinstance(value, _LIKE_INTEGERS):
        return None
    try:
        whole = int(value.real if isinstance(value, complex) else value)
    except (ValueError, OverflowError, TypeError):
        return None
    return whole if value == whole and -PLAIN < whole < PLAIN else None


def _query_domains(query: ConjunctiveQuery) -> dict[str, Domain]:
    """One domain for variables that share values: those of the same column of a relation."""
    first: dict[tuple[str, int], str] = {}
    group = {v: v for v in query.variables}

    def root(variable: str) -> str:
        return variable if group[variable] == variable else root(group[variable])

    for atom in query.atoms:
        for place, variable in enumerate(atom.variables):
            group[root(variable)] = root(first.setdefault((atom.relation, place), variable))
    domains: dict[str, Domain] = {}
    return {v: domains.setdefault(root(v), Domain()) for v in query.variables}
