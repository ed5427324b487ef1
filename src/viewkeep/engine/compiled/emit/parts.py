"""Text over the parts of split relations: which they are, and copies of their rows."""

from collections.abc import Iterator

from viewkeep.engine.compiled.emit.maps import entry_width, function_name, numbers_at
from viewkeep.engine.compiled.emit.tables import EMPTY, call_arguments, keys
from viewkeep.engine.compiled.emit.text import Lifts
from viewkeep.engine.compiled.function import Function
from viewkeep.engine.compiled.layout import Index, Local, Memory, Store
from viewkeep.engine.compiled.rings import COUNT
from viewkeep.plan.program import Part, Program


def level_name(number: int) -> str:
    """The local with the levels of the values of a split."""
    return f"level of {number}"


def degree_name(number: int, atom: int) -> str:
    return f"degree of {number} in {atom}"


def theta_name(number: int) -> str:
    return f"thetas of {number}"


def split_locals(program: Program) -> Iterator[Local]:
    """Levels, and degrees while everything is partitioned anew."""
    for number, split in enumerate(program.splits):
        yield Local(level_name(number), split.variables, COUNT, listed=False)
        for atom in split.atoms:
            yield Local(degree_name(number, atom), split.variables, COUNT, listed=False)


def split_areas(program: Program) -> dict[str, int]:
    """Thresholds as floats."""
    return {theta_name(n): len(split.thresholds) for n, split in enumerate(program.splits)}


class PartWriter:
    """What the functions of splits and parts have in common."""

    def __init__(self, program: Program, memory: Memory, lifts: Lifts) -> None:
        self._lifts = lifts
        self.program, self.memory, self.shape = program, memory, memory.shape
        self.split_parts = [part for part in program.parts if part.levels]

    # --- pieces -----------------------------------------------------------------------------------

    def _part_store(self, part: Part) -> Store:
        return self.memory.stores[part.map]

    def _part_trigger(self, part: Part) -> int:
        return next(
            number
            for number, trigger in enumerate(self.program.triggers)
            if trigger.atom == part.atom and trigger.part in ("", part.map)
        )

    def _split_value_names(self, part: Part, number: int, stem: str = "k") -> list[str]:
        """The variables that hold the value of a split, of those that hold a row of a part."""
        key = self._part_store(part).key
        return [f"{stem}{key.index(v)}" for v in self.program.splits[number].variables]

    def _split_value_arguments(self, part: Part, number: int) -> str:
        """The arguments of a call for the value of a split."""
        return call_arguments(self._split_value_names(part, number))

    def _split_index(self, part: Part, number: int) -> Index:
        store, variables = self._part_store(part), self.program.splits[number].variables
        index = store.index(tuple(v for v in store.key if v in variables))
        assert index is not None  # the layout keeps the indexes of degrees
        return index

    def _parts_of_level(self, number: int, level: int | None = None) -> Iterator[Part]:
        for atom in self.program.splits[number].atoms:
            for part in self.split_parts:
                if part.atom == atom and (level is None or dict(part.levels)[number] == level):
                    yield part

    # --- copies of rows ---------------------------------------------------------------------------

    def _copy_width(self, store: Store) -> int:
        """The words of a copied row: its key, and its payload or, where that follows from the key,
        its multiplicity."""
        return len(store.key) + (1 if self._lifts.everywhere else store.shape.size)

    def _copy_lines(self, store: Store, row: str) -> list[str]:
        """Lines that write a row and its payload to `copy`."""
        arity = len(store.key)
        lines = [f"copy[{i}] = {row}[{i}]" for i in range(arity)]
        size = self._copy_width(store) - arity
        return lines + [f"copy[{arity + i}] = {row}[{store.word + i}]" for i in range(size)]

    def _gather_all_text(self, part: Part) -> Function:
        """A copy of all rows of a part: how many, then the rows with their payloads."""
        store = self._part_store(part)
        table, width = store.table, 8 * self._copy_width(store)
        return Function(
            function_name("gather", store),
            "d",
            [
                f"    start = claim(8 + d[2] * {width})",
                "    start[0] = d[2]",
                "    copy = start + 8",
                "    for i in range(d[1] + 1):",
                f"        row = d[0] + i * {8 * table.stride}",
                f"        if row[0] != {EMPTY}:",
                *(f"            {line}" for line in self._copy_lines(store, "row")),
                f"            copy += {width}",
                "    return start",
            ],
        )

    def _gather_text(self, part: Part, number: int) -> Function:
        """A copy of the rows of a part that have one value of a split."""
        store, index = self._part_store(part), self._split_index(part, number)
        table, width = store.table, 8 * self._copy_width(store)
        split = self.program.splits[number]
        value = dict(zip(split.variables, keys(len(split.variables)), strict=True))
        group, base = index.groups, table.at
        pool, groups = f"b + {8 * (index.pool - base)}", f"b + {8 * (group.at - base)}"
        entry = entry_width(store, index)
        rest = {v: f"entry[{i}]" for i, v in enumerate(index.rest)}
        key = call_arguments([rest.get(v) or value[v] for v in store.key])
        arity = len(index.columns)
        return Function(
            self._gather_function_name(part, number),
            f"b, {call_arguments(list(value.values()))}",
            [
                f"    g = find_{group.shape}({groups}, "
                f"{call_arguments([value[v] for v in index.columns])})",
                "    n = 0",
                "    if g != 0:",
                f"        n = g[{arity + 1}]",
                f"    start = claim(8 + n * {width})",
                "    start[0] = n",
                "    copy = start + 8",
                f"    p = {pool}",
                "    for i in range(n):",
                f"        entry = p[0] + (g[{arity}] + i * {entry}) * 8",
                f"        row = find_{table.shape}(b, {key})",
                *(f"        {line}" for line in self._copy_lines(store, "row")),
                f"        copy += {width}",
                "    return start",
            ],
        )

    def _gather_function_name(self, part: Part, number: int) -> str:
        """The name of a gathering function, shared by parts of the same layout."""
        store, index = self._part_store(part), self._split_index(part, number)
        order = "_".join(str(store.key.index(v)) for v in self.program.splits[number].variables)
        return f"{function_name('gather', store)}__{index.place}_{order}"

    def _read_copy_lines(self, part: Part) -> list[str]:
        """Lines that read a row and its payload from `copy`."""
        arity, names = len(self._part_store(part).key), self.shape.names("p")
        lines = [f"k{i} = copy[{i}]" for i in range(arity)]
        if self._lifts.everywhere:
            return [*lines, f"m = copy[{arity}]", *self._lifts.lines[part.atom]]
        payload = zip(names, numbers_at(self.shape, "copy", arity), strict=True)
        return lines + [f"{name} = {number}" for name, number in payload]
