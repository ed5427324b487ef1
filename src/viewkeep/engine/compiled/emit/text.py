"""Text of one function on its way: lines, variables, and the rows that were looked up.

A row that was looked up is kept in a variable for as long as its block lasts, so that fused maps
cost one look-up together. A row whose maps have all become zero is removed at the end of that
block (`settle`). This is safe since a map is always found by the variables of its own key: within
a block, two accesses to a table are to the same row.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from viewkeep.engine.compiled.emit.maps import column_place, number_at, words
from viewkeep.engine.compiled.emit.tables import call_arguments, descriptor
from viewkeep.engine.compiled.layout import Memory, Store, Table
from viewkeep.engine.compiled.rings import RingShape

Names = dict[str, str]
"""The variables of the text that hold the bound variables of the query."""


@dataclass(frozen=True)
class Payload:
    """The words of a payload as expressions; none of them for the payload one."""

    shape: RingShape
    words: tuple[str, ...] | None

    def spelled(self) -> list[str]:
        """The words, also of one."""
        return list(self.words) if self.words is not None else self.shape.ones()


@dataclass
class _Block:
    """Rows that were looked up in a block of text, and the tables that it changed."""

    rows: dict[str, str] = field(default_factory=dict)
    changed: dict[str, Table] = field(default_factory=dict)
    lists: dict[tuple[str, ...], tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Lifts:
    """Lines that compute the payload of an atom's tuple from its keys k0, k1, ... and its
    multiplicity m."""

    lines: dict[int, list[str]]
    everywhere: bool = False
    """Whether tuples come as multiplicities, and not as payloads, into all functions."""
    areas: tuple[str, ...] = ()
    """Names in the lines that stand for places of the state."""
    floats: Mapping[int, list[tuple[str, str]]] = field(default_factory=dict)
    """By atom, the bits of the floats that tuples are lifted by, and when they are there."""

    def placed(self, places: Mapping[str, int]) -> "Lifts":
        """The same with the places in place of their names."""
        lines = {
            atom: [_NAMED_PLACE.sub(lambda found: str(places[found[0]]), line) for line in own]
            for atom, own in self.lines.items()
        }
        return Lifts(lines, self.everywhere, self.areas, self.floats)

    def column_lines(self, arity: int, shape: RingShape) -> list[str]:
        """The addresses of the columns of keys, and of multiplicities or payloads."""
        numbers = 1 if self.everywhere else len(shape.kinds)
        return [f"    c{i} = columns[{i}]" for i in range(arity + numbers)]

    def tuple_lines(self, atom: int, arity: int, shape: RingShape) -> list[str]:
        """The keys and the payload of the tuple in row i of the columns."""
        lines = [f"k{i} = c{i}[i]" for i in range(arity)]
        if self.everywhere:
            return [*lines, f"m = c{arity}[i]", *self.lines[atom]]
        payload = zip(shape.names("p"), shape.kinds, strict=True)
        return lines + [
            f"{name} = {number_at(kind, f'c{arity + i}', column_place(kind, 'i'))}"
            for i, (name, kind) in enumerate(payload)
        ]


_NAMED_PLACE = re.compile(r"\bUNIT_\d+_\d+\b")


Then = Callable[[Names, Payload], None]
Locals = Callable[[str], str]


class TextWriter:
    """Writes one function; `local` gives local deltas their full names.

    Maps that are `stable` are not changed by the function, so that groups stay where they are.
    """

    def __init__(
        self, memory: Memory, local: Locals = lambda name: name, stable: Collection[str] = ()
    ) -> None:
        self.memory, self._local, self._stable = memory, local, stable
        self.lines: list[str] = []
        self._depth, self._number = 1, 0
        self._blocks: list[_Block] = [_Block()]
        self.cursors: list[tuple[int, str]] | None = None
        """While rows are told in portions: the loops so far, each with its word of the state."""
        self.next_cursor = 0
        self.ignored: Collection[str] = ()
        """Inputs that are not kept."""

    # --- text -------------------------------------------------------------------------------------

    def emit(self, *lines: str) -> None:
        """Lines at the present depth."""
        self.lines += ["    " * self._depth + line for line in lines]

    def fresh(self, stem: str) -> str:
        """A variable of its own."""
        self._number += 1
        return f"{stem}_{self._number}"

    @contextmanager
    def inside(self, header: str) -> Iterator[None]:
        """What follows is in the block of this header; its rows are settled at its end."""
        self.emit(header)
        self._depth += 1
        self._blocks.append(_Block())
        yield
        self.settle()
        self._blocks.pop()
        self.emit("pass")
        self._depth -= 1

    def settle(self) -> None:
        """Remove the rows of this block that hold nothing any more."""
        block = self._blocks[-1]
        for name, table in block.changed.items():
            row = block.rows[name]
            self.emit(f"if {row} != 0:")
            test = self._empty_row_test(table, row)
            self.emit(
                f"    if {test}:", f"        remove_{table.shape}({descriptor(table.at)}, {row})"
            )
        block.rows.clear()
        block.changed.clear()

    def _empty_row_test(self, table: Table, row: str) -> str:
        stores = [each for each in self.memory.stores.values() if each.table is table]
        return " and ".join(each.shape.zero_test(words(each, row)) for each in stores)

    # --- rows -------------------------------------------------------------------------------------

    def row(self, store: Store, names: Names) -> str:
        """The variable with the row of a map's entry, 0 if there is none."""
        table = store.table
        for block in self._blocks:
            if table.name in block.rows:
                return block.rows[table.name]
        row = self.fresh("row")
        if table.key:
            key = call_arguments([names[v] for v in table.key])
            self.emit(f"{row} = find_{table.shape}({descriptor(table.at)}, {key})")
        else:
            self.emit(f"{row} = {descriptor(table.at)}")
        self._blocks[-1].rows[table.name] = row
        return row

    def known_row(self, store: Store, row: str) -> None:
        """The row of a map's entry is in this variable already."""
        self._blocks[-1].rows[store.table.name] = row

    def _write_row_to_change(self, store: Store, names: Names) -> str:
        row, table = self.row(store, names), store.table
        if table.key:
            key = call_arguments([names[v] for v in table.key])
            self.emit(f"if {row} == 0:")
            self.emit(f"    {row} = insert_{table.shape}({descriptor(table.at)}, {key})")
            owner = next(block for block in self._blocks if table.name in block.rows)
            owner.changed[table.name] = table
        return row

    # --- payloads ---------------------------------------------------------------------------------

    def times(self, payload: Payload, factor: Sequence[str]) -> Payload:
        """The product, in variables of its own; of payloads that are counts, that of the counts."""
        shape = payload.shape
        factor = factor[: len(shape.kinds)]
        product = list(factor)
        if payload.words is not None:
            product = shape.multiply(payload.words, self.in_variables(shape, factor))
        return Payload(shape, tuple(self.in_variables(shape, product)))

    def in_variables(self, shape: RingShape, values: Sequence[str]) -> list[str]:
        """The values in variables, so that none is computed twice."""
        names = shape.names(self.fresh("w") + "_")
        self.emit(*(f"{name} = {value}" for name, value in zip(names, values, strict=True)))
        return names
