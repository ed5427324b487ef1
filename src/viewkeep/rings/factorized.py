"""The relational data ring with factorized payloads: unions and products kept unexpanded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, Union

from viewkeep.rings.lifting import Lift
from viewkeep.rings.relation import Relation
from viewkeep.rings.relational import RELATIONAL, Listing
from viewkeep.rings.ring import Ring

# A factor is one value of a column, or a nested union; a term is a product of factors that have
# no column in common. A record of a listing is a term too: a product of values.
Factor: TypeAlias = Union[tuple[str, Any], "Factorization"]
Term: TypeAlias = frozenset[Factor]


class Factorization:
    """A union of products, each with its coefficient; factors are shared, never copied.

    Terms are unordered, so sums that differ only in order compare equal and the delete of a term
    meets its insert.
    """

    def __init__(self, terms: Mapping[Term, int]) -> None:
        self.terms = terms

    @cached_property
    def columns(self) -> frozenset[str]:
        """Every column that occurs."""
        factors = (factor for term in self.terms for factor in term)
        return frozenset().union(*({f[0]} if isinstance(f, tuple) else f.columns for f in factors))

    @cached_property
    def sign(self) -> int | None:
        """1 or -1 if every record has a count of that sign, so none cancels; None if unknown."""
        signs = {_term_sign(term, coefficient) for term, coefficient in self.terms.items()}
        return signs.pop() if len(signs) == 1 else None

    @cached_property
    def is_empty(self) -> bool:
        """Whether no record is left; expands only if counts of both signs could cancel."""
        return not self.terms or (self.sign is None and not self.expand())

    def expand(self) -> Listing:
        """The listed relation, which may be exponentially larger."""
        listing = RELATIONAL.zero
        for term, coefficient in self.terms.items():
            product: Listing = RELATIONAL.from_integer(coefficient)
            for factor in term:
                product = RELATIONAL.multiply(product, _expand_factor(factor))
            listing = RELATIONAL.add(listing, product)
        return listing

    def size(self) -> int:
        """The number of values and unions stored, shared ones once."""
        counted: set[int] = set()
        return _factorization_size(self, counted)

    @cached_property
    def _hash(self) -> int:
        # Kept, because nested unions are hashed whenever a term around them is looked up.
        return hash(frozenset(self.terms.items()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """The same expression; `FactorizedRing.equal` compares the relations they stand for."""
        if self is other:
            return True
        if not isinstance(other, Factorization) or self._hash != other._hash:
            return False
        return self.terms == other.terms

    def __str__(self) -> str:
        term_texts = sorted(map(_show_term, self.terms.items()))
        return " + ".join(term_texts) or "0"


def _term_sign(term: Term, coefficient: int) -> int | None:
    sign = 1 if coefficient > 0 else -1
    for factor in term:
        if isinstance(factor, Factorization):
            if factor.sign is None:
                return None
            sign *= factor.sign
    return sign


def _expand_factor(factor: Factor) -> Listing:
    return {frozenset({factor}): 1} if isinstance(factor, tuple) else factor.expand()


def _factorization_size(element: Factorization, counted: set[int]) -> int:
    if id(element) in counted:
        return 0
    counted.add(id(element))
    factors: Iterable[Factor] = (factor for term in element.terms for factor in term)
    return 1 + sum(1 if isinstance(f, tuple) else _factorization_size(f, counted) for f in factors)


def _show_term(item: tuple[Term, int]) -> str:
    term, coefficient = item
    factors = sorted(f"{f[0]}={f[1]}" if isinstance(f, tuple) else f"({f})" for f in term)
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return " * ".join(factors)


@dataclass(frozen=True)
class FactorizedRing(Ring[Factorization]):
    """Relations over Z with union as + and join as *, in the factorized representation.

    A product of unions over different columns is kept as it is: m + n values stand for m * n
    records (recent_increments_in_ivm, Example 4.4). A product of payloads that share a column is
    a join, not a factorization, and is listed.

    Two expressions of one relation may look different. `equal` expands them, unless they look
    the same; `is_zero` expands only expressions with counts of both signs. So cancelled entries
    always vanish. A payload kept by adding deltas grows by one term per delta; to stay small, let
    the views of a tree hold one factor each and multiply when the result is wanted.

    >>> a, b = FACTORIZED.lift("a"), FACTORIZED.lift("b")
    >>> print(FACTORIZED.multiply(FACTORIZED.add(a(1), a(2)), FACTORIZED.add(b(3), b(4))))
    (a=1 + a=2) * (b=3 + b=4)
    """

    name = "factorized relational payloads"
    zero = Factorization({})
    one = Factorization({frozenset(): 1})

    def add(self, left: Factorization, right: Factorization) -> Factorization:
        total = dict(left.terms)
        for term, coefficient in right.terms.items():
            total[term] = total.get(term, 0) + coefficient
            if not total[term]:
                del total[term]
        return Factorization(total)

    def multiply(self, left: Factorization, right: Factorization) -> Factorization:
        if not left.terms or not right.terms:
            return self.zero
        if left.columns & right.columns:
            return self.from_listing(RELATIONAL.multiply(left.expand(), right.expand()))
        if not left.columns:
            return _scaled_factorization(right, sum(left.terms.values()))
        if not right.columns:
            return _scaled_factorization(left, sum(right.terms.values()))
        left_term, left_coefficient = _as_term(left)
        right_term, right_coefficient = _as_term(right)
        return Factorization({left_term | right_term: left_coefficient * right_coefficient})

    def negate(self, element: Factorization) -> Factorization:
        return _scaled_factorization(element, -1)

    def is_zero(self, element: Factorization) -> bool:
        return element.is_empty

    def equal(self, left: Factorization, right: Factorization) -> bool:
        return left == right or left.expand() == right.expand()

    def from_integer(self, n: int) -> Factorization:
        return Factorization({frozenset(): n} if n else {})

    def from_listing(self, listing: Listing) -> Factorization:
        """The listed relation as a union of products of values."""
        terms: dict[Term, int] = {frozenset(record): n for record, n in listing.items()}
        return Factorization(terms)

    def lift(self, column: str) -> Lift[Factorization]:
        """g(x) = the relation with the one record (column: x)."""
        return lambda value: Factorization({frozenset({(column, value)}): 1})

    def to_relation(self, element: Factorization, schema: tuple[str, ...]) -> Relation[int]:
        """The payload, expanded, as a relation with these columns."""
        return RELATIONAL.to_relation(element.expand(), schema)


def _scaled_factorization(element: Factorization, n: int) -> Factorization:
    return Factorization({term: n * c for term, c in element.terms.items()} if n else {})


def _as_term(element: Factorization) -> tuple[Term, int]:
    # A single product joins the product around it, which keeps equal expressions equal.
    if len(element.terms) == 1:
        return next(iter(element.terms.items()))
    return frozenset({element}), 1


FACTORIZED = FactorizedRing()
