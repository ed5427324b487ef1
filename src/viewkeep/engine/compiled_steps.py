"""From steps of the trigger language to text: nested loops over lists, look-ups in tables.

A row that was looked up is kept in a variable for as long as its block lasts, so that fused maps
cost one look-up together. A row whose maps have all become zero is removed at the end of that
block (`settle`). This is safe since a map is always found by the variables of its own key: within
a block, two accesses to a table are to the same row.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from viewkeep.engine.compiled_layout import Index, Memory, Store, Table, identifier, without_opens
from viewkeep.engine.compiled_rings import COUNT, Shape
from viewkeep.engine.compiled_tables import (
    EMPTY,
    descriptor,
    entry_width,
    function_name,
    joined,
    words,
)
from viewkeep.plan.program import Access, Branch, Collect, Join, Step, Union, Update

TURNS_AHEAD = 6
"""How many turns of a loop ahead places in tables are fetched from memory."""

Names = dict[str, str]
"""The variables of the text that hold the bound variables of the query."""


@dataclass(frozen=True)
class Payload:
    """The words of a payload as expressions; none of them for the payload one."""

    shape: Shape
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


Then = Callable[[Names, Payload], None]
Locals = Callable[[str], str]


class StepWriter:
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
            test = self._nothing_left(table, row)
            self.emit(
                f"    if {test}:", f"        remove_{table.shape}({descriptor(table.at)}, {row})"
            )
        block.rows.clear()
        block.changed.clear()

    def _nothing_left(self, table: Table, row: str) -> str:
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
            key = joined([names[v] for v in table.key])
            self.emit(f"{row} = find_{table.shape}({descriptor(table.at)}, {key})")
        else:
            self.emit(f"{row} = {descriptor(table.at)}")
        self._blocks[-1].rows[table.name] = row
        return row

    def known_row(self, store: Store, row: str) -> None:
        """The row of a map's entry is in this variable already."""
        self._blocks[-1].rows[store.table.name] = row

    def _row_to_change(self, store: Store, names: Names) -> str:
        row, table = self.row(store, names), store.table
        if table.key:
            key = joined([names[v] for v in table.key])
            self.emit(f"if {row} == 0:")
            self.emit(f"    {row} = insert_{table.shape}({descriptor(table.at)}, {key})")
            owner = next(block for block in self._blocks if table.name in block.rows)
            owner.changed[table.name] = table
        return row

    # --- steps ------------------------------------------------------------------------------------

    def steps(self, steps: Sequence[Step], names: Names, payload: Payload, then: Then) -> None:
        """The steps, each inside the ones before it, and at the end `then`."""
        if not steps:
            then(names, payload)
            return
        step, rest = steps[0], steps[1:]
        match step:
            case Update():
                self._update(step, names, payload, rest, then)
            case Collect():
                self.add(self.memory.stores[self._local(step.local)], names, payload)
                self.steps(rest, names, payload, then)
            case Union():
                self._union(step, names, payload, rest, then)
            case Join():
                join = without_opens(step, names)
                if not join.opens:
                    self._look_up(join.accesses, names, payload, rest, then)
                elif summed := self._summed(rest, names, payload):
                    self._loop_and_sum(join, names, payload, rest, summed)
                else:
                    self._loop(join, names, payload, lambda n, p: self.steps(rest, n, p, then))

    def add(self, store: Store, names: Names, payload: Payload) -> str:
        """Add a payload to an entry; the variable that tells whether it appeared or vanished."""
        row = self._row_to_change(store, names)
        key, change = [names[v] for v in store.key], self.fresh("change")
        given = joined([descriptor(store.table.at), row], key, payload.spelled())
        call = f"{function_name('add', store)}(s, {given})"
        self.emit(f"{change} = {call}")
        return change

    def _update(
        self, step: Update, names: Names, payload: Payload, rest: Sequence[Step], then: Then
    ) -> None:
        if step.target in self.ignored:
            self.steps(rest, names, payload, then)
            return
        change = self.add(self.memory.stores[step.target], names, payload)
        if not step.live:
            self.steps(rest, names, payload, then)
        elif rest:
            with self.inside(f"if {change} != 0:"):
                self.steps(rest, names, Payload(COUNT, (change,)), then)

    def _look_up(
        self,
        accesses: Sequence[Access],
        names: Names,
        payload: Payload,
        rest: Sequence[Step],
        then: Then,
    ) -> None:
        if not accesses:
            self.steps(rest, names, payload, then)
            return
        access = accesses[0]
        store = self.memory.stores[access.map]
        row = self.row(store, names)
        with self.inside(f"if {row} != 0:"), self.inside(f"if {self._present(store, row)}:"):
            weighed = self.times(payload, words(store, row)) if access.weigh else payload
            self._look_up(accesses[1:], names, weighed, rest, then)

    def _present(self, store: Store, row: str) -> str:
        return f"not ({store.shape.zero_test(words(store, row))})"

    def times(self, payload: Payload, factor: Sequence[str]) -> Payload:
        """The product, in variables of its own."""
        shape = payload.shape
        product = list(factor)
        if payload.words is not None:
            product = shape.multiply(payload.words, self.kept(shape, factor))
        return Payload(shape, tuple(self.kept(shape, product)))

    def kept(self, shape: Shape, values: Sequence[str]) -> list[str]:
        """The values in variables, so that none is computed twice."""
        names = shape.names(self.fresh("w") + "_")
        self.emit(*(f"{name} = {value}" for name, value in zip(names, values, strict=True)))
        return names

    # --- sums over loops --------------------------------------------------------------------------

    def _summed(
        self, rest: Sequence[Step], names: Names, payload: Payload
    ) -> Update | Collect | None:
        """The last step, if it adds all that a loop yields to one entry: it can be added once."""
        plain = bool(rest) and all(isinstance(step, Join) for step in rest[:-1])
        last = rest[-1] if plain else None
        if isinstance(last, Update | Collect) and set(last.key) <= set(names):
            return last
        return None

    def _loop_and_sum(
        self,
        join: Join,
        names: Names,
        payload: Payload,
        rest: Sequence[Step],
        last: Update | Collect,
    ) -> None:
        target = last.target if isinstance(last, Update) else self._local(last.local)
        store = self.memory.stores[target]
        total = store.shape.names(self.fresh("sum") + "_")
        zeros = ["0.0" if kind == "f" else "0" for kind in store.shape.kinds]
        self.emit(*(f"{name} = {zero}" for name, zero in zip(total, zeros, strict=True)))

        def accumulate(_: Names, found: Payload) -> None:
            sums = store.shape.add(total, found.spelled())
            self.emit(*(f"{name} = {new}" for name, new in zip(total, sums, strict=True)))

        self._loop(join, names, payload, lambda n, p: self.steps(rest[:-1], n, p, accumulate))
        with self.inside(f"if not ({store.shape.zero_test(total)}):"):
            self.add(store, names, Payload(store.shape, tuple(total)))

    # --- loops ------------------------------------------------------------------------------------

    def _loop(self, join: Join, names: Names, payload: Payload, then: Then) -> None:
        if len(join.accesses) == 1:
            self.over_one(join.accesses[0], join.opens, names, payload, then)
        else:
            self._over_smallest(join, names, payload, then)

    def over_one(
        self, access: Access, opens: Sequence[str], names: Names, payload: Payload, then: Then
    ) -> None:
        """A loop over a group of one map, or over all of it."""
        store = self.memory.stores[access.map]
        columns = tuple(v for v in store.key if v in names)
        index = store.index(columns)
        if index is None:
            self._scan(store, access.weigh, names, payload, then)
            return
        at, count = self.list_of(store, index, names)
        with self.turns(count) as i:
            entry = self.fresh("entry")
            width = entry_width(store, index)
            self.emit(f"{entry} = {at} + {i} * {8 * width}")
            bound = names | self._opened(index, opens, entry)
            if not access.weigh:
                then(bound, payload)
            elif index.carries:
                then(bound, self.times(payload, self._carried(store, index, entry)))
            else:
                row = self.row(store, bound)
                then(bound, self.times(payload, words(store, row)))

    def list_of(self, store: Store, index: Index, names: Names) -> tuple[str, str]:
        """Variables with the address of a group's list and its length."""
        place = (store.name, *index.columns, *(names[v] for v in index.columns))
        for block in self._blocks:
            if place in block.lists:
                return block.lists[place]
        found = self._find_list(index, names)
        if store.name in self._stable:
            self._blocks[-1].lists[place] = found
        return found

    def _find_list(self, index: Index, names: Names) -> tuple[str, str]:
        at, count, g, pool = (self.fresh(stem) for stem in ("at", "count", "g", "pool"))
        group, arity = index.groups, len(index.columns)
        self.emit(f"{at} = 0", f"{count} = 0")
        start = f"{g} = {descriptor(group.at)}"
        if arity:
            key = joined([names[v] for v in index.columns])
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
        """A loop so many times; while rows are told in portions, from where it was left."""
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

    def _opened(self, index: Index, opens: Sequence[str], entry: str) -> Names:
        found = {}
        for variable in opens:
            found[variable] = self.fresh(f"v_{identifier(variable)}")
            self.emit(f"{found[variable]} = {entry}[{index.rest.index(variable)}]")
        return found

    def _carried(self, store: Store, index: Index, entry: str) -> list[str]:
        start = len(index.rest)
        return [
            f"float_at({entry}, {start + i})" if kind == "f" else f"{entry}[{start + i}]"
            for i, kind in enumerate(store.shape.kinds)
        ]

    def _scan(
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

    def _over_smallest(self, join: Join, names: Names, payload: Payload, then: Then) -> None:
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
                if self._stable:  # a trigger: what runs once is better small
                    self._look_ahead(sides, join.opens, (which, count, at, i), names)
                self._one_of_smallest(sides, join.opens, (which, at, i), names, payload, then)

    def _look_ahead(
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
        self.emit(f"if {i} + {TURNS_AHEAD} < {count}:")
        for number, side in enumerate(sides):
            self.emit(f"    if {which} == {number}:")
            self.emit(f"        {later} = {at} + ({i} + {TURNS_AHEAD}) * {8 * side.width}")
            for variable in opens:
                position = side.index.rest.index(variable)
                self.emit(f"        {bound[variable]} = {later}[{position}]")
        for number, side in enumerate(sides):
            table = side.store.table
            key = joined([bound[v] for v in table.key])
            self.emit(f"    if {which} != {number}:")
            self.emit(f"        hint_{table.shape}({descriptor(table.at)}, {key})")

    def _one_of_smallest(
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
        for number, side in enumerate(sides):
            self.emit(f"if {which} == {number}:", f"    {entry} = {at} + {i} * {8 * side.width}")
            for variable in opens:
                position = side.index.rest.index(variable)
                self.emit(f"    {bound[variable]} = {entry}[{position}]")
        for number, side in enumerate(sides):
            weights = side.store.shape.names(self.fresh("w") + "_") if side.weigh else []
            own = side.index.carries or not side.weigh
            if own and weights:
                carried = self._carried(side.store, side.index, entry)
                self.emit(f"if {which} == {number}:")
                self.emit(*(f"    {w} = {c}" for w, c in zip(weights, carried, strict=True)))
            # Where the list has no payloads, the iterated side is asked too.
            self.emit(f"if {which} != {number if own else -1}:")
            row, table = self.fresh("row"), side.store.table
            key = joined([bound[v] for v in table.key])
            self.emit(
                f"    {row} = find_{table.shape}({descriptor(table.at)}, {key})",
                f"    if {row} == 0:",
                "        continue",
                f"    if {side.store.shape.zero_test(words(side.store, row))}:",
                "        continue",
            )
            found = words(side.store, row)
            self.emit(*(f"    {w} = {f}" for w, f in zip(weights, found)))  # noqa: B905 - or none
            if side.weigh:
                payload = self.times(payload, weights)
        then(bound, payload)

    # --- unions -----------------------------------------------------------------------------------

    def _union(
        self, step: Union, names: Names, payload: Payload, rest: Sequence[Step], then: Then
    ) -> None:
        """All sets in turn: payloads of equal values are summed by whoever takes them."""
        phase = None
        if self.cursors is not None:
            phase, start = self.next_cursor, self.fresh("start")
            self.next_cursor += 1
            self.emit(f"{start} = c[{phase}]", f"c[{phase}] = 0")
        for number, branch in enumerate(step.branches):
            if phase is None or self.cursors is None:
                self._branch(branch, names, payload, rest, then)
                continue
            self.cursors.append((phase, str(number)))
            with self.inside(f"if {start} <= {number}:"):
                self._branch(branch, names, payload, rest, then)
            self.cursors.pop()

    def _branch(
        self, branch: Branch, names: Names, payload: Payload, rest: Sequence[Step], then: Then
    ) -> None:
        one = Payload(payload.shape, None)

        def over(bound: Names, _: Payload) -> None:
            self.steps((*branch.steps, *rest), bound, payload, then)

        self.steps(branch.over, names, one, over)


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
    def of(writer: StepWriter, access: Access, names: Names) -> "_Side":
        store = writer.memory.stores[access.map]
        index = store.index(tuple(v for v in store.key if v in names))
        assert index is not None  # the layout gives every such map a list
        at, count = writer.list_of(store, index, names)
        return _Side(store, index, access.weigh, at, count, entry_width(store, index))
