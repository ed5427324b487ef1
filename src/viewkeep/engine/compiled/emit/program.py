"""The whole text of a program: triggers, batches, loading, reading."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from viewkeep.engine.compiled.emit.balance import split_text
from viewkeep.engine.compiled.emit.maps import memory_text, words
from viewkeep.engine.compiled.emit.parts import level_name, split_areas, split_locals
from viewkeep.engine.compiled.emit.reading import OUTPUT, TOTAL, ReadingWriter, clear_list, zeroed
from viewkeep.engine.compiled.emit.tables import call_arguments, descriptor, keys
from viewkeep.engine.compiled.emit.text import Lifts, Names, Payload, Then
from viewkeep.engine.compiled.emit.triggers import StepWriter
from viewkeep.engine.compiled.extremes import OrderedProgram
from viewkeep.engine.compiled.function import Function, Heat, Module
from viewkeep.engine.compiled.layout import (
    DICTIONARY,
    NEGATIVE,
    CountBlock,
    Index,
    Local,
    Memory,
    Store,
    Table,
    lay_out,
    local_deltas,
    local_name,
    touches,
)
from viewkeep.engine.compiled.rings import COUNT, RingShape
from viewkeep.plan.program import (
    NOTHING,
    UPDATE,
    Access,
    Block,
    Join,
    Program,
    Trigger,
    Update,
)

AHEAD = 10
"""How many updates of a batch ahead places in tables are fetched from memory."""


@dataclass(frozen=True)
class Source:
    """The text of a program, and where its memory lies; `changes` is for subscribers only."""

    main: Module
    changes: Module
    memory: Memory
    collects: bool
    """Whether output tuples are summed before they are told."""
    cursors: int


def emit_program(
    program: Program,
    shape: RingShape,
    lifts: Lifts,
    dropped: frozenset[str] = frozenset(),
    extremes: OrderedProgram | None = None,
) -> Source:
    """The text of a program over payloads of this shape.

    The inputs that are `dropped` are there for loading only.
    """
    head = program.enumerator.head
    locals_ = [
        *local_deltas(program, shape),
        Local(OUTPUT, head, shape),
        Local(TOTAL, (), shape),
        *split_locals(program),
    ]
    areas = split_areas(program) | dict.fromkeys(lifts.areas, 1)
    memory = _laid_out(program, shape, locals_, areas, dropped, extremes)
    lifts = lifts.placed(memory.areas)
    writer = _ProgramWriter(program, memory, lifts, dropped)
    reading = ReadingWriter(program, memory, lifts, () if extremes is None else extremes.each)
    tables, main = list(memory_text(memory)), [*writer.parts(), *reading.parts()]
    return Source(
        _module_of_functions([*tables, *main]),
        _module_of_functions([*tables, *main, *reading.changes()]),
        memory,
        reading.collects,
        reading.cursors,
    )


def _laid_out(
    program: Program,
    shape: RingShape,
    locals_: list[Local],
    areas: dict[str, int],
    dropped: frozenset[str],
    extremes: OrderedProgram | None,
) -> Memory:
    if extremes is None:
        return lay_out(program, shape, locals_, areas, dropped)
    areas = areas | {NEGATIVE: 1, DICTIONARY: 1} | {each.area: 1 for each in extremes.each}
    orders, counted = extremes.orders, extremes.counted
    return lay_out(program, shape, locals_, areas, dropped, orders, counted)


LINES_AT_MOST = 5_000
"""Programs with more lines of text are large (`Module.is_large`)."""


def _module_of_functions(functions: list[Function]) -> Module:
    lines = sum(function.text.count("\n") + 2 for function in functions)
    return Module(tuple(functions), is_large=lines >= LINES_AT_MOST)


class _ProgramWriter:
    """Writes the functions of one program."""

    def __init__(
        self, program: Program, memory: Memory, lifts: Lifts, dropped: frozenset[str]
    ) -> None:
        self.program, self.memory, self.shape = program, memory, memory.shape
        self._lifts, self._dropped = lifts, dropped

    def parts(self) -> Iterator[Function]:
        """All functions, those that are called first."""
        for number, trigger in enumerate(self.program.triggers):
            body = self._trigger_lines(number, trigger, trigger.blocks)
            yield Function(
                f"trigger_{number}", self._trigger_arguments(trigger), body, heat=Heat.HOT
            )
        yield from self._load_functions()
        if self.program.splits:
            yield from split_text(self.program, self.memory, self._lifts, self._trigger_lines)
        else:
            yield from self._update_functions()
        atoms = dict.fromkeys(trigger.atom for trigger in self.program.triggers)
        for atom in atoms:
            yield from self._batch_functions(atom)
        for part in self.program.parts:
            if not part.levels:
                yield self._put_text(part.atom, self.memory.stores[part.map])
        yield from map(self._window_text, self._lifts.floats)
        yield self._finish_text()

    # --- updates ----------------------------------------------------------------------------------

    def _trigger_arguments(self, trigger: Trigger) -> str:
        return call_arguments(["s"], keys(len(trigger.parameters)), self.shape.names("p"))

    def _trigger_lines(self, number: int, trigger: Trigger, blocks: Iterable[Block]) -> list[str]:
        """The lines of some blocks of a trigger."""
        blocks = list(blocks)
        changed = {s.target for b in blocks for s in b.steps if isinstance(s, Update)}
        stable = self.memory.stores.keys() - changed
        writer = StepWriter(self.memory, lambda local: local_name(number, local), stable)
        writer.ignored = self._dropped
        parameters, payload = keys(len(trigger.parameters)), self.shape.names("p")
        names = dict(zip(trigger.parameters, parameters, strict=True))
        for block in blocks:
            if block.source == UPDATE:
                shape = self._block_shape(block)
                own = Payload(shape, tuple(payload[: len(shape.kinds)]))
                writer.steps(block.steps, names, own, _write_end_of_steps)
            else:
                writer.settle()
                self._write_local_loop(
                    writer, block, self.memory.stores[local_name(number, block.source)]
                )
        writer.settle()
        return [*writer.lines, "    return 0"]

    def _block_shape(self, block: Block) -> RingShape:
        return COUNT if isinstance(block, CountBlock) else self.shape

    def _write_local_loop(self, writer: StepWriter, block: Block, store: Store) -> None:
        if not store.key:
            row = descriptor(store.table.at)
            writer.emit(f"row = {row}")
            payload = writer.in_variables(store.shape, words(store))
            writer.emit(*zeroed(store))
            with writer.inside(f"if not ({store.shape.zero_test(payload)}):"):
                own = Payload(store.shape, tuple(payload))
                writer.steps(block.steps, {}, own, _write_end_of_steps)
            return
        access = Access(store.name, store.key)
        one = Payload(store.shape, None)

        def then(names: Names, payload: Payload) -> None:
            writer.steps(block.steps, names, payload, _write_end_of_steps)

        writer.over_one(access, store.key, {}, one, then)
        writer.emit(*clear_list(store))

    def _update_functions(self) -> Iterator[Function]:
        for number, trigger in enumerate(self.program.triggers):
            arguments = self._trigger_arguments(trigger)
            call = [f"    trigger_{number}({arguments})"]
            yield Function(f"update_{trigger.atom}", arguments, call, inline=True, heat=Heat.HOT)

    def _batch_functions(self, atom: int) -> Iterator[Function]:
        """All updates of a batch in order; tables are fetched ahead of their use."""
        # Of the parts of an atom the last is light, and most values are.
        trigger = [each for each in self.program.triggers if each.atom == atom][-1]
        arity = len(trigger.parameters)
        lines = self._lifts.column_lines(arity, self.shape)
        lines += ["    for i in range(n):"]
        if hints := list(self._prefetch_lines(trigger)):
            lines += [f"        if i + {AHEAD} < n:", *(f"            {hint}" for hint in hints)]
        lines += [f"        {line}" for line in self._lifts.tuple_lines(atom, arity, self.shape)]
        update = f"update_{atom}({self._trigger_arguments(trigger)})"
        lines += [f"        {update}", "    return s[0]"]
        yield Function(f"batch_{atom}", "s, columns, n", lines, public=True, heat=Heat.HOT)
        if lifted := self._lifts.lines.get(atom):
            lines = [*(f"    {line}" for line in lifted), f"    {update}", "    return s[0]"]
            arguments = call_arguments(["s"], keys(arity), ["m"])
            yield Function(f"call_{atom}", arguments, lines, public=True, heat=Heat.HOT)

    def _window_text(self, atom: int) -> Function:
        """Between which powers of two the bits of the floats are that tuples are lifted by: two
        words for each float."""
        part = next(each for each in self.program.parts if each.atom == atom)
        arity = len(self.memory.stores[part.map].key)
        lines = [*self._lifts.column_lines(arity, self.shape), "    for i in range(n):"]
        lines += [f"        k{i} = c{i}[i]" for i in range(arity)]
        for number, (text, tests) in enumerate(self._lifts.floats[atom]):
            lines += [
                f"        if {tests}:",
                f"            note_window(out + {16 * number}, {text})",
            ]
        return Function(
            f"window_{atom}", "s, columns, n, out", [*lines, "    return 0"], public=True
        )

    def _prefetch_lines(self, trigger: Trigger) -> Iterator[str]:
        """What the first steps of an update look up: rows, groups, and the levels of values."""
        place = {v: i for i, v in enumerate(trigger.parameters)}
        for table in dict.fromkeys(self._tables_looked_up_first(trigger)):
            if table.key and set(table.key) <= set(place):
                key = call_arguments([f"c{place[v]}[i + {AHEAD}]" for v in table.key])
                yield f"hint_{table.shape}({descriptor(table.at)}, {key})"

    def _tables_looked_up_first(self, trigger: Trigger) -> Iterator[Table]:
        stores, parameters = self.memory.stores, frozenset(trigger.parameters)
        for number, split in enumerate(self.program.splits):
            if trigger.atom in split.atoms:
                yield stores[level_name(number)].table
        for block in trigger.blocks:
            if block.source == UPDATE:
                names = [n for n in touches(block.steps) if n not in self._dropped]
                yield from (stores[name].table for name in names)
                for join in [s for s in block.steps if isinstance(s, Join) and s.opens][:1]:
                    for access in join.accesses:
                        index = stores[access.map].index(
                            tuple(v for v in stores[access.map].key if v in parameters)
                        )
                        if index is not None:
                            yield index.groups
                for step in block.steps:
                    if isinstance(step, Update):
                        yield from (i.groups for i in stores[step.target].indexes)

    # --- loading ----------------------------------------------------------------------------------

    def _put_text(self, atom: int, store: Store) -> Function:
        """Rows into an input, without its trigger."""
        arity, shape = len(store.key), store.shape
        writer = StepWriter(self.memory)
        with writer.inside("for i in range(n):"):
            writer.emit(*self._lifts.tuple_lines(atom, arity, self.shape))
            names = dict(zip(store.key, keys(arity), strict=True))
            writer.add(store, names, Payload(shape, tuple(shape.names("p"))))
        lines = [*self._lifts.column_lines(arity, self.shape), *writer.lines, "    return s[0]"]
        return Function(f"put_{atom}", "s, columns, n", lines, public=True, heat=Heat.HOT)

    def _load_functions(self) -> Iterator[Function]:
        """A function for each block, and one for all of them."""
        calls = [f"    load_{number}(s)" for number in range(len(self.program.loading))]
        for number, block in enumerate(self.program.loading):
            writer = StepWriter(self.memory)
            self._write_load_block(writer, block)
            writer.settle()
            yield Function(f"load_{number}", "s", [*writer.lines, "    return 0"])
        yield Function("fill", "s", [*calls, "    return s[0]"], public=True)

    def _write_load_block(self, writer: StepWriter, block: Block) -> None:
        def then(names: Names, payload: Payload) -> None:
            writer.steps(block.steps, names, payload, _write_end_of_steps)

        if block.source == NOTHING:
            then({}, Payload(self._block_shape(block), None))
            return
        store = self.memory.stores[block.source]
        is_count = isinstance(block, CountBlock) or not block.weigh
        one = Payload(COUNT if is_count else store.shape, None)
        if not store.key:
            join = Join((Access(store.name, (), block.weigh),))
            writer.steps((join, *block.steps), {}, one, _write_end_of_steps)
        elif store.fused:
            self._write_copy_loop(writer, store, block.weigh, one, then)
        else:
            writer.over_one(Access(store.name, store.key, block.weigh), store.key, {}, one, then)

    def _write_copy_loop(
        self, writer: StepWriter, store: Store, weigh: bool, one: Payload, then: Then
    ) -> None:
        """A loop over a copy of the keys, since the steps may change other maps of the same
        table."""
        table, arity = store.table, len(store.key)
        copy, count, row = (writer.fresh(stem) for stem in ("copy", "count", "row"))
        writer.emit(
            f"d = {descriptor(table.at)}",
            f"{copy} = claim(d[2] * {8 * arity} + 8)",
            f"{count} = 0",
            "for j in range(d[1] + 1):",
            f"    {row} = d[0] + j * {8 * table.stride}",
            f"    if {row}[0] != -9223372036854775808:",
            f"        if not ({store.shape.zero_test(words(store, row))}):",
            *(f"            {copy}[{count} * {arity} + {i}] = {row}[{i}]" for i in range(arity)),
            f"            {count} += 1",
        )
        with writer.turns(count) as i:
            names = {v: writer.fresh("v") for v in store.key}
            for place, variable in enumerate(store.key):
                writer.emit(f"{names[variable]} = {copy}[{i} * {arity} + {place}]")
            entry = writer.row(store, names)
            then(names, writer.times(one, words(store, entry)) if weigh else one)
        writer.emit(f"release({copy})")

    def _finish_text(self) -> Function:
        """After a load: drop the indexes that nothing else reads."""
        lines = list[str]()
        for _, index in _store_indexes(self.memory):
            if index.temporary:
                lines += clear_index(index)
        for name in sorted(self._dropped):
            table = self.memory.stores[name].table
            if table.key:
                lines.append(f"    clear_{table.shape}({descriptor(table.at)})")
        return Function("finish", "s", [*lines, "    return 0"], public=True)


def _write_end_of_steps(names: Names, payload: Payload) -> None:
    """The end of a list of steps."""


def _store_indexes(memory: Memory) -> Iterator[tuple[Store, Index]]:
    for store in memory.stores.values():
        yield from ((store, index) for index in store.indexes)


def clear_index(index: Index) -> list[str]:
    """Lines that empty an index."""
    groups = index.groups
    lines = [f"    clear_pool({descriptor(index.pool)})"]
    if groups.key:
        return [*lines, f"    clear_{groups.shape}({descriptor(groups.at)})"]
    return [*lines, *(f"    s[{groups.at + i}] = 0" for i in range(3))]
