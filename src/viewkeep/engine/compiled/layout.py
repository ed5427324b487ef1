"""Where everything of a program lies in memory: tables, fused maps, indexes, words of the state.

Each *table* has one row for every key: the key, the payloads of all maps that share the table, and
the back positions of their indexes. Maps are fused into one table if they have the same key and a
trigger touches them together: then one look-up serves all of them. An *index* keeps, for each
group, a dense list of the rest of the keys, with the payloads where a trigger weighs by them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from viewkeep.engine.compiled.rings import COUNT, RingShape
from viewkeep.plan.assemble import joins
from viewkeep.plan.program import (
    NOTHING,
    UPDATE,
    Access,
    Block,
    Collect,
    Join,
    Map,
    Program,
    Step,
    Union,
    Update,
)

SIZE, BASE, MINOR, MAJOR, LOADING, EMITTED, UPDATES, HEADER = 1, 2, 3, 4, 5, 6, 7, 8
"""Words of the state: what partitions count, whether a load runs, how many rows were told, how many
updates came straight to machine code."""

TABLE_WORDS, POOL_WORDS = 6, 52
"""Of a table: rows, mask, entries, limit, borrowed. Of a pool: words, used, room, borrowed, free
blocks by size."""

DICTIONARY = "dictionary of texts"
"""The area of the state with its address, where texts are kept in order."""

NEGATIVE = "negative counts"
"""The area of the state that tells how many counts of counted maps are negative."""

Group = tuple[str, ...]

Orders = Mapping[str, Sequence[tuple[Group, str]]]
"""By map, the columns and the orders of its heaps."""


@dataclass(frozen=True, slots=True)
class CountBlock(Block):
    """A block that goes on with the counts of payloads alone, which come first in them."""


@dataclass(frozen=True)
class Table:
    """Rows of `stride` words that start with the key; without a key, one row in the state."""

    name: str
    key: tuple[str, ...]
    at: int
    stride: int

    @property
    def shape(self) -> str:
        """What functions for such rows are called."""
        return f"{len(self.key)}_{self.stride}"


@dataclass(frozen=True)
class Index:
    """The entries of a map by some columns: a table of groups, and a pool with their lists."""

    columns: tuple[str, ...]
    rest: tuple[str, ...]
    place: int
    """The word of the row that tells the position in the list."""
    pool: int
    groups: Table
    carries: bool
    """Whether the list holds payloads too."""
    temporary: bool = False
    """Whether only loading reads it: it is not kept up to date afterwards."""
    order: str = ""
    """The order of a list that is a heap (`emit/heaps.py`)."""


@dataclass(frozen=True)
class Store:
    """A map in its table: from which word on its payload is, and its indexes."""

    name: str
    key: tuple[str, ...]
    table: Table
    word: int
    shape: RingShape
    indexes: tuple[Index, ...] = ()
    fused: bool = False
    counted: bool = False
    """Whether it is told how many of its counts are negative."""

    def index(self, columns: tuple[str, ...]) -> Index | None:
        """The index on these columns, if there is one."""
        return next((each for each in self.indexes if each.columns == columns), None)

    def heap(self, columns: frozenset[str], order: str) -> Index:
        """The index whose lists are in this order."""
        return next(i for i in self.indexes if (frozenset(i.columns), i.order) == (columns, order))


@dataclass(frozen=True)
class Memory:
    """The stores of all maps and local deltas, and how many words the state takes."""

    stores: dict[str, Store]
    tables: tuple[Table, ...]
    words: int
    shape: RingShape
    areas: dict[str, int]
    """Where other words of the state are, by name."""


def identifier(name: str) -> str:
    """A name that can stand in generated text: `V'_y` becomes `V_27_y`."""
    return "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)


@dataclass(frozen=True)
class Local:
    """A relation that is no map of the program: a local delta, a level table, an output."""

    name: str
    key: tuple[str, ...]
    shape: RingShape
    listed: bool = True


def lay_out(
    program: Program,
    shape: RingShape,
    locals_: Iterable[Local],
    areas: dict[str, int],
    dropped: frozenset[str],
    orders: Orders | None = None,
    counted: frozenset[str] = frozenset(),
) -> Memory:
    """Tables for fused maps, rows in tables, indexes behind them; areas of so many words.

    `orders` tells the heaps by map, `counted` the maps whose negative counts are told.
    """
    builder = _LayoutBuilder(program, shape, orders or {}, counted)
    for maps in _fused_maps(program, dropped):
        builder.add_table(maps)
    for local in locals_:
        builder.add_local(local)
    places = {}
    for name, words in areas.items():
        places[name] = builder.words
        builder.words += words
    return Memory(builder.stores, tuple(builder.tables), builder.words, shape, places)


@dataclass(frozen=True)
class _IndexUse:
    """An index to keep: by which columns, and how it is used."""

    columns: Group
    carries: bool = False
    temporary: bool = False
    order: str = ""


class _LayoutBuilder:
    """Gives out words of the state."""

    def __init__(
        self, program: Program, shape: RingShape, orders: Orders, counted: frozenset[str]
    ) -> None:
        self.shape, self.words = shape, HEADER
        self._orders, self._counted = orders, counted
        self.stores: dict[str, Store] = {}
        self.tables: list[Table] = []
        self._use = _LayoutUsage(program)

    def add_table(self, maps: tuple[Map, ...]) -> None:
        indexes = {each.name: self._index_uses(each, len(maps) > 1) for each in maps}
        shapes = {each.name: COUNT if each.live else self.shape for each in maps}
        key, name = maps[0].key, identifier(maps[0].name)
        word, offsets = len(key), dict[str, int]()
        for each in maps:
            offsets[each.name] = word
            word += shapes[each.name].size
        places = dict[str, int]()
        for each in maps:
            places[each.name] = word
            word += len(indexes[each.name])
        table = self._new_table(name, key, word)
        for each in maps:
            self.stores[each.name] = Store(
                each.name,
                key,
                table,
                offsets[each.name],
                shapes[each.name],
                self._place_indexes(each.name, key, indexes[each.name], places[each.name]),
                len(maps) > 1,
                each.name in self._counted,
            )

    def add_local(self, local: Local) -> None:
        groups = list[_IndexUse]()
        if local.listed and local.key:
            groups.append(_IndexUse((), carries=True))
        stride = len(local.key) + local.shape.size + len(groups)
        table = self._new_table(identifier(local.name), local.key, stride)
        place = len(local.key) + local.shape.size
        indexes = self._place_indexes(local.name, local.key, groups, place)
        self.stores[local.name] = Store(
            local.name, local.key, table, len(local.key), local.shape, indexes
        )

    def _new_table(self, name: str, key: tuple[str, ...], stride: int) -> Table:
        table = Table(name, key, self.words, stride)
        self.words += TABLE_WORDS if key else stride
        self.tables.append(table)
        return table

    def _index_uses(self, each: Map, fused: bool) -> list["_IndexUse"]:
        """The indexes to keep."""
        groups = [*each.indexes] if each.key else []
        if each.key and (self._use.scanned_with_others(each.name) or fused):
            groups += [()] if self._use.scans(each.name) else []
        uses = [
            _IndexUse(
                columns,
                (each.name, columns) in self._use.weighed,
                (each.name, columns) not in self._use.lasting,
            )
            for columns in groups
        ]
        orders = self._orders.get(each.name, ())
        return uses + [_IndexUse(columns, order=order) for columns, order in orders]

    def _place_indexes(
        self, name: str, key: Group, uses: list["_IndexUse"], place: int
    ) -> tuple[Index, ...]:
        indexes = []
        for number, use in enumerate(uses):
            title = f"{identifier(name)}_by{number}"
            table = self._new_table(title, use.columns, len(use.columns) + 3)
            rest = tuple(v for v in key if v not in use.columns)
            own = place + number, self.words, table, use.carries, use.temporary, use.order
            indexes.append(Index(use.columns, rest, *own))
            self.words += POOL_WORDS
        return tuple(indexes)


class _LayoutUsage:
    """Which indexes are read by what."""

    def __init__(self, program: Program) -> None:
        self.weighed: set[tuple[str, Group]] = set()
        self.lasting: set[tuple[str, Group]] = set()
        self._scanned: set[str] = set()
        self._scanned_with_others: set[str] = set()
        keys = {each.name: each.key for each in program.maps}
        for steps, bound, changes in steps_after_loading(program):
            for join, bound_before in joins(steps, bound):
                for access in join.accesses if join.opens else ():
                    columns = tuple(v for v in keys[access.map] if v in bound_before)
                    self._note_access(access, columns, changes, len(join.accesses) > 1)
        for steps, bound in _loading_steps(program, skewed_only=True):
            self._note_steps(program, steps, bound)
        for steps, bound in _loading_steps(program, skewed_only=False):
            for join, bound_before in joins(steps, bound):
                for access in join.accesses if join.opens and len(join.accesses) > 1 else ():
                    if not any(v in bound_before for v in keys[access.map]):
                        self._scanned_with_others.add(access.map)
                        self._scanned.add(access.map)
        for part in program.parts:
            for number, _ in part.levels:
                variables = program.splits[number].variables
                self.lasting.add((part.map, tuple(v for v in keys[part.map] if v in variables)))

    def _note_access(self, access: Access, columns: Group, changes: bool, several: bool) -> None:
        self.lasting.add((access.map, columns))
        if changes and access.weigh:
            self.weighed.add((access.map, columns))
        if not columns:
            self._scanned.add(access.map)
            if several:
                self._scanned_with_others.add(access.map)

    def _note_steps(self, program: Program, steps: tuple[Step, ...], bound: frozenset[str]) -> None:
        for join, bound_before in joins(steps, bound):
            for access in join.accesses if join.opens else ():
                columns = tuple(v for v in program.map(access.map).key if v in bound_before)
                if columns:
                    self.lasting.add((access.map, columns))

    def scans(self, name: str) -> bool:
        return name in self._scanned

    def scanned_with_others(self, name: str) -> bool:
        return name in self._scanned_with_others


def steps_after_loading(
    program: Program,
) -> Iterator[tuple[tuple[Step, ...], frozenset[str], bool]]:
    """All lists of steps but those of loading, with what is bound and whether they run often."""
    for trigger in program.triggers:
        for block in trigger.blocks:
            start = trigger.parameters if block.source == UPDATE else block.variables
            yield block.steps, frozenset(start), True
        for output in trigger.outputs:
            yield output, frozenset(trigger.parameters), False
    inputs, enumerator = frozenset(copy for copy, _ in program.inputs), program.enumerator
    yield enumerator.steps, inputs, False
    yield enumerator.steps, inputs | frozenset(enumerator.head), False


def writes_skewed(program: Program, block: Block) -> bool:
    """Whether a block writes a map that depends on how relations are split."""
    skewed = {each.name for each in program.maps if each.parts}
    return any(isinstance(step, Update) and step.target in skewed for step in block.steps)


def _loading_steps(
    program: Program, skewed_only: bool
) -> Iterator[tuple[tuple[Step, ...], frozenset[str]]]:
    for block in program.loading:
        if not skewed_only or writes_skewed(program, block):
            yield block.steps, frozenset(() if block.source == NOTHING else block.variables)


# --- fusing ---------------------------------------------------------------------------------------


def unread_inputs(program: Program, others: frozenset[str] = frozenset()) -> frozenset[str]:
    """Inputs that are read by nothing but loading: results do not need them afterwards, unless
    they are among the `others`."""
    read = {name for steps, _, _ in steps_after_loading(program) for name in maps_accessed(steps)}
    for trigger in program.triggers:
        steps = [step for block in trigger.blocks for step in block.steps]
        read |= {step.target for step in steps if isinstance(step, Update) and step.live}
    inputs = {part.map for part in program.parts if not program.splits}
    return frozenset(inputs - read - others)


def maps_accessed(steps: tuple[Step, ...]) -> Iterator[str]:
    """The maps that some steps read."""
    for step in steps:
        match step:
            case Join(accesses=accesses):
                yield from (access.map for access in accesses)
            case Union(branches=branches):
                for branch in branches:
                    yield from maps_accessed((*branch.over, *branch.steps))
            case Update() | Collect():
                pass


def _fused_maps(program: Program, dropped: frozenset[str]) -> Iterator[tuple[Map, ...]]:
    """The maps, those together that share a table."""
    # Partitions count the entries of inputs, which a shared table does not tell.
    split = {part.map for part in program.parts if program.splits} | dropped
    group = {each.name: each.name for each in program.maps}

    def root(name: str) -> str:
        return name if group[name] == name else root(group[name])

    for trigger in program.triggers:
        first: dict[tuple[Group, bool], str] = {}
        maps_touched = [name for block in trigger.blocks for name in touches(block.steps)]
        for name in maps_touched:
            own = program.map(name)
            if own.key and name not in split:
                # Major rebalancing empties what depends on parts, and nothing else.
                alike = own.key, bool(own.parts)
                group[root(name)] = root(first.setdefault(alike, name))
    members: dict[str, list[Map]] = {}
    for each in program.maps:
        members.setdefault(root(each.name), []).append(each)
    yield from (tuple(maps) for maps in members.values())


def touches(steps: tuple[Step, ...]) -> Iterator[str]:
    """The maps that are updated, or looked up by their whole key, somewhere in the steps."""
    for step in steps:
        match step:
            case Update():
                yield step.target
            case Join(accesses=accesses, opens=()):
                yield from (access.map for access in accesses)
            case Join() | Collect() | Union():
                pass


def local_deltas(program: Program, shape: RingShape) -> Iterator[Local]:
    """The local deltas of all triggers, each trigger's under names of their own."""
    for number, trigger in enumerate(program.triggers):
        for block in trigger.blocks:
            for step in block.steps:
                if isinstance(step, Collect):
                    own = COUNT if isinstance(block, CountBlock) else shape
                    yield Local(local_name(number, step.local), step.key, own)


def local_name(number: int, local: str) -> str:
    """What a local delta of a trigger is called."""
    return f"{local} of {number}"


def without_opens(step: Join, bound: Iterable[str]) -> Join:
    """The join with the variables that it still has to open."""
    variables = set(bound)
    return replace(step, opens=tuple(v for v in step.opens if v not in variables))
