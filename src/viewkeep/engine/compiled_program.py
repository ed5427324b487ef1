"""The whole text of a program: triggers, batches, loading, reading."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from viewkeep.engine.compiled_layout import (
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
from viewkeep.engine.compiled_rings import COUNT, Shape
from viewkeep.engine.compiled_splits import level_name, split_areas, split_locals, split_text
from viewkeep.engine.compiled_steps import Names, Payload, StepWriter
from viewkeep.engine.compiled_tables import (
    descriptor,
    entry_width,
    function_name,
    joined,
    keys,
    memory_text,
    set_word,
    words,
)
from viewkeep.plan.program import (
    NOTHING,
    UPDATE,
    Access,
    Block,
    Join,
    Program,
    Step,
    Trigger,
    Union,
    Update,
)

OUTPUT, TOTAL = "output", "total"
"""Locals that take output tuples that must be summed, and the payload of a look-up."""

AHEAD = 10
"""How many updates of a batch ahead places in tables are fetched from memory."""


Lifts = dict[int, list[str]]


@dataclass(frozen=True)
class Source:
    """The text of a program, and where its memory lies; `changes` is for subscribers only."""

    main: "Text"
    changes: "Text"
    memory: Memory
    collects: bool
    """Whether output tuples are summed before they are told."""
    cursors: int


def write(
    program: Program, shape: Shape, lifts: Lifts, dropped: frozenset[str] = frozenset()
) -> Source:
    """The text of a program over payloads of this shape.

    `lifts` tells for atoms the words of a tuple's payload, from its keys and multiplicity. The
    inputs that are `dropped` are there for loading only.
    """
    head = program.enumerator.head
    locals_ = [
        *local_deltas(program, shape),
        Local(OUTPUT, head, shape),
        Local(TOTAL, (), shape),
        *split_locals(program),
    ]
    memory = lay_out(program, shape, locals_, split_areas(program), dropped)
    writer = _ProgramWriter(program, memory, lifts, dropped)
    tables, main = list(memory_text(memory)), list(writer.parts())
    return Source(
        _text(memory, [*tables, *main]),
        _text(memory, [*tables, *writer.changes()]),
        memory,
        writer.collects,
        max(writer.cursors, 1),
    )


@dataclass(frozen=True)
class Text:
    """Functions, which of them are called from outside, and which are merged into others."""

    text: str
    public: tuple[str, ...]
    inlined: tuple[str, ...]


def _text(memory: Memory, parts: list[str]) -> Text:
    functions = _cut("\n".join(parts).strip())
    text = "\n".join(each if _title(each).startswith(_HOT) else _small(each) for each in functions)
    names = [_title(each) for each in functions]
    plain = {function_name("add", store) for store in memory.stores.values() if not store.indexes}
    inlined = [name for name in names if name.startswith(_INLINED) or name in plain]
    public = [name for name in names if name.startswith(_PUBLIC)]
    return Text(text, tuple(public), tuple(inlined))


def _cut(text: str) -> list[str]:
    """The functions of a text."""
    return [f"def {each}" for each in text.removeprefix("def ").split("\ndef ")]


def _title(function: str) -> str:
    return function[4 : function.index("(")]


def _small(function: str) -> str:
    """Look-ups as calls: code that runs rarely is better small than fast."""
    return function.replace("find_", "seek_")


_HOT = ("trigger_", "batch_", "call_", "update_", "find_", "seek_", "level_", "add__", "put_")
_INLINED = ("hash_", "find_", "hint_", "level_", "update_")
_PUBLIC = (
    *("batch_", "put_", "seek_", "call_", "tell", "change_", "start", "fill", "finish"),
    *("collect", "look_up", "empty", "distribute", "spread", "set_"),
)


class _ProgramWriter:
    """Writes the functions of one program."""

    def __init__(
        self, program: Program, memory: Memory, lifts: Lifts, dropped: frozenset[str]
    ) -> None:
        self.program, self.memory, self.shape = program, memory, memory.shape
        self._lifts, self._dropped = lifts, dropped
        self.cursors = 0
        self.collects = not program.enumerator.distinct or _has_distinct_union(
            program.enumerator.steps
        )

    def parts(self) -> Iterator[str]:
        """All functions, those that are called first."""
        for number, trigger in enumerate(self.program.triggers):
            yield self._trigger(f"trigger_{number}", number, trigger, trigger.blocks)
        yield from self._loading()
        if self.program.splits:
            yield from split_text(self.program, self.memory, self._trigger)
        else:
            yield from self._plain_updates()
        atoms = dict.fromkeys(trigger.atom for trigger in self.program.triggers)
        yield from (self._batch(atom) for atom in atoms)
        for part in self.program.parts:
            if not part.levels:
                yield self._put(part.atom, self.memory.stores[part.map])
        yield self._finish()
        yield from self._reading()

    def changes(self) -> Iterator[str]:
        """How single tuples change the output."""
        for atom in dict.fromkeys(trigger.atom for trigger in self.program.triggers):
            yield self._change(atom)

    # --- updates ----------------------------------------------------------------------------------

    def _trigger(self, name: str, number: int, trigger: Trigger, blocks: Iterable[Block]) -> str:
        blocks = list(blocks)
        changed = {s.target for b in blocks for s in b.steps if isinstance(s, Update)}
        stable = self.memory.stores.keys() - changed
        writer = StepWriter(self.memory, lambda local: local_name(number, local), stable)
        writer.ignored = self._dropped
        parameters, payload = keys(len(trigger.parameters)), self.shape.names("p")
        names = dict(zip(trigger.parameters, parameters, strict=True))
        for block in blocks:
            if block.source == UPDATE:
                writer.steps(block.steps, names, Payload(self.shape, tuple(payload)), _done)
            else:
                writer.settle()
                self._over_local(writer, block, self.memory.stores[local_name(number, block.source)])
        writer.settle()
        header = f"def {name}(s, {joined(parameters, payload)}):"
        return "\n".join([header, *writer.lines, "    return 0", ""])

    def _over_local(self, writer: StepWriter, block: Block, store: Store) -> None:
        if not store.key:
            row = descriptor(store.table.at)
            writer.emit(f"row = {row}")
            found = writer.kept(store.shape, words(store))
            writer.emit(*_zeroed(store))
            with writer.inside(f"if not ({store.shape.zero_test(found)}):"):
                writer.steps(block.steps, {}, Payload(self.shape, tuple(found)), _done)
            return
        access = Access(store.name, store.key)
        one = Payload(self.shape, None)

        def then(names: Names, payload: Payload) -> None:
            writer.steps(block.steps, names, payload, _done)

        writer.over_one(access, store.key, {}, one, then)
        writer.emit(*clear_list(store))

    def _plain_updates(self) -> Iterator[str]:
        for number, trigger in enumerate(self.program.triggers):
            arguments = joined(keys(len(trigger.parameters)), self.shape.names("p"))
            yield f"def update_{trigger.atom}(s, {arguments}):"
            yield f"    trigger_{number}(s, {arguments})\n"

    def _batch(self, atom: int) -> str:
        """All updates of a batch in order; tables are fetched ahead of their use."""
        # Of the parts of an atom the last is light, and most values are.
        trigger = [each for each in self.program.triggers if each.atom == atom][-1]
        arity, payload = len(trigger.parameters), self.shape.names("p")
        lines = [f"def batch_{atom}(s, columns, n):"]
        lines += [f"    c{i} = columns[{i}]" for i in range(arity + len(payload))]
        lines += ["    for i in range(n):"]
        if hints := list(self._hints(trigger)):
            lines += [f"        if i + {AHEAD} < n:", *(f"            {hint}" for hint in hints)]
        lines += [f"        k{i} = c{i}[i]" for i in range(arity)]
        lines += [
            f"        {p} = float_at(c{arity + i}, i)" if kind == "f" else f"        {p} = c{arity + i}[i]"
            for i, (p, kind) in enumerate(zip(payload, self.shape.kinds, strict=True))
        ]
        lines += [f"        update_{atom}(s, {joined(keys(arity), payload)})", "    return s[0]", ""]
        if lifted := self._lifts.get(atom):
            lines += [f"def call_{atom}(s, {joined(keys(arity), ['m'])}):"]
            lines += [f"    {name} = {text}" for name, text in zip(payload, lifted, strict=True)]
            lines += [f"    update_{atom}(s, {joined(keys(arity), payload)})", "    return s[0]", ""]
        return "\n".join(lines)

    def _hints(self, trigger: Trigger) -> Iterator[str]:
        """What the first steps of an update look up: rows, groups, and the levels of values."""
        place = {v: i for i, v in enumerate(trigger.parameters)}
        for table in dict.fromkeys(self._first_tables(trigger)):
            if table.key and set(table.key) <= set(place):
                key = joined([f"c{place[v]}[i + {AHEAD}]" for v in table.key])
                yield f"hint_{table.shape}({descriptor(table.at)}, {key})"

    def _first_tables(self, trigger: Trigger) -> Iterator[Table]:
        stores, known = self.memory.stores, frozenset(trigger.parameters)
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
                            tuple(v for v in stores[access.map].key if v in known)
                        )
                        if index is not None:
                            yield index.groups
                for step in block.steps:
                    if isinstance(step, Update):
                        yield from (i.groups for i in stores[step.target].indexes)

    # --- loading ----------------------------------------------------------------------------------

    def _put(self, atom: int, store: Store) -> str:
        """Rows into an input, without its trigger."""
        arity, shape = len(store.key), store.shape
        writer = StepWriter(self.memory)
        with writer.inside("for i in range(n):"):
            writer.emit(*(f"k{i} = c{i}[i]" for i in range(arity)))
            names = dict(zip(store.key, keys(arity), strict=True))
            columns = [
                f"float_at(c{arity + i}, i)" if kind == "f" else f"c{arity + i}[i]"
                for i, kind in enumerate(shape.kinds)
            ]
            writer.add(store, names, Payload(shape, tuple(writer.kept(shape, columns))))
        lines = [f"def put_{atom}(s, columns, n):"]
        lines += [f"    c{i} = columns[{i}]" for i in range(arity + shape.width)]
        return "\n".join([*lines, *writer.lines, "    return s[0]", ""])

    def _loading(self) -> Iterator[str]:
        """A function for each block, and one for all of them."""
        calls = [f"    load_{number}(s)" for number in range(len(self.program.loading))]
        for number, block in enumerate(self.program.loading):
            writer = StepWriter(self.memory)
            self._load_block(writer, block)
            writer.settle()
            yield "\n".join([f"def load_{number}(s):", *writer.lines, "    return 0", ""])
        yield "\n".join(["def fill(s):", *calls, "    return s[0]", ""])

    def _load_block(self, writer: StepWriter, block: Block) -> None:
        def then(names: Names, payload: Payload) -> None:
            writer.steps(block.steps, names, payload, _done)

        if block.source == NOTHING:
            then({}, Payload(self.shape, None))
            return
        store = self.memory.stores[block.source]
        one = Payload(store.shape if block.weigh else COUNT, None)
        if not store.key:
            join = Join((Access(store.name, (), block.weigh),))
            writer.steps((join, *block.steps), {}, one, _done)
        elif store.fused:
            self._over_copy(writer, store, block.weigh, one, then)
        else:
            writer.over_one(Access(store.name, store.key, block.weigh), store.key, {}, one, then)

    def _over_copy(self, writer: StepWriter, store: Store, weigh: bool, one: Payload, then) -> None:  # type: ignore[no-untyped-def]
        """Over the keys as they are now: the steps may change other maps of the same table."""
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
            found = writer.row(store, names)
            then(names, writer.times(one, words(store, found)) if weigh else one)
        writer.emit(f"release({copy})")

    def _finish(self) -> str:
        """After a load: drop the indexes that nothing else reads."""
        lines = ["def finish(s):"]
        for _, index in _indexes(self.memory):
            if index.temporary:
                lines += clear_index(index)
        for name in sorted(self._dropped):
            table = self.memory.stores[name].table
            if table.key:
                lines.append(f"    clear_{table.shape}({descriptor(table.at)})")
        return "\n".join([*lines, "    return 0", ""])

    # --- reading ----------------------------------------------------------------------------------

    def _reading(self) -> Iterator[str]:
        enumerator, given = self.program.enumerator, self._given()
        output = self.memory.stores[OUTPUT]
        if self.collects:
            writer = StepWriter(self.memory)
            one = Payload(self.shape, None)
            writer.steps(enumerator.steps, given, one, lambda n, p: _collect(writer, output, n, p))
            writer.settle()
            header = f"def collect(s, {joined(list(given.values()))}):".replace(", )", ")")
            yield "\n".join([header, *writer.lines, "    return s[0]", ""])
        else:
            yield self._tell("tell", enumerator.steps, given)
        if output.key:
            whole = Join((Access(OUTPUT, output.key),), output.key)
            yield self._tell("tell_output", (whole,), {})
        else:
            yield self._tell("tell_output", (Join((Access(OUTPUT, ()),)),), {})
        empty = clear_list(output) if output.key else [f"row = {descriptor(output.table.at)}", *_zeroed(output)]
        yield "\n".join(["def empty_output(s):", *(f"    {line}" for line in empty), ""])
        yield self._look_up(given)

    def _given(self) -> Names:
        return {copy: f"given{i}" for i, (copy, _) in enumerate(self.program.inputs)}

    def _tell(self, name: str, steps: tuple[Step, ...], given: Names) -> str:
        """Output rows into columns, at most so many; a further call goes on where it stopped."""
        head, shape = self.program.enumerator.head, self.shape
        writer = StepWriter(self.memory)
        writer.cursors = []

        def told(names: Names, payload: Payload) -> None:
            spelled = payload.spelled()
            with writer.inside(f"if not ({shape.zero_test(spelled)}):"):
                writer.emit(*(f"o{i}[m] = {names[v]}" for i, v in enumerate(head)))
                start = len(head)
                for i, (kind, value) in enumerate(zip(shape.kinds, spelled, strict=True)):
                    place = f"o{start + i}"
                    writer.emit(
                        f"set_float_at({place}, m, {value})"
                        if kind == "f"
                        else f"{place}[m] = {value}"
                    )
                writer.emit("m += 1")
                with writer.inside("if m == limit:"):
                    writer.emit(*_saved(writer.cursors or []), "return m")

        writer.steps(steps, given, Payload(shape, None), told)
        self.cursors = max(self.cursors, writer.next_cursor)
        lines = [f"def {name}(s, {joined(['c', 'out', 'limit'], list(given.values()))}):"]
        lines += [f"    o{i} = out[{i}]" for i in range(len(head) + shape.width)]
        return "\n".join([*lines, "    m = 0", *writer.lines, "    return m", ""])

    def _look_up(self, given: Names) -> str:
        """The payload of one output tuple, into the words of the total."""
        head = self.program.enumerator.head
        names = given | {v: f"head{i}" for i, v in enumerate(head)}
        writer, total = StepWriter(self.memory), self.memory.stores[TOTAL]
        writer.emit(f"row = {descriptor(total.table.at)}", *_zeroed(total))

        def sum_up(_: Names, payload: Payload) -> None:
            writer.emit(f"row = {descriptor(total.table.at)}")
            sums = self.shape.add(words(total), payload.spelled())
            for i, (kind, value) in enumerate(zip(self.shape.kinds, sums, strict=True)):
                writer.emit(set_word(kind, "row", total.word + i, value))

        writer.steps(
            self.program.enumerator.steps, names, Payload(self.shape, None), sum_up
        )
        arguments = joined(["s"], [f"head{i}" for i in range(len(head))], list(given.values()))
        return "\n".join([f"def look_up({arguments}):", *writer.lines, "    return s[0]", ""])

    def _change(self, atom: int) -> str:
        """The change of the output that one tuple makes, into the local output."""
        trigger = next(each for each in self.program.triggers if each.atom == atom)
        writer, output = StepWriter(self.memory), self.memory.stores[OUTPUT]
        parameters, payload = keys(len(trigger.parameters)), self.shape.names("p")
        names = dict(zip(trigger.parameters, parameters, strict=True))
        for steps in trigger.outputs:
            writer.steps(
                steps,
                names,
                Payload(self.shape, tuple(payload)),
                lambda n, p: _collect(writer, output, n, p),
            )
            writer.settle()
        header = f"def change_{atom}(s, {joined(parameters, payload)}):"
        return "\n".join([header, *writer.lines, "    return s[0]", ""])


def _done(names: Names, payload: Payload) -> None:
    """The end of a list of steps."""


def _collect(writer: StepWriter, store: Store, names: Names, payload: Payload) -> None:
    """Add to the local output in a block of its own: the next binding has another row."""
    with writer.inside("if 1:"):
        writer.add(store, names, payload)


def _saved(cursors: list[tuple[int, str]]) -> list[str]:
    """Lines that keep where loops are; the innermost has done its turn."""
    lines = [f"c[{word}] = {value}" for word, value in cursors]
    if cursors:
        word, value = cursors[-1]
        lines[-1] = f"c[{word}] = {value} + 1"
    return lines


def _zeroed(store: Store) -> list[str]:
    return [
        set_word(kind, "row", store.word + i, "0.0" if kind == "f" else "0")
        for i, kind in enumerate(store.shape.kinds)
    ]


def _indexes(memory: Memory) -> Iterator[tuple[Store, Index]]:
    for store in memory.stores.values():
        yield from ((store, index) for index in store.indexes)


def clear_list(store: Store) -> list[str]:
    """Lines that empty a local, at the cost of what is in it."""
    (index,) = store.indexes
    width, table = entry_width(store, index), store.table
    key = joined([f"entry[{i}]" for i in range(len(store.key))])
    return [
        f"g = {descriptor(index.groups.at)}",
        f"p = {descriptor(index.pool)}",
        "left = g[1]",
        "while left > 0:",
        "    left = left - 1",
        f"    entry = p[0] + (g[0] + left * {width}) * 8",
        f"    row = find_{table.shape}({descriptor(table.at)}, {key})",
        f"    remove_{table.shape}({descriptor(table.at)}, row)",
        "if g[2] != 0:",
        f"    give_{width}(p, g[2] - 1, g[0])",
        "g[1] = 0",
        "g[2] = 0",
    ]


def clear_index(index: Index) -> list[str]:
    """Lines that empty an index."""
    groups = index.groups
    lines = [f"    clear_pool({descriptor(index.pool)})"]
    if groups.key:
        return [*lines, f"    clear_{groups.shape}({descriptor(groups.at)})"]
    return [*lines, *(f"    s[{groups.at + i}] = 0" for i in range(3))]


def _has_distinct_union(steps: Iterable[Step]) -> bool:
    for step in steps:
        if isinstance(step, Union):
            inside = [each for branch in step.branches for each in (*branch.over, *branch.steps)]
            if not step.disjoint or _has_distinct_union(inside):
                return True
    return False
