"""A verdict: whether a property holds, and the witness that a person can check by eye."""

from collections.abc import Iterable
from dataclasses import dataclass

from viewkeep.query.conjunctive import ConjunctiveQuery


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a property of a query holds and why, with the variables and atoms that show it.

    `value` is the number that a property with degrees has: the delta rank.
    """

    property: str
    holds: bool
    because: str
    variables: tuple[str, ...] = ()
    atoms: tuple[str, ...] = ()
    value: int | None = None

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return f"{'yes' if self.holds else 'no'}: {self.because}"


def atom_set(query: ConjunctiveQuery, atoms: Iterable[int]) -> str:
    """Atoms as a set for people: {Location, Census}."""
    return "{" + ", ".join(query.labels[i] for i in sorted(atoms)) + "}"


def atom_labels(query: ConjunctiveQuery, atoms: Iterable[int]) -> tuple[str, ...]:
    """The labels of the atoms at these positions."""
    return tuple(query.labels[i] for i in sorted(atoms))
