"""The output of a compiled engine: enumerated in portions, looked up, and as changes."""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewkeep.engine.compiled.emit.reading import OUTPUT, TOTAL
from viewkeep.engine.compiled.instance import Instance, Row
from viewkeep.engine.compiled.llvm import machine
from viewkeep.engine.compiled.memory import number_list
from viewkeep.engine.compiled.rings import Unfit
from viewkeep.engine.compiled.table_intake import Columns

PORTION = 1 << 14
"""Output rows that are read at a time."""


def _empty_column(kind: str, rows: int) -> NDArray[Any]:
    if kind.isdigit():
        return np.empty((rows, int(kind)), np.int64)
    return np.empty(rows, np.float64 if kind == "f" else np.int64)


@dataclass(frozen=True)
class Observed:
    """Output tuples that changed: their keys, how their payloads changed, and what they are now."""

    keys: Columns
    changes: Columns
    after: Columns


class OutputReader:
    """Reads the output from the memory of a program."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._program, self._shape = instance.program, instance.shape

    def enumerate(self, inputs: dict[str, Any]) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples with their payloads; the inputs are given."""
        head, shape = self._program.enumerator.head, self._shape
        domains = self._instance.domains(head)
        for count, columns in self.portions(inputs):
            keys = [column[:count] for column in columns[: len(head)]]
            rows = self._instance.coder.rows(keys, domains) if head else iter([()] * count)
            last = len(head) + len(shape.kinds)
            payloads = [number_list(column[:count]) for column in columns[len(head) : last]]
            codes = [column[:count].copy() for column in columns[last:]]
            decoded = self._instance.output_elements(zip(*payloads, strict=True), codes)
            yield from zip(rows, decoded, strict=True)

    def portions(
        self, inputs: dict[str, Any], rows: int = PORTION
    ) -> Iterator[tuple[int, Columns]]:
        """Output tuples as columns, so many rows at a time; the columns are used again."""
        self._instance.check_order()
        codes = self._find_all([original for _, original in self._program.inputs], inputs)
        if any(code is None for code in codes):
            return
        input_codes = [code for code in codes if code is not None]
        if not self._instance.source.collects:
            yield from self._read_portions("tell", input_codes, rows)
            return
        # Others may read before this reading ends, so what was summed up is copied at once.
        overflow = self._instance.call("collect", *input_codes)
        summed = [
            (count, [column[:count].copy() for column in columns])
            for count, columns in self._read_portions("tell_output", [], rows)
        ]
        self._instance.call("empty_output")
        self._instance.check_output(overflow)
        yield from summed

    def _read_copies(self, function: str) -> Iterator[Columns]:
        for count, columns in self._read_portions(function, [], PORTION):
            yield [column[:count].copy() for column in columns]

    def _read_portions(
        self, function: str, input_codes: list[int], limit: int
    ) -> Iterator[tuple[int, Columns]]:
        head, kinds = self._program.enumerator.head, self._shape.kinds
        cursors = np.zeros(self._instance.source.cursors, np.int64)
        columns: Columns = [np.empty(limit, np.int64) for _ in head]
        columns += [_empty_column(kind, limit) for kind in kinds]
        if function == "tell" and self._instance.extremes is not None:
            columns += [np.empty(limit, np.int64) for _ in self._instance.extremes.each]
        places = np.array([column.ctypes.data for column in columns], np.int64)
        while True:
            count = self._instance.call(
                function, cursors.ctypes.data, places.ctypes.data, limit, *input_codes
            )
            self._instance.check_output(int(self._instance.state.words[0]))
            if count:
                yield count, columns
            if count < limit:
                return

    def lookup(self, row: Row, inputs: dict[str, Any]) -> Any:
        """The payload of one output tuple."""
        self._instance.check_order()
        head = self._program.enumerator.head
        codes = self._find_all(head, dict(zip(head, row, strict=True)))
        codes += self._find_all([original for _, original in self._program.inputs], inputs)
        if None in codes:
            return self._instance.ring.zero
        self._instance.check_output(
            self._instance.call("look_up", *[code for code in codes if code is not None])
        )
        return self._total_element()

    def _total_element(self) -> Any:
        """The payload that a look-up has left in the state."""
        instance, memory = self._instance, self._instance.source.memory
        total, words = memory.stores[TOTAL], instance.state.words
        numbers = instance.state.numbers(instance.state.rows(total.table), total)
        extremes = () if instance.extremes is None else instance.extremes.each
        codes = [words[[memory.areas[each.area]]] for each in extremes]
        (element,) = instance.output_elements(numbers, codes)
        return element

    def _find_all(self, variables: Sequence[str], values: Mapping[str, Any]) -> list[int | None]:
        """The codes of the values of some variables; None for those that are nowhere."""
        domains = self._instance.domains(variables)
        find = self._instance.coder.find
        return [find(values[v], domain) for v, domain in zip(variables, domains, strict=True)]

    def output_change(self, atom: int, row: Row, payload: Any) -> dict[Row, Any]:
        """The change of the output that this tuple of an atom makes."""
        columns = self._instance.encode(atom, [(row, payload)])
        words = [int(column.view(np.int64)[0]) for column in columns]
        overflow = self._run_output_change(atom, words)
        output = self._instance.source.memory.stores[OUTPUT]
        change = dict(self._instance.items(output))
        self._instance.call("empty_output")
        self._instance.check_output(overflow)
        return change

    def observe(self, run: Callable[[], None]) -> "Observed":
        """How the output changes while `run` applies batches by functions that collect that."""
        instance = self._instance
        try:
            run()
            portions = list(self._read_copies("tell_output"))
        finally:
            instance.call("empty_output")
        width = len(self._program.enumerator.head)
        whole = [np.concatenate(columns) for columns in zip(*portions, strict=True)]
        if not whole:
            whole = [_empty_column(kind, 0) for kind in "i" * width + self._shape.kinds]
        keys, changes = whole[:width], whole[width:]
        count = len(changes[0])
        after = [_empty_column(kind, count) for kind in self._shape.kinds]
        columns = [*keys, *after]
        places = np.array([column.ctypes.data for column in columns], np.int64)
        look_up = self._observer("look_up_all")
        instance.check_output(look_up(instance.state.address, places.ctypes.data, count))
        return Observed(keys, changes, after)

    def observing(self, atom: int) -> Callable[..., int]:
        """The function that runs a batch and collects how the output changes."""
        return self._observer(f"observe_{atom}")

    def _observer(self, name: str) -> Callable[..., int]:
        """A function of batches for subscribers; compiled when it is first asked for."""
        functions = self._instance.functions
        if name not in functions:
            functions[name] = self._changes_code().function(name, 3)
        return functions[name]

    def _run_output_change(self, atom: int, words: list[int]) -> int:
        """The change of the output by one tuple; compiled when it is first asked for."""
        numbers = "i" if self._instance.sums is not None else self._shape.kinds
        kinds = "i" * (len(words) - len(numbers)) + numbers
        arguments = [
            float(np.int64(word).view(np.float64)) if kind == "f" else word
            for word, kind in zip(words, kinds, strict=True)
        ]
        name = f"change_{atom}"
        if name not in self._instance.functions:
            types = [ctypes.c_double if kind == "f" else ctypes.c_int64 for kind in kinds]
            self._instance.functions[name] = self._changes_code().typed(name, types)
        return self._instance.functions[name](self._instance.state.address, *arguments)

    def _changes_code(self) -> machine.MachineCode:
        try:
            return machine.load(self._instance.source.changes)
        except Exception as error:
            raise Unfit(f"compiling failed ({type(error).__name__}: {error})") from error
