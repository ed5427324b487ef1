"""Lifting functions as products of columns, so that they need not be called row by row."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewkeep.engine.compiled.rings import RingShape, shape_of
from viewkeep.engine.compiled.values import PLAIN, Column
from viewkeep.plan.payload import Payload
from viewkeep.query.aggregates import Aggregate, Term
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.expressions import Column as Variable
from viewkeep.query.expressions import Expression, Literal
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
        return _aggregate_words(query)
    if isinstance(payload.ring, MatrixRing):
        return {atom: _matrix_words(query, payload.ring, atom) for atom in atoms}
    return dict.fromkeys(atoms, ((),)) if payload.ring == INTEGERS else None


def _aggregate_words(query: ConjunctiveQuery) -> Lifted | None:
    """A count, then for each aggregate its terms and how many arguments are not null."""
    components: list[dict[int, list[Factor]]] = [{}]
    for aggregate in query.aggregates:
        if aggregate.function in ("min", "max"):
            return None
        if aggregate.argument is None:
            continue
        terms = aggregate.terms if aggregate.function != "count" else ()
        products = [_term_factors(query, term) for term in terms]
        if None in products or not _has_plain_lifts(aggregate):
            return None
        components += [each for each in products if each is not None]
        components.append({})
    return {
        atom: tuple(tuple(each.get(atom, ())) for each in components)
        for atom in range(len(query.atoms))
    }


def _has_plain_lifts(aggregate: Aggregate) -> bool:
    """Plain columns: those that hold a null are never coded as plain integers."""
    return all(isinstance(lift, Variable) for lift in aggregate.lifts)


def _term_factors(query: ConjunctiveQuery, term: Term) -> dict[int, list[Factor]] | None:
    factors: dict[int, list[Factor]] = {}
    for constant in term.constants:
        if not isinstance(constant, Literal) or type(constant.value) is not int:
            return None
        factors.setdefault(0, []).append(constant.value)
    for lift in term.lifts:
        if not isinstance(lift, Variable):
            return None
        factors.setdefault(_atom_of_lift(query, lift), []).append(lift.name)
    return factors


def _atom_of_lift(query: ConjunctiveQuery, lift: Expression) -> int:
    assert isinstance(lift, Variable)
    return next(i for i, atom in enumerate(query.atoms) if lift.name in atom.schema)


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
            elif is_integer_column(codes[factor]):
                total = total * codes[factor]
            elif factor in numbers:
                total = total * numbers[factor]
            else:
                return None
        return np.ascontiguousarray(total)


def is_integer_column(codes: Column) -> bool:
    """Whether a column holds nothing but integers."""
    return not len(codes) or int(codes.max()) < PLAIN


def _largest_magnitude(values: Any) -> int:
    array = np.asarray(values)
    return max(abs(int(array.max())), abs(int(array.min()))) if array.size else 0


def single_words(words: Sequence[Word], key: Sequence[str], shape: RingShape) -> list[str]:
    """The words of a tuple as text over its keys k0, k1, ... and its multiplicity m."""
    texts = []
    for kind, word in zip(shape.kinds, words, strict=True):
        text = "m" if kind == "i" else "real(m)"
        for factor in word or ():
            value = str(factor) if isinstance(factor, int) else f"k{key.index(factor)}"
            text = f"multiply({text}, {value})" if kind == "i" else f"{text} * real({value})"
        texts.append(text if word is not None else "0.0" if kind == "f" else "0")
    return texts
