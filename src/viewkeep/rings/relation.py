"""Relations over a ring: finite maps from tuples to payloads, closed under union, join and sum."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

from viewkeep.errors import RingError, SchemaError
from viewkeep.rings.index import (
    PAYLOAD,
    PLACE,
    ROW,
    Entry,
    Index,
    Row,
    RowIndex,
    key_function,
    remove_entry,
)
from viewkeep.rings.integers import INTEGERS
from viewkeep.rings.lifting import Lifts
from viewkeep.rings.ring import Ring
from viewkeep.rings.schema import check_schema, misfit, positions_in_schema, same_positions
from viewkeep.rings.table import render_table

D = TypeVar("D")


class Relation(Generic[D]):
    """A finite map from tuples over a schema to a ring; absent means zero.

    The data structure of triangle_ivm_epsilon, section 2, "Computational Model": look-up, insert
    and removal in constant time, enumeration with constant delay, size in constant time, and any
    number of indexes. An entry that becomes zero disappears at once, from the indexes too. An
    operation that raises leaves the relation as it was.

    Values are compared as dict keys are: 1, 1.0 and True are one value. NaN equals nothing, not
    even itself, so a row that holds one cannot be deleted: replace it before it gets here.

    >>> staff = Relation.from_mapping(("employee", "age"), {("Joe", 30): 2, ("Steve", 40): 1})
    >>> staff.add(("Joe", 30), -2)
    >>> print(staff)
    employee  age  ->  #
    Steve     40   ->  1
    """

    __slots__ = (
        "_arity",
        "_by_row",
        "_changes",
        "_entries",
        "_indexes",
        "_is_zero",
        "_places",
        "_plus",
        "ring",
        "schema",
    )

    @overload
    def __init__(self: "Relation[int]", schema: Iterable[str]) -> None: ...
    @overload
    def __init__(self, schema: Iterable[str], ring: Ring[D]) -> None: ...
    def __init__(self, schema: Iterable[str], ring: Ring[Any] = INTEGERS) -> None:
        self.schema = check_schema(schema)
        self.ring: Ring[D] = ring
        self._plus, self._is_zero = ring.add, ring.is_zero
        self._arity = len(self.schema)
        self._by_row: dict[Row, Entry] = {}
        self._entries: list[Entry] = []
        self._indexes: dict[tuple[str, ...], Index[D]] = {}
        # Room in a new entry for its place in each index: growing it later costs a reallocation.
        self._places: tuple[int, ...] = ()
        # A cell shared with the indexes: how often a row was inserted or removed.
        self._changes = [0]

    @overload
    @classmethod
    def from_rows(cls, schema: Iterable[str], rows: Iterable[Sequence[Any]]) -> "Relation[int]": ...
    @overload
    @classmethod
    def from_rows(
        cls, schema: Iterable[str], rows: Iterable[Sequence[Any]], ring: Ring[D]
    ) -> "Relation[D]": ...
    @classmethod
    def from_rows(
        cls, schema: Iterable[str], rows: Iterable[Sequence[Any]], ring: Ring[Any] = INTEGERS
    ) -> "Relation[Any]":
        """Each row once more for every time it is listed."""
        relation = Relation(schema, ring)
        for row in rows:
            # Text is a sequence too, but is never meant as a row.
            if isinstance(row, str):
                raise SchemaError(f"row {row!r} is text; expected a tuple of values")
            relation.add(tuple(row), ring.one)
        return relation

    @overload
    @classmethod
    def from_mapping(
        cls, schema: Iterable[str], payloads: Mapping[Row, int]
    ) -> "Relation[int]": ...
    @overload
    @classmethod
    def from_mapping(
        cls, schema: Iterable[str], payloads: Mapping[Row, D], ring: Ring[D]
    ) -> "Relation[D]": ...
    @classmethod
    def from_mapping(
        cls, schema: Iterable[str], payloads: Mapping[Row, Any], ring: Ring[Any] = INTEGERS
    ) -> "Relation[Any]":
        """Each row with its payload."""
        relation = Relation(schema, ring)
        for row, payload in payloads.items():
            relation.add(row, payload)
        return relation

    def copy(self) -> "Relation[D]":
        """The same map, without the indexes."""
        copied = Relation(self.schema, self.ring)
        for entry in self._entries:
            copied._insert_row(entry[ROW], entry[PAYLOAD])
        return copied

    def clear(self) -> None:
        """Remove every row; the indexes stay."""
        self._by_row.clear()
        self._entries.clear()
        for index in self._indexes.values():
            index.clear()
        self._changes[0] += 1

    # --- one tuple ------------------------------------------------------------------------------

    def add(self, row: Row, payload: D) -> None:
        """K(row) := K(row) + payload, in constant time: an insert, an update or a delete."""
        self.change(row, payload)

    def change(self, row: Row, payload: D) -> int:
        """Add, and tell what happened to the row: 1 it appeared, -1 it vanished, 0 neither."""
        # Written out rather than calling `_find`: every map of every update passes here.
        try:
            entry = self._by_row.get(row)
        except TypeError:
            raise self._unhashable_row_error(row) from None
        if entry is None:
            if not isinstance(row, tuple) or len(row) != self._arity:
                raise misfit(row, self.schema)
            if self._is_zero(payload):
                return 0
            self._insert_row(row, payload)
            return 1
        total = self._plus(entry[PAYLOAD], payload)
        if self._is_zero(total):
            self._remove_row(entry)
            return -1
        entry[PAYLOAD] = total
        return 0

    @property
    def find_entry(self) -> Callable[[Row], Entry | None]:
        """The function from rows to entries, for engines that look up often; None if absent."""
        return self._by_row.get

    @property
    def entries(self) -> list[Entry]:
        """All entries, for engines that iterate often; not to be changed."""
        return self._entries

    def lookup(self, row: Row) -> D:
        """K(row); zero when the row is absent."""
        entry = self._find_row(row)
        return self.ring.zero if entry is None else entry[PAYLOAD]

    def __contains__(self, row: Row) -> bool:
        return self._find_row(row) is not None

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Row]:
        """The rows with a non-zero payload, each once, with constant delay."""
        return (row for row, _ in self.items())

    def items(self) -> Iterator[tuple[Row, D]]:
        """The rows with their payloads, with constant delay.

        Inserting or removing rows meanwhile raises RuntimeError, as for a dict; changing the
        payload of a row that stays is allowed.
        """
        changes = self._changes
        before = changes[0]
        for entry in self._entries:
            yield entry[ROW], entry[PAYLOAD]
            if changes[0] != before:
                raise RuntimeError("relation changed size during enumeration")

    def index_on(self, columns: Iterable[str]) -> Index[D]:
        """The index on these columns, in this order; built on the first call, then maintained."""
        order = tuple(columns)
        index = self._indexes.get(order)
        if index is None:
            place = PLACE + 1 + len(self._indexes)
            index = Index(order, self._column_positions(order), place, self._changes)
            for entry in self._entries:
                entry.append(0)
                index.insert(entry)
            self._indexes[order] = index
            self._places += (0,)
        return index

    def _index_for(self, columns: tuple[str, ...]) -> "Index[D] | RowIndex[D] | None":
        """What finds rows by these columns, in any order, without building anything."""
        if set(columns) == set(self.schema):
            return RowIndex(self.schema, self._by_row)
        for index in self._indexes.values():
            if set(index.columns) == set(columns):
                return index
        return None

    def _find_row(self, row: Row) -> Entry | None:
        try:
            entry = self._by_row.get(row)
        except TypeError:
            raise self._unhashable_row_error(row) from None
        # Checked on a miss only: a row that was found is a row that fitted.
        if entry is None and (not isinstance(row, tuple) or len(row) != self._arity):
            raise misfit(row, self.schema)
        return entry

    def _unhashable_row_error(self, row: Row) -> SchemaError:
        return SchemaError(f"row {row!r} holds a value that cannot be hashed")

    def _insert_row(self, row: Row, payload: D) -> None:
        entry = [row, payload, len(self._entries), *self._places]
        self._by_row[row] = entry
        self._entries.append(entry)
        for index in self._indexes.values():
            index.insert(entry)
        self._changes[0] += 1

    def _remove_row(self, entry: Entry) -> None:
        del self._by_row[entry[ROW]]
        remove_entry(self._entries, entry, PLACE)
        for index in self._indexes.values():
            index.remove(entry)
        self._changes[0] += 1

    # --- whole relations ------------------------------------------------------------------------

    def update(self, delta: "Relation[D]") -> None:
        """K := K + delta, in place; the columns of delta may come in another order."""
        self._require_same_ring(delta)
        reorder = key_function(same_positions(delta.schema, self.schema))
        # All sums first: one that the ring refuses must leave everything unchanged.
        totals = [
            (row, self._plus(self.lookup(row), payload))
            for row, payload in ((reorder(row), payload) for row, payload in delta.items())
        ]
        for row, total in totals:
            self._add_trusted_row(row, total)

    def _add_trusted_row(self, row: Row, payload: D) -> None:
        entry = self._by_row.get(row)
        if self._is_zero(payload):
            if entry is not None:
                self._remove_row(entry)
        elif entry is None:
            self._insert_row(row, payload)
        else:
            entry[PAYLOAD] = payload

    def __add__(self, other: "Relation[D]") -> "Relation[D]":
        """Union: (R + S)(x) = R(x) + S(x)."""
        union = self.copy()
        union.update(other)
        return union

    def __neg__(self) -> "Relation[D]":
        """(-R)(x) = -R(x): the update that takes R back."""
        negated = Relation(self.schema, self.ring)
        for row, payload in self.items():
            negated.add(row, self.ring.negate(payload))
        return negated

    def __sub__(self, other: "Relation[D]") -> "Relation[D]":
        return self + (-other)

    def __mul__(self, other: "Relation[D]") -> "Relation[D]":
        """Natural join: (R * S)(x) = R(x[R]) * S(x[S]); the columns of R come first."""
        self._require_same_ring(other)
        shared = tuple(column for column in self.schema if column in other.schema)
        rest = tuple(column for column in other.schema if column not in shared)
        joined = Relation(self.schema + rest, self.ring)
        rest_of = key_function(other._column_positions(rest))
        multiply = self.ring.multiply
        for left, left_payload, right, right_payload in _matching_pairs(self, other, shared):
            joined.add(left + rest_of(right), multiply(left_payload, right_payload))
        return joined

    def marginalise(
        self, variables: str | Iterable[str], lifts: Lifts[D] | None = None
    ) -> "Relation[D]":
        """Sum variables away, each lifted first: V(y) = sum_x R(x, y) * g_X(x).

        Variables without a lift count as one; lifts of other variables are ignored, so that one
        mapping serves a whole query.

        >>> parts = Relation.from_rows(("pid", "price"), [("p1", 10), ("p1", 5), ("p2", 7)])
        >>> print(parts.marginalise("price", {"price": int}))
        pid  ->  #
        p1   ->  15
        p2   ->  7
        """
        summed_columns = (variables,) if isinstance(variables, str) else tuple(variables)
        places = zip(summed_columns, self._column_positions(summed_columns), strict=True)
        lifted = [(place, lifts[v]) for v, place in places if lifts and v in lifts]
        result = Relation((c for c in self.schema if c not in summed_columns), self.ring)
        key_of = key_function(self._column_positions(result.schema))
        multiply = self.ring.multiply
        for row, payload in self.items():
            for place, lift in lifted:
                payload = multiply(payload, lift(row[place]))
            result.add(key_of(row), payload)
        return result

    def project(self, columns: Iterable[str]) -> "Relation[D]":
        """Keep these columns, in this order; the payloads of rows that coincide are summed."""
        result = Relation(columns, self.ring)
        key_of = key_function(self._column_positions(result.schema))
        for row, payload in self.items():
            result.add(key_of(row), payload)
        return result

    def rename(self, names: Mapping[str, str]) -> "Relation[D]":
        """The same map with some columns renamed."""
        self._column_positions(tuple(names))
        renamed = Relation((names.get(column, column) for column in self.schema), self.ring)
        for row, payload in self.items():
            renamed._insert_row(row, payload)
        return renamed

    def __eq__(self, other: object) -> bool:
        """Equal as functions: the same ring and columns, in any order, and equal payloads."""
        if not isinstance(other, Relation):
            return NotImplemented
        if self.ring != other.ring or sorted(self.schema) != sorted(other.schema):
            return False
        ours, theirs = self, other.project(self.schema)
        # Over the rows of both, since a rounding ring may hold a tiny rest on one side only.
        rows = dict.fromkeys((*ours, *theirs))
        return all(self.ring.equal(ours.lookup(row), theirs.lookup(row)) for row in rows)

    def __str__(self) -> str:
        return render_table(self.schema, self.items(), len(self))

    def __repr__(self) -> str:
        return f"<Relation ({', '.join(self.schema)}) of {len(self)} rows over {self.ring.name}>"

    def _column_positions(self, columns: tuple[str, ...]) -> tuple[int, ...]:
        return positions_in_schema(self.schema, columns)

    def _require_same_ring(self, other: "Relation[Any]") -> None:
        if self.ring != other.ring:
            raise RingError(
                f"cannot combine a relation over the {self.ring.name} "
                f"with one over the {other.ring.name}; convert one of them first"
            )


def _matching_pairs(
    left: Relation[D], right: Relation[D], shared: tuple[str, ...]
) -> Iterator[tuple[Row, D, Row, D]]:
    """The pairs of rows that agree on the shared columns, by probing one side with the other."""
    # Probing what is already indexed costs only the rows of the other side: a delta query.
    indexed = [side for side in (left, right) if side._index_for(shared) is not None]
    inner = max(indexed, key=len) if indexed else min(left, right, key=len)
    if inner is right:
        yield from _probe_relation(left, right, shared)
    else:
        for row, payload, match, match_payload in _probe_relation(right, left, shared):
            yield match, match_payload, row, payload


def _probe_relation(
    outer: Relation[D], inner: Relation[D], shared: tuple[str, ...]
) -> Iterator[tuple[Row, D, Row, D]]:
    index = inner._index_for(shared)
    if index is None:
        # A copy is indexed, so that a join never leaves an index behind to be maintained.
        index = inner.copy().index_on(shared)
    key_of = key_function(outer._column_positions(index.columns))
    for row, payload in outer.items():
        for match, match_payload in index.matches(key_of(row)):
            yield row, payload, match, match_payload
