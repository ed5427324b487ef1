"""Values as 64-bit codes: integers as they are, everything else by a dictionary.

Values are compared as dict keys are, so 2.0, Decimal(2) and True, which equal integers, get the
codes of those. A *domain* is a set of variables whose values meet in joins; it remembers of what
type such values were, so that floats come out as floats. Values that no table holds any more are
forgotten from time to time, and their codes given to others. Values of a domain that are all
decimals, floats, dates or timestamps need no dictionary (`formats.py`): the first one decides.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from decimal import Decimal
from fractions import Fraction
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from viewkeep.engine.compiled.formats import (
    BY_DICTIONARY,
    INTEGERS,
    MIXED,
    NULL,
    PLAIN,
    TEXTS,
    Column,
    Format,
    common,
    format_of,
)
from viewkeep.engine.compiled.rings import Retype
from viewkeep.query.conjunctive import ConjunctiveQuery

if TYPE_CHECKING:
    from viewkeep.engine.compiled.texts import Texts

_LIKE_INTEGERS = (bool, float, Decimal, Fraction, complex, np.generic)


class Domain:
    """The format of the values of some variables, and the type of those that equal integers."""

    __slots__ = ("format", "kind", "lifted", "loose", "seen")

    def __init__(self) -> None:
        self.kind: type = int
        self.seen = False
        self.format: Format | None = None
        """None before the first value."""
        self.loose = False
        """Whether integers came among decimals or floats: they have the codes of those."""
        self.lifted = False
        """Whether sums are made of these values, so that their format is a part of the program."""

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
        self._texts: Texts | None = None
        self.windows: dict[tuple[int, int], tuple[int, int]] = {}
        """For sums of floats, by atom and number: between which powers of two their bits are."""
        self.wider = 0
        """How many words more than two sums of decimals take, since some have left those."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"free": [], "kept": 0, **state})  # files may be older than these

    # --- formats ----------------------------------------------------------------------------------

    def admit(self, domain: Domain, form: Format) -> Format:
        """The format of a domain that values of this one join; `Retype` if codes must change."""
        own = domain.format
        if own is not None and own in (form, MIXED):
            return own
        wanted = common(own, form)
        if own is None or (own == INTEGERS and not domain.lifted):
            # Codes of integers stay as they are, also where a dictionary is needed from now on.
            domain.format = wanted = wanted if own is None else MIXED
        elif wanted != own:
            raise self.retype(domain, wanted, form)
        if form == INTEGERS:
            domain.loose = True
        return wanted

    def retype(self, domain: Domain, wanted: Format, form: Format) -> Retype:
        """An empty coder of the same formats but one, since values of `form` came."""
        other = self.empty()
        for variable, each in self.domains.items():
            if each is domain:
                own = other.domains[variable]
                own.format, own.loose = wanted, own.loose or INTEGERS in (form, each.format)
        title = "nothing" if domain.format is None else domain.format.title
        return Retype(other, f"{form.title} after {title}")

    def empty(self) -> "Coder":
        """A coder of the same formats that holds nothing."""
        other = copy(self)
        other.codes, other.values, other.free, other.kept = {}, [], [], 0
        other.windows, other._texts = dict(self.windows), None
        copies = {id(each): copy(each) for each in self.domains.values()}
        other.domains = {v: copies[id(each)] for v, each in self.domains.items()}
        return other

    @property
    def texts(self) -> "Texts":
        """The dictionary of texts, which is in machine code."""
        if self._texts is None:
            from viewkeep.engine.compiled.texts import Texts

            self._texts = Texts()
        return self._texts

    def __len__(self) -> int:
        """How many values are in the dictionaries."""
        return len(self.codes) + (0 if self._texts is None else len(self._texts))

    def allow_texts(self, more: int) -> None:
        """Let so many new texts come with single rows before someone looks which are needed."""
        if self._texts is not None:
            self._texts.allow(more)

    def _native_code(self, form: Format, value: Any) -> int | None:
        """The code of a value in a format that needs no dictionary of objects."""
        if form == TEXTS:
            return self.texts.code(value) if type(value) is str else None
        return form.code(value)

    # --- codes ------------------------------------------------------------------------------------

    def code(self, value: Any, domain: Domain) -> int:
        """The code of a value, a new one if need be."""
        if value is None:
            return NULL
        own = domain.format
        if own is None or own not in BY_DICTIONARY:
            if own is None or self._native_code(own, value) is None:
                self.admit(domain, format_of(value))
                own = domain.format
                assert own is not None
            if own not in BY_DICTIONARY:
                code = self._native_code(own, value)
                if code is None:  # an integer too large to be such a number, a text without UTF-8
                    raise self.retype(domain, MIXED, format_of(value))
                domain.loose |= type(value) is int
                return code
        if type(value) is int and -PLAIN < value < PLAIN:
            domain.note(int)
            return value
        if own == INTEGERS:
            self.admit(domain, format_of(value))
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

    def forget_all_but(self, used: NDArray[np.bool_], texts: NDArray[np.bool_]) -> None:
        """Keep the values and texts at these places, and no others."""
        if self._texts is not None:
            self._texts.keep(texts)
        places = np.flatnonzero(used).tolist()
        del self.values[places[-1] + 1 if places else 0 :]
        self.free = np.flatnonzero(~used[: len(self.values)])[::-1].tolist()
        for place in self.free:
            self.values[place] = None
        self.codes = {self.values[place]: PLAIN + place for place in places}
        self.kept = len(self)

    def find(self, value: Any, domain: Domain) -> int | None:
        """The code of a value, None if it was never met."""
        if value is None:
            return NULL
        if domain.format == TEXTS:
            return self.texts.find(value) if isinstance(value, str) else None
        if domain.format is not None and domain.format not in BY_DICTIONARY:
            codes = (domain.format.code(each) for each in _equal_values(value))
            return next((code for code in codes if code is not None), None)
        if type(value) is int and -PLAIN < value < PLAIN:
            return value
        code = self.codes.get(value)
        return code if code is not None else _integer_of_value(value)

    def rows(
        self, columns: Sequence[Column], domains: Sequence[Domain]
    ) -> Iterator[tuple[Any, ...]]:
        """Rows of values from columns of codes."""
        decoded = [self.decode(each, own) for each, own in zip(columns, domains, strict=True)]
        return zip(*decoded, strict=True)

    def decode(self, column: Column, domain: Domain) -> list[Any]:
        """The values of a column of codes."""
        null = column == NULL
        if null.any():
            values = iter(self.decode(column[~null], domain))
            return [None if each else next(values) for each in null.tolist()]
        if domain.format == TEXTS:
            return list(self.texts.values(column))
        if domain.format is not None and domain.format not in BY_DICTIONARY:
            return domain.format.values(np.ascontiguousarray(column))
        codes: list[Any] = column.tolist()
        if len(column) and int(column.max()) >= PLAIN:
            coded, kind = self.values, domain.kind
            return [coded[c - PLAIN] if c >= PLAIN else kind(c) for c in codes]
        return codes if domain.kind is int else [domain.kind(c) for c in codes]

    def encode(self, values: Iterable[Any], domain: Domain) -> Column:
        """The codes of a column of values, each distinct one coded once."""
        column = list(values)
        kinds = set(map(type, column)) if domain.format in (None, TEXTS) else set[type]()
        if str in kinds and kinds <= {str, NoneType}:
            self.admit(domain, TEXTS)
            if (text_codes := self.texts.code_list(column)) is not None:
                return text_codes
        try:
            distinct = dict.fromkeys(column)
        except TypeError:
            distinct = {}
        self._admit_all(distinct, domain)
        if len(distinct) * 2 > len(column) or any(type(v) is bool for v in distinct):
            return np.fromiter((self.code(v, domain) for v in column), np.int64, len(column))
        codes = {value: self.code(value, domain) for value in distinct}
        return np.fromiter(map(codes.__getitem__, column), np.int64, len(column))

    def _admit_all(self, values: Iterable[Any], domain: Domain) -> None:
        """Let all values of a column decide together, so that codes change at most once."""
        if domain.format in BY_DICTIONARY and not domain.lifted:
            return
        wanted: Format | None = None
        for value in values:
            if value is not None and wanted != MIXED:
                wanted = common(wanted, format_of(value))
        if wanted is not None:
            self.admit(domain, wanted)


def _equal_values(value: Any) -> Iterator[Any]:
    """A value, and what equals it among integers, floats and decimals."""
    yield value
    if not isinstance(value, int) and not isinstance(value, _LIKE_INTEGERS):
        return
    number: Any = value.item() if isinstance(value, np.generic) else value
    kinds: tuple[Callable[[Any], Any], ...] = (int, float, Decimal)
    for kind in kinds:
        try:
            other = kind(number)
        except (ValueError, OverflowError, TypeError, ArithmeticError):
            continue
        if other == value:
            yield other


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
