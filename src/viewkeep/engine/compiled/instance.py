"""A program's machine code over one state: calls, and changes and rows as columns of codes."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from viewkeep.engine.compiled.emit.program import emit_program
from viewkeep.engine.compiled.fast_path import FastPaths
from viewkeep.engine.compiled.layout import Store, unread_inputs
from viewkeep.engine.compiled.llvm import machine
from viewkeep.engine.compiled.memory import MemoryState
from viewkeep.engine.compiled.rings import Overflow, Unfit, shape_of
from viewkeep.engine.compiled.table_intake import Columns
from viewkeep.engine.compiled.values import Coder, Domain
from viewkeep.plan.payload import Payload
from viewkeep.plan.program import Program
from viewkeep.query.conjunctive import ConjunctiveQuery

Row = tuple[Any, ...]


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
        ring, shape = payload.ring, shape_of(payload.ring)
        if isinstance(shape, str):
            raise Unfit(shape)
        self.program, self.ring, self.shape = program, ring, shape
        self.coder = Coder(query) if coder is None else coder
        self.inlets = FastPaths(program, payload, query, self.coder, shape)
        self.dropped = frozenset[str]() if keep_inputs else unread_inputs(program)
        self.source = emit_program(program, shape, self.inlets.lifts(), self.dropped)
        self.code = machine.load(self.source.main, self.inlets.module())
        self.state = MemoryState(self.source.memory, self.code.function("start", 1))
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

    def run(self, name: str, columns: Columns) -> int:
        """Run a function of the program on columns."""
        addresses = np.array([column.ctypes.data for column in columns], np.int64)
        return self.call(name, addresses.ctypes.data, len(columns[0]) if columns else 0)

    def check_output(self, overflow: int) -> None:
        """Raise an error where a payload of the output has left 64 bits."""
        if overflow:
            self.state.words[0] = 0
            raise Overflow("a payload of the output does not fit 64 bits")

    def encode(self, atom: int, changes: list[tuple[Row, Any]]) -> Columns:
        """Changes of one atom as columns of codes and of payload words."""
        domains = self.domains(self._part_keys[atom])
        keys = zip(*(row for row, _ in changes), strict=True)
        columns: Columns = [
            self.coder.encode(values, domain)
            for values, domain in zip(keys, domains)  # noqa: B905
        ]
        return columns + self.encode_payloads([payload for _, payload in changes])

    def encode_payloads(self, payloads: list[Any]) -> Columns:
        """Payloads as columns of words."""
        encoded = [self.shape.encode(payload) for payload in payloads]
        columns = zip(*encoded, strict=True) if encoded else [()] * self.shape.width
        return [
            np.array(column, np.float64 if kind == "f" else np.int64)
            for kind, column in zip(self.shape.kinds, columns, strict=True)
        ]

    def items(self, store: Store) -> Iterator[tuple[Row, Any]]:
        """The entries of a map, decoded."""
        rows = self.state.entries(store)
        domains = self.domains(store.key)
        columns = [rows[:, i] for i in range(len(store.key))]
        keys = self.coder.rows(columns, domains) if columns else iter([()] * len(rows))
        return zip(keys, self.state.payloads(rows, store), strict=True)
