"""The text that keeps heavy and light parts in balance (the compiled form of
`engine/interpreter/partitions.py`): the same levels, thresholds and moves after every update."""

from collections.abc import Callable, Iterable, Iterator

from viewkeep.engine.compiled.emit.maps import function_name, words
from viewkeep.engine.compiled.emit.parts import PartWriter, degree_name, level_name, theta_name
from viewkeep.engine.compiled.emit.reading import zeroed
from viewkeep.engine.compiled.emit.tables import EMPTY, call_arguments, descriptor, keys
from viewkeep.engine.compiled.emit.text import Lifts, Payload
from viewkeep.engine.compiled.emit.triggers import StepWriter
from viewkeep.engine.compiled.function import Function, Heat
from viewkeep.engine.compiled.layout import (
    BASE,
    MAJOR,
    MINOR,
    SIZE,
    Memory,
    Store,
    writes_skewed,
)
from viewkeep.plan.program import Block, Collect, Part, Program, Split, Trigger

WriteTrigger = Callable[[int, Trigger, Iterable[Block]], list[str]]
"""The lines of some blocks of a trigger, which has this number."""


def split_text(
    program: Program, memory: Memory, lifts: Lifts, write_trigger: WriteTrigger
) -> Iterator[Function]:
    """Updates that go to the right part, and all that balance asks for."""
    skewed = [n for n, block in enumerate(program.loading) if writes_skewed(program, block)]
    yield Function("reload", "s", [f"    load_{number}(s)" for number in skewed])
    for number, trigger in enumerate(program.triggers):
        blocks = _blocks_that_move(program, trigger)
        arguments = call_arguments(["s"], keys(len(trigger.parameters)), memory.shape.names("p"))
        body = [f"    trigger_{number}({arguments})"]
        if tuple(blocks) != trigger.blocks:
            body = write_trigger(number, trigger, blocks)
        yield Function(f"move_{number}", arguments, body)
    yield from _SplitBalance(program, memory, lifts).parts()


def _blocks_that_move(program: Program, trigger: Trigger) -> list[Block]:
    """The blocks that change what depends on how relations are split, and what they need."""
    moving, sources = list[Block](), set[str]()
    for block in reversed(trigger.blocks):
        locals_ = {step.local for step in block.steps if isinstance(step, Collect)}
        if writes_skewed(program, block) or locals_ & sources:
            moving.insert(0, block)
            sources.add(block.source)
    return moving


class _SplitBalance(PartWriter):
    """Writes the functions of all splits."""

    def parts(self) -> Iterator[Function]:
        yield self._set_base_text()
        for number, split in enumerate(self.program.splits):
            yield from self._level_functions(number, split)
            yield self._degree_text(number, split)
        gathers: dict[str, Function] = {}
        for part in self.split_parts:
            gathers[function_name("gather", self._part_store(part))] = self._gather_all_text(part)
            for number, _ in part.levels:
                gathers[self._gather_function_name(part, number)] = self._gather_text(part, number)
        yield from gathers.values()
        for number, split in enumerate(self.program.splits):
            yield self._move_text(number, split)
            yield self._balance_value_text(number, split)
        yield self._count_degrees_text()
        yield self._set_levels_text()
        yield self._spread_text()
        yield self._distribute_text()
        yield self._rebalance_all_text()
        for atom in dict.fromkeys(trigger.atom for trigger in self.program.triggers):
            yield self._balance_text(atom)
            yield self._split_update_text(atom)

    def _set_base_text(self) -> Function:
        lines = list[str]()
        for number, split in enumerate(self.program.splits):
            at = self.memory.areas[theta_name(number)]
            for i, threshold in enumerate(split.thresholds):
                value = f"pow(real(s[{BASE}]), {float(threshold)!r})"
                lines.append(f"    set_float_at(s, {at + i}, {value})")
        return Function("set_base", "s", lines, public=True)

    def _level_functions(self, number: int, split: Split) -> Iterator[Function]:
        """Read, set and forget the level of a value; the level that a degree asks for."""
        store, names = self.memory.stores[level_name(number)], keys(len(split.variables))
        table, at = store.table, self.memory.areas[theta_name(number)]
        key = call_arguments([descriptor(table.at)], names)
        find = f"    row = find_{table.shape}({key})"
        yield Function(
            f"level_{number}",
            call_arguments(["s"], names, ["missing"]),
            [find, "    if row == 0:", "        return missing", f"    return row[{store.word}]"],
            inline=True,
            heat=Heat.LOOK_UP,
        )
        body = [
            find,
            "    if level == 0:",
            "        if row != 0:",
            f"            remove_{table.shape}({descriptor(table.at)}, row)",
            "        return 0",
            "    if row == 0:",
            f"        row = insert_{table.shape}({key})",
            f"    row[{store.word}] = level",
            "    return 0",
        ]
        parameters = call_arguments(["s"], names, ["level"])
        yield Function(f"set_level_{number}", parameters, body, public=True)
        lines = ["    level = 0"]
        for i in range(len(split.thresholds)):
            lines += [f"    if real(degree) >= float_at(s, {at + i}):", "        level += 1"]
        lines += [f"    if level < {split.default}:", f"        level = {split.default}"]
        yield Function(f"wanted_{number}", "s, degree", [*lines, "    return level"])

    def _degree_text(self, number: int, split: Split) -> Function:
        """The largest degree of a value in the atoms of a split; it is in parts of its level."""
        names = dict(zip(split.variables, keys(len(split.variables)), strict=True))
        lines = ["    most = 0"]
        for atom in split.atoms:
            lines.append("    total = 0")
            for part in self._parts_of_level(number):
                if part.atom == atom:
                    index = self._split_index(part, number)
                    group, key = index.groups, call_arguments([names[v] for v in index.columns])
                    lines += [
                        f"    if level == {dict(part.levels)[number]}:",
                        f"        g = find_{group.shape}({descriptor(group.at)}, {key})",
                        "        if g != 0:",
                        f"            total += g[{len(index.columns) + 1}]",
                    ]
            lines += ["    if total > most:", "        most = total"]
        parameters = call_arguments(["s"], list(names.values()), ["level"])
        return Function(f"degree_{number}", parameters, [*lines, "    return most"])

    # --- minor rebalancing ------------------------------------------------------------------------

    def _move_text(self, number: int, split: Split) -> Function:
        names = keys(len(split.variables), "x")
        lines = [f"    s[{MINOR}] += 1"]
        for part in self._parts_of_level(number):
            own = dict(part.levels)[number]
            lines += [f"    if level == {own}:"]
            store = self._part_store(part)
            rows = f"{descriptor(store.table.at)}, {call_arguments(names)}"
            lines += [f"        start = {self._gather_function_name(part, number)}({rows})"]
            lines += ["        copy = start + 8", "        for i in range(start[0]):"]
            lines += [f"            {line}" for line in self._read_copy_lines(part)]
            for level in range(len(split.thresholds) + 1):
                if level != own:
                    lines += [
                        f"            {line}" for line in self._move_lines(part, number, level)
                    ]
            lines += [f"            copy += {8 * self._copy_width(store)}"]
            lines += ["        release(start)"]
        lines += [
            f"    if degree_{number}(s, {call_arguments(names)}, target) == 0:",
            "        target = 0",
            f"    set_level_{number}(s, {call_arguments(names)}, target)",
        ]
        return Function(f"shift_{number}", call_arguments(["s"], names, ["level", "target"]), lines)

    def _move_lines(self, part: Part, number: int, level: int) -> list[str]:
        levels = tuple((n, level if n == number else old) for n, old in part.levels)
        other = next(
            each for each in self.split_parts if each.atom == part.atom and each.levels == levels
        )
        arity, payload = len(self._part_store(part).key), self.shape.names("p")
        negation = self.shape.negate(payload)
        return [
            f"if target == {level}:",
            f"    move_{self._part_trigger(part)}(s, {call_arguments(keys(arity), negation)})",
            f"    move_{self._part_trigger(other)}(s, {call_arguments(keys(arity), payload)})",
        ]

    def _balance_value_text(self, number: int, split: Split) -> Function:
        names, at = keys(len(split.variables)), self.memory.areas[theta_name(number)]
        top, value = len(split.thresholds), call_arguments(names)
        body = f"""\
    level = level_{number}(s, {value}, {split.default})
    degree = degree_{number}(s, {value}, level)
    away = 0
    if level < {top}:
        if real(degree) >= 1.5 * float_at(s, {at} + level):
            away = 1
    if level > {split.default}:
        if real(degree) < 0.5 * float_at(s, {at} + level - 1):
            away = 1
    if away != 0:
        shift_{number}(s, {value}, level, wanted_{number}(s, degree))
        return 0
    if degree == 0:
        level = 0
    set_level_{number}(s, {value}, level)
    return 0"""
        return Function(f"balance_value_{number}", f"s, {value}", [body])

    # --- major rebalancing ------------------------------------------------------------------------

    def _copies_loop(self, inner: Callable[[Part], list[str]]) -> list[str]:
        """Lines over the copies of all parts, whose addresses are in `copies`."""
        lines = list[str]()
        for place, part in enumerate(self.split_parts):
            store = self._part_store(part)
            lines += [
                f"    start = copies[{place}]",
                "    if start != 0:",
                "        copy = start + 8",
                "        for i in range(start[0]):",
                *(f"            {line}" for line in self._read_copy_lines(part)),
                *(f"            {line}" for line in inner(part)),
                f"            copy += {8 * self._copy_width(store)}",
            ]
        return lines

    def _count_degrees_text(self) -> Function:
        def count(part: Part) -> list[str]:
            lines = []
            for number, _ in part.levels:
                store = self.memory.stores[degree_name(number, part.atom)]
                table, value = store.table, self._split_value_arguments(part, number)
                lines += [
                    f"row = find_{table.shape}({descriptor(table.at)}, {value})",
                    "if row == 0:",
                    f"    row = insert_{table.shape}({descriptor(table.at)}, {value})",
                    f"row[{store.word}] += 1",
                ]
            return lines

        return Function("count_degrees", "s, copies", self._copies_loop(count))

    def _set_levels_text(self) -> Function:
        """Strictly by the thresholds, from the largest degree in any atom of a split."""
        lines = list[str]()
        for number, split in enumerate(self.program.splits):
            level = self.memory.stores[level_name(number)].table
            stores = [self.memory.stores[degree_name(number, atom)] for atom in split.atoms]
            lines += [f"    clear_{level.shape}({descriptor(level.at)})"]
            names = keys(len(split.variables))
            for store in stores:
                lines += [
                    f"    d = {descriptor(store.table.at)}",
                    "    for i in range(d[1] + 1):",
                    f"        row = d[0] + i * {8 * store.table.stride}",
                    f"        if row[0] != {EMPTY}:",
                    *(f"            {name} = row[{i}]" for i, name in enumerate(names)),
                    f"            degree = row[{store.word}]",
                ]
                for other in stores:
                    table = other.table
                    own = f"{descriptor(table.at)}, {call_arguments(names)}"
                    lines += [
                        f"            row = find_{table.shape}({own})",
                        "            if row != 0:",
                        f"                if row[{other.word}] > degree:",
                        f"                    degree = row[{other.word}]",
                    ]
                lines += [
                    f"            level = wanted_{number}(s, degree)",
                    "            if level > 0:",
                    f"                set_level_{number}(s, {call_arguments(names)}, level)",
                ]
            lines += [
                f"    clear_{each.table.shape}({descriptor(each.table.at)})" for each in stores
            ]
        return Function("set_levels", "s", lines)

    def _spread_text(self) -> Function:
        """Rows into the parts that the levels of their values name."""

        def into(part: Part) -> list[str]:
            lines = [
                f"l{number} = level_{number}(s, {self._split_value_arguments(part, number)}, 0)"
                for number, _ in part.levels
            ]
            for other in self.split_parts:
                if other.atom == part.atom:
                    test = " and ".join(f"l{number} == {level}" for number, level in other.levels)
                    lines += [f"if {test}:", *(f"    {line}" for line in self._add_lines(other))]
            return lines

        lines = [*self._copies_loop(into), "    return s[0]"]
        return Function("spread", "s, copies", lines, public=True)

    def _add_lines(self, part: Part) -> list[str]:
        store, writer = self._part_store(part), StepWriter(self.memory)
        names = dict(zip(store.key, keys(len(store.key)), strict=True))
        writer.add(store, names, Payload(self.shape, tuple(self.shape.names("p"))))
        writer.settle()
        return [line.removeprefix("    ") for line in writer.lines]

    def _distribute_text(self) -> Function:
        calls = ["    count_degrees(s, copies)", "    set_levels(s)", "    spread(s, copies)"]
        return Function("distribute", "s, copies", [*calls, "    return s[0]"], public=True)

    def _rebalance_all_text(self) -> Function:
        """Partition anew by the new thresholds, and compute what depends on the parts."""
        lines = [f"    s[{MAJOR}] += 1", "    set_base(s)"]
        lines += [f"    copies = claim({8 * len(self.split_parts)})"]
        for place, part in enumerate(self.split_parts):
            gather = function_name("gather", self._part_store(part))
            at = descriptor(self._part_store(part).table.at)
            lines.append(f"    copies[{place}] = {gather}({at})")
        for each in self.program.maps:
            if each.parts:
                lines += [f"    {line}" for line in _clear_lines(self.memory, each.name)]
        lines += ["    distribute(s, copies)", "    reload(s)"]
        lines += [f"    release(copies[{place}])" for place in range(len(self.split_parts))]
        return Function("rebalance_all", "s", [*lines, "    release(copies)"])

    # --- updates ----------------------------------------------------------------------------------

    def _balance_text(self, atom: int) -> Function:
        part = next(each for each in self.program.parts if each.atom == atom)
        names = call_arguments(keys(len(self._part_store(part).key)))
        lines = [
            f"    if s[{SIZE}] >= s[{BASE}]:",
            f"        s[{BASE}] = 2 * s[{BASE}]",
            "        rebalance_all(s)",
            "        return 0",
            f"    if s[{SIZE}] < s[{BASE}] // 4:",
            f"        s[{BASE}] = s[{BASE}] // 2 - 1",
            "        rebalance_all(s)",
            "        return 0",
        ]
        lines += [
            f"    balance_value_{number}(s, {self._split_value_arguments(part, number)})"
            for number, _ in part.levels
        ]
        return Function(f"balance_{atom}", f"s, {names}", [*lines, "    return 0"])

    def _split_update_text(self, atom: int) -> Function:
        own = [part for part in self.program.parts if part.atom == atom]
        arity, payload = len(self._part_store(own[0]).key), self.shape.names("p")
        lines = ["    grown = 0"]
        for number, _ in own[0].levels:
            default = self.program.splits[number].default
            value = self._split_value_arguments(own[0], number)
            lines.append(f"    l{number} = level_{number}(s, {value}, {default})")
        for part in own:
            test = " and ".join(f"l{number} == {level}" for number, level in part.levels)
            trigger = (
                f"trigger_{self._part_trigger(part)}(s, {call_arguments(keys(arity), payload)})"
            )
            lines.append(f"    if {test or '1'}:")
            lines += [f"        {line}" for line in _growth_lines(self._part_store(part), trigger)]
        lines += [
            "    if grown != 0:",
            f"        s[{SIZE}] += grown",
            f"        balance_{atom}(s, {call_arguments(keys(arity))})",
        ]
        arguments = call_arguments(["s"], keys(arity), payload)
        return Function(f"update_{atom}", arguments, lines, inline=True, heat=Heat.HOT)


def _growth_lines(store: Store, trigger: str) -> list[str]:
    """Lines that run a trigger, and tell by how many tuples the map of an atom grows."""
    at = store.table.at
    if store.key:
        return [f"before = s[{at + 2}]", trigger, f"grown = s[{at + 2}] - before"]
    row = f"row = {descriptor(at)}"
    is_empty = store.shape.zero_test(words(store, "row"))
    return [
        *("before = 1", row, f"if {is_empty}:", "    before = 0"),
        *(trigger, "grown = 1 - before", row, f"if {is_empty}:", "    grown = 0 - before"),
    ]


def _clear_lines(memory: Memory, name: str) -> Iterator[str]:
    """Lines that empty a map; the others of its table, which are emptied too, come in turn."""
    store = memory.stores[name]
    if not store.key:
        yield f"row = {descriptor(store.table.at)}"
        yield from zeroed(store)
        return
    yield f"clear_{store.table.shape}({descriptor(store.table.at)})"
    for index in store.indexes:
        yield f"clear_pool({descriptor(index.pool)})"
        if index.groups.key:
            yield f"clear_{index.groups.shape}({descriptor(index.groups.at)})"
        else:
            yield from (f"s[{index.groups.at + i}] = 0" for i in range(3))
