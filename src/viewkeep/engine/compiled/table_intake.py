"""From tables to columns of codes, without a loop over rows; whatever is unusual is left to the
intake of rows, which also tells what is wrong with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewkeep.engine.compiled.columns import array_codes, arrow_codes, is_text
from viewkeep.engine.compiled.formats import (
    BY_DICTIONARY,
    FLOATS,
    INTEGERS,
    MIXED,
    NULL,
    TEXTS,
    Column,
    Format,
    rescaled,
)
from viewkeep.engine.compiled.function import Module
from viewkeep.engine.compiled.lifts import Lifter
from viewkeep.engine.compiled.llvm import machine
from viewkeep.engine.compiled.llvm.python_rows import MOST_COLUMNS, available, parse_module
from viewkeep.engine.compiled.values import Coder, Domain
from viewkeep.engine.frames import is_arrow, is_pandas, select_columns
from viewkeep.plan.payload import distinct_variables
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.expressions import columns_of

Columns = list[NDArray[Any]]
Batches = list[tuple[int, Columns]]


class ColumnIntake:
    """Turns tables of one relation into changes of its atoms."""

    def __init__(
        self,
        query: ConjunctiveQuery,
        relation: str,
        coder: Coder,
        lifters: Mapping[int, Lifter | None],
        subtractable: bool,
    ) -> None:
        self._relation, self._coder = relation, coder
        self.columns = query.columns_of(relation)
        table = dict(query.tables).get(relation, self.columns)
        self._whole = len(table) == len(self.columns)
        self._static = relation in query.constraints.static
        self._no_deletes = query.constraints.insert_only or not subtractable
        self._atoms = []
        self.usable = self._whole and len(self.columns) <= MOST_COLUMNS
        for number, atom in enumerate(query.atoms):
            if atom.relation == relation:
                self.usable &= not any(columns_of(c) <= atom.schema for c in query.conditions)
                self._atoms.append((number, atom.variables, lifters[number]))
        self._domains = [coder.domains[v] for v in self._atoms[0][1]]

    @property
    def direct(self) -> bool:
        """Whether single rows may go straight to the triggers."""
        repeated = any(len(set(names)) < len(names) for _, names, _ in self._atoms)
        return self.usable and not (repeated or self._static or self._no_deletes)

    @property
    def text_mask(self) -> int | None:
        """Which columns hold texts, as bits; None if others hold more than integers."""
        mask = 0
        for place, domain in enumerate(self._domains):
            if domain.format == TEXTS:
                mask |= 1 << place
            elif not (domain.seen and domain.kind is int and domain.format in BY_DICTIONARY):
                return None
        return mask

    def batches(self, rows: Any, multiplicities: Any, loading: bool = False) -> Batches | None:
        """The changes as columns, atom by atom; None if they are left to the other intake."""
        if not self.usable or (self._static and not loading):
            return None
        columns = self._coded_columns(rows)
        if columns is None:
            return None
        counts = _count_column(multiplicities, len(columns[0].codes) if columns else -1)
        if counts is None or (self._no_deletes and len(counts) and int(counts.min()) < 0):
            return None
        batches = [self._columns_of_atom(*atom, columns, counts) for atom in self._atoms]
        ready = [each for each in batches if each is not None]
        return ready if len(ready) == len(batches) else None

    def _columns_of_atom(
        self,
        number: int,
        names: tuple[str, ...],
        lifter: Lifter | None,
        coded: list["_Coded"],
        counts: Column,
    ) -> tuple[int, Columns] | None:
        variables, codes = distinct_variables(names), [each.codes for each in coded]
        by_name = {v: codes[names.index(v)] for v in variables}
        values = {v: n for v in variables if (n := coded[names.index(v)].numbers) is not None}
        whole = {v for v in variables if coded[names.index(v)].whole}
        for place, variable in enumerate(names):
            if names.index(variable) != place:
                mask = codes[place] == by_name[variable]
                by_name = {v: c[mask] for v, c in by_name.items()}
                values = {v: n[mask] for v, n in values.items()}
                codes, counts = [c[mask] for c in codes], counts[mask]
        words: Columns | None = [counts]
        if lifter is not None:
            words = lifter.columns(counts, by_name, values, whole)
        if words is None:
            return None
        return number, [*(np.ascontiguousarray(by_name[v]) for v in variables), *words]

    # --- columns ----------------------------------------------------------------------------------

    def _coded_columns(self, rows: Any) -> list["_Coded"] | None:
        if isinstance(rows, list):
            return self._coded_list(rows)
        columns = self._table_columns(rows)
        if columns is None or not columns:
            return None
        coded = [self._code_column(c, d) for c, d in zip(columns, self._domains, strict=True)]
        usable = [each for each in coded if each is not None]
        return usable if len(usable) == len(coded) else None

    def _coded_list(self, rows: list[Any]) -> list["_Coded"] | None:
        if not rows or not self.columns:
            return None
        numbers = self._parsed_list(rows) if available() else None
        if numbers is not None:
            return [
                self._coded(INTEGERS, c, d) for c, d in zip(numbers, self._domains, strict=True)
            ]
        if set(map(type, rows)) != {tuple} or set(map(len, rows)) != {len(self.columns)}:
            return None
        columns = zip(*rows, strict=True)
        coded = [self._code_values(c, d) for c, d in zip(columns, self._domains, strict=True)]
        usable = [each for each in coded if each is not None]
        return usable if len(usable) == len(coded) else None

    def _parsed_list(self, rows: list[Any]) -> list[Column] | None:
        """Rows of plain integers as columns."""
        columns = [np.empty(len(rows), np.int64) for _ in self.columns]
        places = np.array([column.ctypes.data for column in columns], np.int64)
        return columns if _row_parser()(rows, len(columns), places.ctypes.data) else None

    def _code_values(self, values: tuple[Any, ...], domain: Domain) -> "_Coded | None":
        """A column of Python values, each distinct one coded once."""
        try:
            if any(value != value for value in set(values)):
                return None
            codes = self._coder.encode(values, domain)
        except TypeError:  # not to be hashed, or neither equal nor different
            return None
        if domain.lifted and not _is_finite(codes, domain.format):
            return None
        return _Coded(codes, *self._kind_of(codes, values, domain))

    def _kind_of(
        self, codes: Column, values: Sequence[Any], domain: Domain
    ) -> tuple[NDArray[np.float64] | None, bool]:
        if domain.format == FLOATS:
            return (None if (codes == NULL).any() else codes.view(np.float64)), False
        whole = domain.format in BY_DICTIONARY
        return None, whole and all(value is None or isinstance(value, int) for value in set(values))

    def _coded(self, form: Format, codes: Column, domain: Domain) -> "_Coded":
        """A column of codes of some format, none of which is null."""
        own = self._coder.admit(domain, form)
        if own in BY_DICTIONARY:
            domain.note(int)
        fitted = rescaled(codes, form, own)
        if fitted is None:
            raise self._coder.retype(domain, MIXED, form)
        floats = fitted.view(np.float64) if own == FLOATS else None
        return _Coded(fitted, floats, own in BY_DICTIONARY)

    def _table_columns(self, rows: Any) -> list[Any] | None:
        if is_arrow(rows):
            places = select_columns(list(rows.column_names), self._relation, self.columns)
            return [rows.column(place) for place in places]
        if is_pandas(rows):
            names = [str(name) for name in rows.columns]
            places = select_columns(names, self._relation, self.columns)
            return [rows.iloc[:, place] for place in places]
        if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.shape[1] == len(self.columns):
            return [rows[:, place] for place in range(rows.shape[1])]
        return None

    def _code_column(self, column: Any, domain: Domain) -> "_Coded | None":
        if hasattr(column, "combine_chunks"):
            column = _unpacked_column(column)
            if column is None:
                return None
            if is_text(column.type):
                return self._code_texts(column, domain)
            typed = arrow_codes(column)
        elif isinstance(column, np.ndarray):
            typed = array_codes(column)
        else:
            plain = isinstance(column.dtype, np.dtype)
            typed = array_codes(column.to_numpy()) if plain else None
        if typed is None:
            return self._code_distinct(column, domain)
        if typed.format is domain.format is INTEGERS and typed.null is None:
            domain.note(int)
            return _Coded(typed.codes)
        if domain.lifted and not _is_finite(typed.codes, typed.format):
            return None
        if not self._is_admitted(typed.format, domain):
            return self._code_distinct(column, domain)
        coded = self._coded(typed.format, typed.codes, domain)
        if typed.null is None:
            return coded
        codes = np.where(typed.null, np.int64(NULL), coded.codes)
        return _Coded(codes, None, coded.whole)

    def _code_texts(self, column: Any, domain: Domain) -> "_Coded | None":
        """Texts straight from Arrow's buffers, unless values of other types meet them."""
        if self._coder.admit(domain, TEXTS) != TEXTS:
            return self._code_distinct(column, domain)
        return _Coded(self._coder.texts.code_arrow(column), None, False)

    def _is_admitted(self, form: Format, domain: Domain) -> bool:
        """Whether a column of this format needs no dictionary in its domain."""
        own = self._coder.admit(domain, form)
        return own not in BY_DICTIONARY or form == INTEGERS

    def _code_distinct(self, column: Any, domain: Domain) -> "_Coded | None":
        """Strings, dates and so on: every distinct value is coded once."""
        dictionary = _distinct_column_values(column)
        if dictionary is None:
            return None
        places, values = dictionary
        try:
            if any(value != value for value in values):
                return None
            codes = self._coder.encode(values, domain).tolist()
        except TypeError:  # pandas.NA is neither equal nor different, lists have no hash
            return None
        if domain.lifted and not _is_finite(np.array(codes, np.int64), domain.format):
            return None
        column_codes = np.array(codes, np.int64)[places]
        return _Coded(column_codes, *self._kind_of(column_codes, values, domain))


@dataclass(frozen=True)
class _Coded:
    """A column of codes, and its numbers if it is one of floats."""

    codes: Column
    numbers: NDArray[np.float64] | None = None
    whole: bool = True
    """Whether all values are integers: 2.0 and Decimal(2) have the code of 2, but sums of such
    values are rounded, or shown, otherwise."""


def _is_finite(codes: Column, form: Format | None) -> bool:
    """Infinities in a sum are refused row by row, with an error that names them."""
    return form != FLOATS or bool(np.isfinite(codes[codes != NULL].view(np.float64)).all())


def _unpacked_column(column: Any) -> Any:
    """An Arrow column in one piece, without dictionary or runs; None where Arrow cannot do that."""
    import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    try:
        if hasattr(column, "num_chunks"):
            column = column.combine_chunks()
        if pa.types.is_run_end_encoded(column.type):
            column = pc.run_end_decode(column)
        while pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
    except (pa.ArrowException, NotImplementedError):
        return None
    return None if hasattr(column, "num_chunks") else column  # too long for one piece


def _distinct_column_values(column: Any) -> tuple[NDArray[Any], Sequence[Any]] | None:
    """Which distinct value each row has, and those values."""
    if hasattr(column, "dictionary_encode"):
        import pyarrow as pa

        try:
            encoded = column.dictionary_encode()
        except (pa.ArrowException, NotImplementedError, TypeError):  # e.g. nested, or extensions
            return None
        # Nulls are put in here: "encode" as their handling makes empty strings of those in views.
        nulls, values = encoded.indices.null_count, encoded.dictionary.to_pylist()
        if nulls != column.null_count:
            return None
        places = encoded.indices.fill_null(len(values))
        values += [None] if nulls else []
        return places.to_numpy(zero_copy_only=False), values
    if hasattr(column, "factorize"):
        places, values = column.factorize(use_na_sentinel=False)
        # Some of pandas' types mark what is missing as -1 all the same.
        return None if (places < 0).any() else (places, values.tolist())
    return None


def _count_column(multiplicities: Any, length: int) -> Column | None:
    if length < 0:
        return None
    if multiplicities is None:
        return np.ones(length, np.int64)
    if isinstance(multiplicities, np.ndarray) and multiplicities.dtype == np.int64:
        counts = multiplicities
    elif isinstance(multiplicities, list) and set(map(type, multiplicities)) <= {int}:
        try:
            counts = np.array(multiplicities, np.int64)
        except OverflowError:
            return None
    else:
        return None
    return np.ascontiguousarray(counts) if counts.shape == (length,) else None


@cache
def _row_parser() -> Any:
    return machine.load(Module(()), parse_module()).builtin("parse")
