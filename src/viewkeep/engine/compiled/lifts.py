"""Lifting functions as products of columns, so that they need not be called row by row."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewkeep.engine.compiled.formats import PLAIN, Column
from viewkeep.engine.compiled.rings import RingShape, shape_of, zero_text
from viewkeep.plan.payload import Payload
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.rings import INTEGERS, MatrixRing

Factor = int | str
"""A constant, or a variable."""

Word = tuple[Factor, ...] | None
"""A word of a lifted tuple: its multiplicity times these factors; None is zero."""

Lifted = dict[int, tuple[Word, ...]]


def lifted_words(query: ConjunctiveQuery, payload: Payload) -> Lifted | None:
    """The words of each atom's tuples, None if some lift is more than a product of columns."""
    shape = shape_of(payload.ring)
    atoms = range(len(query.atoms))
    if isinstance(shape, str):
        return None
    if payload.factors is not None:
        return {atom: (payload.factors.get(atom, ()),) for atom in atoms}
    if not payload.standard:
        return None
    if query.aggregates:
        return None
    if isinstance(payload.ring, MatrixRing):
        return {atom: _matrix_words(query, payload.ring, atom) for atom in atoms}
    return dict.fromkeys(atoms, ((),)) if payload.ring == INTEGERS else None


def _matrix_words(query: ConjunctiveQuery, ring: MatrixRing, atom: int) -> tuple[Word, ...]:
    own = [v if min(query.atoms_of[v]) == atom else None for v in ring.variables]
    words: list[Word] = [(), *((v,) if v is not None else None for v in own)]
    for i, first in enumerate(own):
        for second in own[i:]:
            both = first is not None and second is not None
            words.append((str(first), str(second)) if both else None)
    return tuple(words)


@dataclass(frozen=True)
class Lifter:
    """Computes the words of many tuples of one atom at once."""

    shape: RingShape
    words: tuple[Word, ...]

    def columns(
        self,
        counts: Column,
        codes: dict[str, Column],
        numbers: dict[str, NDArray[Any]],
        whole: Set[str],
    ) -> list[NDArray[Any]] | None:
        """The words as columns; None if a column holds something else than numbers that fit.

        `whole` are the variables all of whose values are integers, and no others that equal some.
        """
        columns = []
        for kind, word in zip(self.shape.kinds, self.words, strict=True):
            column = (
                self._float_word(counts, word, codes, numbers)
                if kind == "f"
                else self._integer_word(counts, word, codes, whole)
            )
            if column is None:
                return None
            columns.append(column)
        return columns

    def _integer_word(
        self, counts: Column, word: Word, codes: dict[str, Column], whole: Set[str]
    ) -> NDArray[np.int64] | None:
        if word is None:
            return np.zeros(len(counts), np.int64)
        total = counts
        for factor in word:
            values = np.int64(factor) if isinstance(factor, int) else codes[factor]
            if isinstance(factor, str) and not (
                factor in whole and is_integer_column(codes[factor])
            ):
                return None
            if _largest_magnitude(total) * _largest_magnitude(values) >= 2**63:
                return None
            total = total * values
        return np.ascontiguousarray(total)

    def _float_word(
        self,
        counts: Column,
        word: Word,
        codes: dict[str, Column],
        numbers: dict[str, NDArray[Any]],
    ) -> NDArray[np.float64] | None:
        if word is None:
            return np.zeros(len(counts), np.float64)
        total: NDArray[np.float64] = counts.astype(np.float64)
        for factor in word:
            if isinstance(factor, int):
                total = total * factor
            elif factor in numbers:
                total = total * numbers[factor]
            elif is_integer_column(codes[factor]):
                total = total * codes[factor]
            else:
                return None
        return np.ascontiguousarray(total)


def is_integer_column(codes: Column) -> bool:
    """Whether a column holds nothing but integers."""
    return not len(codes) or int(codes.max()) < PLAIN


def _largest_magnitude(values: Any) -> int:
    array = np.asarray(values)
    return max(abs(int(array.max())), abs(int(array.min()))) if array.size else 0


def single_lines(words: Sequence[Word], key: Sequence[str], shape: RingShape) -> list[str]:
    """Statements that set the words of a tuple's payload, from its keys k0, k1, ... and its
    multiplicity m."""
    texts = []
    for name, kind, word in zip(shape.names("p"), shape.kinds, words, strict=True):
        text = "m" if kind == "i" else "real(m)"
        for factor in word or ():
            value = str(factor) if isinstance(factor, int) else f"k{key.index(factor)}"
            text = f"multiply({text}, {value})" if kind == "i" else f"{text} * real({value})"
        texts.append(f"{name} = {text if word is not None else zero_text(kind)}")
    return texts
