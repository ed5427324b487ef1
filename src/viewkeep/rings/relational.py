"""The relational data ring: payloads that are relations, listed record by record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from viewkeep.errors import SchemaError
from viewkeep.rings.lifting import Lift
from viewkeep.rings.relation import Relation
from viewkeep.rings.ring import Ring

# A record names its columns, so that payloads over different columns can be summed and
# multiplied too: without that the payloads would not be a ring. Never changed once made.
Record: TypeAlias = frozenset[tuple[str, Any]]
Listing: TypeAlias = Mapping[Record, int]


def join_records(left: Record, right: Record) -> Record | None:
    """The record that agrees with both, or None where they contradict each other."""
    merged = left | right
    return merged if len(dict(merged)) == len(merged) else None


@dataclass(frozen=True)
class RelationalRing(Ring[Listing]):
    """Relations over Z with union as + and natural join as *, in the listing representation.

    The relational data ring that triangle_ivm_epsilon, section 7, refers to. One is the relation
    with the empty record. A free variable that is lifted here and then summed away goes on in the
    payload: the root of a view tree then holds the listed query result. Payloads are values, so
    adding one record copies the payload.

    >>> a1, a2, b = (RELATIONAL.lift(c)(v) for c, v in [("a", 1), ("a", 2), ("b", 7)])
    >>> result = RELATIONAL.multiply(RELATIONAL.add(a1, a2), b)
    >>> print(RELATIONAL.to_relation(result, ("a", "b")))
    a  b  ->  #
    1  7  ->  1
    2  7  ->  1
    """

    name = "relational payloads"

    @property
    def zero(self) -> Listing:
        return {}

    @property
    def one(self) -> Listing:
        return {frozenset(): 1}

    def add(self, left: Listing, right: Listing) -> Listing:
        if len(left) < len(right):
            left, right = right, left
        total = dict(left)
        for record, count in right.items():
            add_count(total, record, count)
        return total

    def multiply(self, left: Listing, right: Listing) -> Listing:
        joined: dict[Record, int] = {}
        for left_record, left_count in left.items():
            for right_record, right_count in right.items():
                record = join_records(left_record, right_record)
                if record is not None:
                    add_count(joined, record, left_count * right_count)
        return joined

    def negate(self, element: Listing) -> Listing:
        return {record: -count for record, count in element.items()}

    def is_zero(self, element: Listing) -> bool:
        return not element

    def from_integer(self, n: int) -> Listing:
        return {frozenset(): n} if n else {}

    def lift(self, column: str) -> Lift[Listing]:
        """g(x) = the relation with the one record (column: x)."""
        return lambda value: {frozenset({(column, value)}): 1}

    def to_relation(self, element: Listing, schema: tuple[str, ...]) -> Relation[int]:
        """The payload as a relation with these columns."""
        relation = Relation(schema)
        for record, count in element.items():
            values = dict(record)
            if values.keys() != set(schema):
                raise SchemaError(
                    f"the payload holds a record over ({', '.join(sorted(values))}), "
                    f"not over ({', '.join(schema)})"
                )
            relation.add(tuple([values[column] for column in schema]), count)
        return relation


def add_count(counts: dict[Record, int], record: Record, count: int) -> None:
    """Add to one count of a listing under construction, so that no zero is ever kept."""
    total = counts.get(record, 0) + count
    if total:
        counts[record] = total
    else:
        del counts[record]


RELATIONAL = RelationalRing()
