"""The text of reading: output rows in portions, single rows, and how updates change them."""

from collections.abc import Iterable, Iterator, Sequence

from viewkeep.engine.compiled.emit.maps import (
    column_place,
    entry_width,
    set_number,
    set_numbers,
    words,
)
from viewkeep.engine.compiled.emit.tables import call_arguments, descriptor, keys
from viewkeep.engine.compiled.emit.text import Lifts, Names, Payload
from viewkeep.engine.compiled.emit.triggers import StepWriter
from viewkeep.engine.compiled.extremes import Extreme
from viewkeep.engine.compiled.formats import NULL
from viewkeep.engine.compiled.function import Function
from viewkeep.engine.compiled.layout import Memory, Store
from viewkeep.plan.program import Access, Join, Program, Step, Union
from viewkeep.query.aggregates import COUNT_DISTINCT

OUTPUT, TOTAL = "output", "total"
"""Locals that take output tuples that must be summed, and the payload of a look-up."""


class ReadingWriter:
    """Writes how the output of a program is read."""

    def __init__(
        self, program: Program, memory: Memory, lifts: Lifts, extremes: Sequence[Extreme] = ()
    ) -> None:
        self._lifts, self._extremes = lifts, extremes
        self.program, self.memory, self.shape = program, memory, memory.shape
        self.cursors = 1
        self.collects = not program.enumerator.distinct or _reads_distinct_union(
            program.enumerator.steps
        )

    def changes(self) -> Iterator[Function]:
        """How tuples change the output: one, and those of a batch, which is applied."""
        for atom in dict.fromkeys(trigger.atom for trigger in self.program.triggers):
            yield self._output_change_text(atom)
            yield self._observe_text(atom)
        yield self._look_up_all_text()

    def parts(self) -> Iterator[Function]:
        """Enumeration in portions, the local output, and look-ups."""
        enumerator, inputs = self.program.enumerator, self._names_of_inputs()
        output = self.memory.stores[OUTPUT]
        if self.collects:
            writer = StepWriter(self.memory)
            one = Payload(self.shape, None)
            writer.steps(
                enumerator.steps, inputs, one, lambda n, p: _write_collect(writer, output, n, p)
            )
            writer.settle()
            parameters = call_arguments(["s"], list(inputs.values()))
            lines = [*writer.lines, "    return s[0]"]
            yield Function("collect", parameters, lines, public=True)
        else:
            yield self._enumerate_text("tell", enumerator.steps, inputs, self._extremes)
        if output.key:
            whole = Join((Access(OUTPUT, output.key),), output.key)
            yield self._enumerate_text("tell_output", (whole,), {})
        else:
            yield self._enumerate_text("tell_output", (Join((Access(OUTPUT, ()),)),), {})
        empty = (
            clear_list(output)
            if output.key
            else [f"row = {descriptor(output.table.at)}", *zeroed(output)]
        )
        yield Function("empty_output", "s", [f"    {line}" for line in empty], public=True)
        yield self._look_up_text(inputs)

    def _names_of_inputs(self) -> Names:
        return {copy: f"input{i}" for i, (copy, _) in enumerate(self.program.inputs)}

    def _enumerate_text(
        self, name: str, steps: tuple[Step, ...], inputs: Names, extremes: Sequence[Extreme] = ()
    ) -> Function:
        """Write output rows into columns, up to a number; the next call resumes. The columns are
        the head, the payload, and the codes of extremes."""
        head, shape = self.program.enumerator.head, self.shape
        writer = StepWriter(self.memory)
        writer.cursors = []

        def write_row(names: Names, payload: Payload) -> None:
            spelled = payload.spelled()
            with writer.inside(f"if not ({shape.zero_test(spelled)}):"):
                writer.emit(*(f"o{i}[m] = {names[v]}" for i, v in enumerate(head)))
                start = len(head)
                for i, (kind, value) in enumerate(zip(shape.kinds, spelled, strict=True)):
                    writer.emit(set_number(kind, f"o{start + i}", column_place(kind, "m"), value))
                for i, extreme in enumerate(extremes, start=start + len(shape.kinds)):
                    writer.emit(f"o{i}[m] = {self._write_extreme(writer, extreme, names)}")
                writer.emit("m += 1")
                with writer.inside("if m == limit:"):
                    writer.emit(*_cursor_lines(writer.cursors or []), "return m")

        writer.steps(steps, inputs, Payload(shape, None), write_row)
        self.cursors = max(self.cursors, writer.next_cursor)
        parameters = call_arguments(["s", "c", "out", "limit"], list(inputs.values()))
        width = len(head) + len(shape.kinds) + len(extremes)
        lines = [f"    o{i} = out[{i}]" for i in range(width)]
        lines += ["    m = 0", *writer.lines, "    return m"]
        return Function(name, parameters, lines, public=True)

    def _write_extreme(self, writer: StepWriter, extreme: Extreme, names: Names) -> str:
        """The variable with the code of an extreme, of the group that the names tell."""
        if extreme.function == COUNT_DISTINCT:
            return self._write_distinct_count(writer, extreme, names)
        if not extreme.values:
            return names[extreme.variable]
        store = self.memory.stores[extreme.values]
        index = store.heap(frozenset(extreme.group), extreme.order)
        at, count = writer.list_search(index, names)
        code = writer.fresh("code")
        writer.emit(f"{code} = {NULL}", f"if {count} != 0:", f"    {code} = {at}[0]")
        return code

    def _write_distinct_count(self, writer: StepWriter, extreme: Extreme, names: Names) -> str:
        """The variable with the number of a group's values, null not among them."""
        if not extreme.values:
            code = writer.fresh("code")
            writer.emit(
                f"{code} = 1", f"if {names[extreme.variable]} == {NULL}:", f"    {code} = 0"
            )
            return code
        store = self.memory.stores[extreme.values]
        index, table = store.heap(frozenset(extreme.group), extreme.order), store.table
        _, count = writer.list_search(index, names)
        key = [str(NULL) if v == extreme.variable else names[v] for v in store.key]
        row = writer.fresh("row")
        find = f"find_{table.shape}({descriptor(table.at)}, {call_arguments(key)})"
        # A row may be there for the sake of another map in the same table.
        here = f"not ({store.shape.zero_test(words(store, row))})"
        writer.emit(f"{row} = 0", f"if {count} != 0:", f"    {row} = {find}")
        writer.emit(f"if {row} != 0:", f"    if {here}:", f"        {count} -= 1")
        return count

    def _look_up_text(self, inputs: Names) -> Function:
        """The payload of one output tuple, into the words of the total."""
        head = self.program.enumerator.head
        names = inputs | {v: f"head{i}" for i, v in enumerate(head)}
        writer, total = StepWriter(self.memory), self.memory.stores[TOTAL]
        writer.emit(f"row = {descriptor(total.table.at)}", *zeroed(total))
        areas = [self.memory.areas[extreme.area] for extreme in self._extremes]
        writer.emit(*(f"s[{area}] = {NULL}" for area in areas))

        def sum_up(bound: Names, payload: Payload) -> None:
            for area, extreme in zip(areas, self._extremes, strict=True):
                writer.emit(f"s[{area}] = {self._write_extreme(writer, extreme, bound)}")
            writer.emit(f"row = {descriptor(total.table.at)}")
            sums = self.shape.add(words(total), payload.spelled())
            writer.emit(*set_numbers(self.shape, "row", total.word, sums))

        writer.steps(self.program.enumerator.steps, names, Payload(self.shape, None), sum_up)
        arguments = call_arguments(
            ["s"], [f"head{i}" for i in range(len(head))], list(inputs.values())
        )
        return Function("look_up", arguments, [*writer.lines, "    return s[0]"], public=True)

    def _output_change_text(self, atom: int) -> Function:
        """The change of the output that one tuple makes, into the local output."""
        trigger = next(each for each in self.program.triggers if each.atom == atom)
        writer, output = StepWriter(self.memory), self.memory.stores[OUTPUT]
        parameters, payload = keys(len(trigger.parameters)), self.shape.names("p")
        names = dict(zip(trigger.parameters, parameters, strict=True))
        if self._lifts.everywhere:
            writer.emit(*self._lifts.lines[atom])
        for steps in trigger.outputs:
            writer.steps(
                steps,
                names,
                Payload(self.shape, tuple(payload)),
                lambda n, p: _write_collect(writer, output, n, p),
            )
            writer.settle()
        lines = [*writer.lines, "    return s[0]"]
        arguments = call_arguments(["s"], parameters, ["m"] if self._lifts.everywhere else payload)
        return Function(f"change_{atom}", arguments, lines, public=True)

    def _observe_text(self, atom: int) -> Function:
        """Run the updates of a batch, and sum up what they change in the local output."""
        trigger = next(each for each in self.program.triggers if each.atom == atom)
        arity, payload = len(trigger.parameters), self.shape.names("p")
        lifted = ["m"] if self._lifts.everywhere else payload
        body = [
            *self._lifts.tuple_lines(atom, arity, self.shape),
            f"change_{atom}({call_arguments(['s'], keys(arity), lifted)})",
            f"update_{atom}({call_arguments(['s'], keys(arity), payload)})",
        ]
        lines = [*self._lifts.column_lines(arity, self.shape), "    for i in range(n):"]
        lines += [*(f"        {line}" for line in body), "    return s[0]"]
        return Function(f"observe_{atom}", "s, columns, n", lines, public=True)

    def _look_up_all_text(self) -> Function:
        """The payloads of output tuples, whose keys are columns, into columns."""
        head, total = self.program.enumerator.head, self.memory.stores[TOTAL]
        width = len(head)
        lines = [f"    c{i} = columns[{i}]" for i in range(width + len(self.shape.kinds))]
        lines += ["    for i in range(n):"]
        lines += [f"        look_up({call_arguments(['s'], [f'c{i}[i]' for i in range(width)])})"]
        lines += [f"        row = {descriptor(total.table.at)}"]
        for number, (kind, text) in enumerate(zip(self.shape.kinds, words(total), strict=True)):
            place = column_place(kind, "i")
            lines.append(f"        {set_number(kind, f'c{width + number}', place, text)}")
        if self.program.inputs:
            lines = []
        return Function("look_up_all", "s, columns, n", [*lines, "    return s[0]"], public=True)


def _write_collect(writer: StepWriter, store: Store, names: Names, payload: Payload) -> None:
    """Add to the local output in a block of its own, since the next binding has another row."""
    with writer.inside("if 1:"):
        writer.add(store, names, payload)


def _cursor_lines(cursors: list[tuple[int, str]]) -> list[str]:
    """Lines that keep where loops are; the innermost has done its turn."""
    lines = [f"c[{word}] = {value}" for word, value in cursors]
    if cursors:
        word, value = cursors[-1]
        lines[-1] = f"c[{word}] = {value} + 1"
    return lines


def zeroed(store: Store) -> list[str]:
    """Lines that make the payload of `row` zero."""
    return set_numbers(store.shape, "row", store.word, store.shape.zeros())


def clear_list(store: Store) -> list[str]:
    """Lines that empty a local, at the cost of what is in it."""
    (index,) = store.indexes
    width, table = entry_width(store, index), store.table
    key = call_arguments([f"entry[{i}]" for i in range(len(store.key))])
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


def _reads_distinct_union(steps: Iterable[Step]) -> bool:
    for step in steps:
        if isinstance(step, Union):
            inside = [each for branch in step.branches for each in (*branch.over, *branch.steps)]
            if not step.disjoint or _reads_distinct_union(inside):
                return True
    return False
