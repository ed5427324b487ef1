"""The text of joins: loops over lists and tables, of which the smallest is iterated."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from viewkeep.engine.compiled.emit.maps import entry_width, numbers_at, words
from viewkeep.engine.compiled.emit.tables import EMPTY, call_arguments, descriptor
from viewkeep.engine.compiled.emit.text import Names, Payload, TextWriter, Then
from viewkeep.engine.compiled.layout import Index, Store, identifier
from viewkeep.plan.program import Access, Join

TURNS_AHEAD = 6
"""How many turns of a loop ahead places in tables are fetched from memory."""


class LoopWriter(TextWriter):
    """Writes loops over the entries of maps."""

    def loop(self, join: Join, names: Names, payload: Payload, then: Then) -> None:
        if len(join.accesses) == 1:
            self.over_one(join.accesses[0], join.opens, names, payload, then)
        else:
            self._write_smallest_loop(join, names, payload, then)

    def over_one(
        self, access: Access, opens: Sequence[str], names: Names, payload: Payload, then: Then
    ) -> None:
        """A loop over a group of one map, or over all of it."""
        store = self.memory.stores[access.map]
        columns = tuple(v for v in store.key if v in names)
        index = store.index(columns)
        if index is None:
            self._write_scan(store, access.weigh, names, payload, then)
            return
        at, count = self.list_of(store, index, names)
        with self.turns(count) as i:
            entry = self.fresh("entry")
            width = entry_width(store, index)
            self.emit(f"{entry} = {at} + {i} * {8 * width}")
            bound = names | self._names_of_entry(index, opens, entry)
            if not access.weigh:
                then(bound, payload)
            elif index.carries:
                then(bound, self.times(payload, self._payload_of_entry(store, index, entry)))
            else:
                row = self.row(store, bound)
                then(bound, self.times(payload, words(store, row)))

    def list_of(self, store: Store, index: Index, names: Names) -> tuple[str, str]:
        """Variables with the address of a group's list and its length."""
        place = (store.name, *index.columns, *(names[v] for v in index.columns))
        for block in self._blocks:
            if place in block.lists:
                return block.lists[place]
        list_ = self.list_search(index, names)
        if store.name in self._stable:
            self._blocks[-1].lists[place] = list_
        return list_

    def list_search(self, index: Index, names: Names) -> tuple[str, str]:
        """The lines that look a group's list up, and the variables of `list_of`."""
        at, count, g, pool = (self.fresh(stem) for stem in ("at", "count", "g", "pool"))
        group, arity = index.groups, len(index.columns)
        self.emit(f"{at} = 0", f"{count} = 0")
        start = f"{g} = {descriptor(group.at)}"
        if arity:
            key = call_arguments([names[v] for v in index.columns])
            start = f"{g} = find_{group.shape}({descriptor(group.at)}, {key})"
        self.emit(
            start,
            f"if {g} != 0:",
            f"    {pool} = {descriptor(index.pool)}",
            f"    {at} = {pool}[0] + {g}[{arity}] * 8",
            f"    {count} = {g}[{arity + 1}]",
        )
        return at, count

    @contextmanager
    def turns(self, count: str) -> Iterator[str]:
        """A loop of so many turns; while output is read in portions, it resumes where it
        stopped."""
        i = self.fresh("i")
        if self.cursors is None:
            with self.inside(f"for {i} in range({count}):"):
                yield i
            return
        word, start = self.next_cursor, self.fresh("start")
        self.next_cursor += 1
        self.emit(f"{start} = c[{word}]", f"c[{word}] = 0")
        self.cursors.append((word, i))
        with self.inside(f"for {i} in range({start}, {count}):"):
            yield i
        self.cursors.pop()

    def _names_of_entry(self, index: Index, opens: Sequence[str], entry: str) -> Names:
        names = {}
        for variable in opens:
            names[variable] = self.fresh(f"v_{identifier(variable)}")
            self.emit(f"{names[variable]} = {entry}[{index.rest.index(variable)}]")
        return names

    def _payload_of_entry(self, store: Store, index: Index, entry: str) -> list[str]:
        return numbers_at(store.shape, entry, len(index.rest))

    def _write_scan(
        self, store: Store, weigh: bool, names: Names, payload: Payload, then: Then
    ) -> None:
        """All entries of a map that has its table for itself."""
        table, row = store.table, self.fresh("row")
        room = self.fresh("room")
        self.emit(f"d = {descriptor(table.at)}", f"{room} = d[1] + 1")
        with self.turns(room) as i:
            self.emit(
                f"d = {descriptor(table.at)}",
                f"{row} = d[0] + {i} * {8 * table.stride}",
                f"if {row}[0] == {EMPTY}:",
                "    continue",
                f"if {store.shape.zero_test(words(store, row))}:",
                "    continue",
            )
            bound = dict(names)
            for place, variable in enumerate(table.key):
                bound[variable] = self.fresh(f"v_{identifier(variable)}")
                self.emit(f"{bound[variable]} = {row}[{place}]")
            self.known_row(store, row)
            then(bound, self.times(payload, words(store, row)) if weigh else payload)

    def _write_smallest_loop(self, join: Join, names: Names, payload: Payload, then: Then) -> None:
        """The smallest group is iterated; the others are asked for each of its entries."""
        sides = [_Side.of(self, access, names) for access in join.accesses]
        present = " and ".join(f"{side.count} != 0" for side in sides)
        with self.inside(f"if {present}:"):
            which, count, at = (self.fresh(stem) for stem in ("which", "count", "at"))
            self.emit(f"{which} = 0", f"{count} = {sides[0].count}", f"{at} = {sides[0].at}")
            for number, side in enumerate(sides[1:], start=1):
                self.emit(f"if {side.count} < {count}:", f"    {which} = {number}")
                self.emit(f"    {count} = {side.count}", f"    {at} = {side.at}")
            with self.turns(count) as i:
                if self._stable and len(sides) == 2:  # a trigger; what runs once is better small
                    self._write_prefetch(sides, join.opens, (which, count, at, i), names)
                self._write_smallest_entry(sides, join.opens, (which, at, i), names, payload, then)

    def _write_prefetch(
        self,
        sides: list["_Side"],
        opens: Sequence[str],
        place: tuple[str, str, str, str],
        names: Names,
    ) -> None:
        """Fetch from memory what will be looked up some turns later."""
        which, count, at, i = place
        later = self.fresh("later")
        bound = names | {v: self.fresh("v") for v in opens}
        with self.inside(f"if {i} + {TURNS_AHEAD} < {count}:"):
            self._write_by_side(
                which, [s.entry(later, at, f"({i} + {TURNS_AHEAD})", opens, bound) for s in sides]
            )
            for number, side in enumerate(sides):
                table = side.store.table
                key = call_arguments([bound[v] for v in table.key])
                self.emit(f"if {which} != {number}:")
                self.emit(f"    hint_{table.shape}({descriptor(table.at)}, {key})")

    def _write_by_side(self, which: str, lines: list[list[str]]) -> None:
        """The lines for the side that is iterated, without a branch where all sides have the
        same."""
        if all(each == lines[0] for each in lines):
            self.emit(*lines[0])
            return
        for number, each in enumerate(lines):
            self.emit(f"if {which} == {number}:", *(f"    {line}" for line in each))

    def _write_smallest_entry(
        self,
        sides: list["_Side"],
        opens: Sequence[str],
        place: tuple[str, str, str],
        names: Names,
        payload: Payload,
        then: Then,
    ) -> None:
        which, at, i = place
        bound = names | {v: self.fresh(f"v_{identifier(v)}") for v in opens}
        entry = self.fresh("entry")
        self._write_by_side(which, [side.entry(entry, at, i, opens, bound) for side in sides])
        for number, side in enumerate(sides):
            weights = side.store.shape.names(self.fresh("w") + "_") if side.weigh else []
            own = side.index.carries or not side.weigh
            if own and weights:
                carried = self._payload_of_entry(side.store, side.index, entry)
                self.emit(f"if {which} == {number}:")
                self.emit(*(f"    {w} = {c}" for w, c in zip(weights, carried, strict=True)))
            # Where the list has no payloads, the iterated side is asked too.
            self.emit(f"if {which} != {number if own else -1}:")
            row, table = self.fresh("row"), side.store.table
            key = call_arguments([bound[v] for v in table.key])
            self.emit(
                f"    {row} = find_{table.shape}({descriptor(table.at)}, {key})",
                f"    if {row} == 0:",
                "        continue",
                f"    if {side.store.shape.zero_test(words(side.store, row))}:",
                "        continue",
            )
            texts = words(side.store, row)
            self.emit(*(f"    {w} = {f}" for w, f in zip(weights, texts)))  # noqa: B905 - or none
            if side.weigh:
                payload = self.times(payload, weights)
        then(bound, payload)


@dataclass(frozen=True)
class _Side:
    """One map of a join: its group for what is bound."""

    store: Store
    index: Index
    weigh: bool
    at: str
    count: str
    width: int

    @staticmethod
    def of(writer: LoopWriter, access: Access, names: Names) -> "_Side":
        store = writer.memory.stores[access.map]
        index = store.index(tuple(v for v in store.key if v in names))
        assert index is not None  # the layout gives every such map a list
        at, count = writer.list_of(store, index, names)
        return _Side(store, index, access.weigh, at, count, entry_width(store, index))

    def entry(
        self, entry: str, at: str, number: str, opens: Sequence[str], bound: Names
    ) -> list[str]:
        """Lines that read the variables of an entry of the list."""
        places = [(bound[v], self.index.rest.index(v)) for v in opens]
        return [
            f"{entry} = {at} + {number} * {8 * self.width}",
            *(f"{name} = {entry}[{place}]" for name, place in places),
        ]
