"""A program's machine code over one state: calls, and changes and rows as columns of codes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from viewkeep.engine.compiled.emit.program import emit_program
from viewkeep.engine.compiled.extremes import OVERTAKEN, OrderedProgram, plan_extremes
from viewkeep.engine.compiled.fast_path import FastPaths
from viewkeep.engine.compiled.formats import NULL
from viewkeep.engine.compiled.layout import DICTIONARY, NEGATIVE, Store, unread_inputs
from viewkeep.engine.compiled.llvm import machine
from viewkeep.engine.compiled.llvm.translate import TOO_WIDE
from viewkeep.engine.compiled.memory import MemoryState, Words
from viewkeep.engine.compiled.rings import COUNT, Overflow, Retype, Unfit, shape_of
from viewkeep.engine.compiled.sums import WINDOW, mark_summed, plan_sums, sum_signature, unit_name
from viewkeep.engine.compiled.table_intake import Columns
from viewkeep.engine.compiled.unread_maps import WIDE, without_unread_maps
from viewkeep.engine.compiled.values import Coder, Domain
from viewkeep.plan.payload import Payload
from viewkeep.plan.program import Program
from viewkeep.query.aggregates import COUNT_DISTINCT
from viewkeep.query.conjunctive import ConjunctiveQuery

Row = tuple[Any, ...]

SPARE = 6
"""Bits beyond those that were seen, so that units change rarely."""


class Instance:
    """The maps of one program in bare memory, and its functions by name."""

    def __init__(
        self,
        program: Program,
        payload: Payload,
        query: ConjunctiveQuery,
        coder: Coder | None = None,
        keep_inputs: bool = True,
    ) -> None:
        self.coder = Coder(query) if coder is None else coder
        mark_summed(query, self.coder)
        self.sums = plan_sums(query, self.coder)
        shape = shape_of(payload.ring) if self.sums is None else self.sums.shape
        if isinstance(shape, str):
            raise Unfit(shape)
        if shape.size >= WIDE:
            program = without_unread_maps(program)
        self.extremes: OrderedProgram | None = None
        if self.sums is not None:
            self.extremes = plan_extremes(query, program, self.coder, self.sums.places)
        if self.extremes is not None:
            program = self.extremes.program
        self.query, self._signature = query, sum_signature(query, self.coder)
        self._is_summed = any(domain.lifted for domain in self.coder.domains.values())
        self.program, self.ring, self.shape, self.payload = program, payload.ring, shape, payload
        self.inlets = FastPaths(program, payload, query, self.coder, shape, self.sums)
        ordered = frozenset(() if self.extremes is None else self.extremes.orders)
        self.dropped = frozenset[str]() if keep_inputs else unread_inputs(program, ordered)
        self.source = emit_program(program, shape, self.inlets.lifts(), self.dropped, self.extremes)
        self.code = machine.load(self.source.main, self.inlets.module())
        self.state = MemoryState(self.source.memory, self.code.function("start", 1))
        for place, unit in ({} if self.sums is None else self.sums.units).items():
            self.state.words[self.source.memory.areas[unit_name(*place)]] = unit
        self.connect_texts()
        self.functions: dict[str, Callable[..., int]] = {}
        self._domains = self._domains_of_query(query)
        self._part_keys = {p.atom: program.map(p.map).key for p in program.parts}

    def _domains_of_query(self, query: ConjunctiveQuery) -> dict[str, Domain]:
        """The domains of all variables of the program; copies of inputs are like the inputs."""
        domains = dict(self.coder.domains)
        for copy, original in self.program.inputs:
            domains.setdefault(copy, domains[original])
        return domains

    def domains(self, variables: Iterable[str]) -> list[Domain]:
        """The domains of some variables."""
        return [self._domains[v] for v in variables]

    def call(self, name: str, *arguments: int) -> int:
        """Run a function of the program on the state."""
        function = self.functions.get(name)
        if function is None:
            function = self.functions[name] = self.code.function(name, len(arguments) + 1)
        return function(self.state.address, *arguments)

    def run(self, name: str, columns: Columns, *arguments: int) -> int:
        """Run a function of the program on columns."""
        addresses = np.array([column.ctypes.data for column in columns], np.int64)
        count = len(columns[0]) if columns else 0
        return self.call(name, addresses.ctypes.data, count, *arguments)

    def check_output(self, overflow: int) -> None:
        """Raise an error where a payload of the output has left its bits."""
        if overflow:
            self.state.words[0] = 0
            if overflow == TOO_WIDE:
                raise self.wider()
            raise Overflow("a payload of the output does not fit 64 bits")

    def connect_texts(self) -> None:
        """Tell machine code where the dictionary is, if it keeps texts in order."""
        if self.extremes is not None and self.extremes.of_texts:
            place = self.source.memory.areas[DICTIONARY]
            self.state.words[place] = self.coder.texts.address

    def check_order(self) -> None:
        """Refuse to read values that were deleted more often than inserted."""
        place = self.source.memory.areas.get(NEGATIVE)
        if place is not None and self.state.words[place]:
            raise Unfit(OVERTAKEN)

    def check_types(self) -> None:
        """Go over to another engine where the first values of a column have told its type."""
        if self._is_summed and sum_signature(self.query, self.coder) != self._signature:
            raise Retype(self.coder)

    def wider(self) -> Retype:
        """An engine whose sums have one word more."""
        coder = self.coder.empty()
        coder.wider += 1
        return Retype(coder, "a sum does not fit its words")

    def refit(self, atoms: Sequence[tuple[int, Columns]]) -> Retype:
        """An engine whose units are those of the floats in these columns, too."""
        coder = self.coder.empty()
        for atom, columns in atoms:
            floats = self.inlets.lifts().floats.get(atom, [])
            found = np.array([[5000, -5000]] * len(floats), np.int64)
            if floats:
                self.run(f"window_{atom}", columns, found.ctypes.data)
            for number, (low, high) in enumerate(found.tolist()):
                own = coder.windows.get((atom, number), WINDOW)
                seen = min(own[0], low - SPARE), max(own[1], high + SPARE)
                coder.windows[atom, number] = seen
        return Retype(coder, "a float needs other units")

    def encode(self, atom: int, changes: list[tuple[Row, Any]]) -> Columns:
        """Changes of one atom as columns of codes and of payload words."""
        domains = self.domains(self._part_keys[atom])
        keys = zip(*(row for row, _ in changes), strict=True)
        columns: Columns = [
            self.coder.encode(values, domain)
            for values, domain in zip(keys, domains)  # noqa: B905
        ]
        self.check_types()
        return columns + self.encode_payloads([payload for _, payload in changes])

    def encode_payloads(self, payloads: list[Any]) -> Columns:
        """Payloads as columns of words; those that follow from the rows, as multiplicities."""
        kinds = "i" if self.sums is not None else self.shape.kinds
        encoded = [self.shape.encode(payload) for payload in payloads]
        columns = zip(*encoded, strict=True) if encoded else [()] * len(kinds)
        return [
            np.array(column, np.float64 if kind == "f" else np.int64)
            for kind, column in zip(kinds, columns, strict=True)
        ]

    def items(self, store: Store, atoms: frozenset[int] | None = None) -> Iterator[tuple[Row, Any]]:
        """The entries of a map, decoded; that of some atoms only where it is not the output."""
        rows = self.state.entries(store)
        domains = self.domains(store.key)
        columns = [rows[:, i] for i in range(len(store.key))]
        keys = self.coder.rows(columns, domains) if columns else iter([()] * len(rows))
        return zip(keys, self.elements(rows, store, atoms), strict=True)

    def output_elements(self, numbers: Iterable[Any], codes: Columns) -> Iterator[Any]:
        """The payloads of output tuples, from their numbers and the codes of their extremes."""
        elements = map(self.shape.decode, numbers)
        if self.extremes is None:
            return elements
        pairs = zip(self.extremes.each, codes, strict=True)
        values = [
            self.coder.decode(own, self._domains[each.variable])
            if each.function != COUNT_DISTINCT
            else np.where(own == NULL, 0, own).tolist()
            for each, own in pairs
        ]
        return self.extremes.completed(elements, values)

    def elements(self, rows: Words, store: Store, atoms: frozenset[int] | None) -> list[Any]:
        """The payloads of a map in rows of its table."""
        numbers = self.state.numbers(rows, store)
        if self.sums is None or atoms is None or store.shape is COUNT:
            return list(map(store.shape.decode, numbers))
        return [self.sums.decode(each, atoms) for each in numbers]
