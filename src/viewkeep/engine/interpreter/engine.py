"""The reference engine: pure Python, any ring, any hashable values, every step counted.

It is the definition of correct, and the instrument that measures the bounds. Steps become nested
functions once per program, so that an update runs without looking at the program again. A step is
a map look-up, an insert, a removal or an iteration.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from viewkeep.engine.interpreter.joins import PAYLOAD, ROW, Bindings, Row
from viewkeep.engine.interpreter.partitions import Layout, PartitionRebalancer
from viewkeep.engine.interpreter.reading import ReadCompiler
from viewkeep.engine.interpreter.steps import StepCompiler, accumulate
from viewkeep.plan.program import (
    NOTHING,
    UPDATE,
    Block,
    Collect,
    Program,
    Step,
    Trigger,
    Update,
)
from viewkeep.rings import INTEGERS, Relation, Ring


class ReferenceEngine:
    """The maps of one program, and its triggers as functions."""

    def __init__(self, program: Program, ring: Ring[Any]) -> None:
        self.program, self.counter = program, [0]
        self.ring = ring = ring.counted(self.counter)
        self.maps: dict[str, Relation[Any]] = {}
        for each in program.maps:
            self.maps[each.name] = Relation(each.key, INTEGERS if each.live else ring)
            for columns in each.indexes:
                self.maps[each.name].index_on(columns)
        self._numbers = _number_variables(program)
        self._compiler = StepCompiler(self.maps, ring, self.counter, self._numbers)
        self._parts = {each.name: each.parts for each in program.maps}
        self.partitions: PartitionRebalancer | None = None
        if program.splits:
            self.partitions = self._compile_partitions(program)
            atoms = dict.fromkeys(trigger.atom for trigger in program.triggers)
            self.triggers = {atom: self.partitions.on_update(atom) for atom in atoms}
        else:
            self.triggers = {
                t.atom: self._compiler.trigger(t.blocks, t.parameters) for t in program.triggers
            }
        self._changes: dict[int, Callable[[Row, Any], None]] = {}
        enumerator, inputs = program.enumerator, frozenset(copy for copy, _ in program.inputs)
        reader = ReadCompiler(self.maps, ring, self.counter, self._numbers)
        self._enumerate = reader.reading(enumerator.steps, inputs)
        self._lookup = reader.reading(enumerator.steps, inputs | set(enumerator.head))

    @property
    def steps(self) -> int:
        """Elementary steps so far."""
        return self.counter[0]

    # --- updates --------------------------------------------------------------------------------

    def apply(self, atom: int, row: Row, payload: Any) -> None:
        """Run the trigger of an atom for one tuple."""
        self.triggers[atom](row, payload)

    def output_change(self, atom: int, row: Row, payload: Any) -> dict[Row, Any]:
        """The change of the output that this tuple of an atom makes."""
        change: dict[Row, Any] = {}
        self._compiler.locals[_OUTPUT] = change
        if atom not in self._changes:
            # All parts of an atom change the output alike, wherever the tuple is.
            trigger = next(t for t in self.program.triggers if t.atom == atom)
            self._changes[atom] = self._compile_change(trigger.parameters, trigger.outputs)
        self._changes[atom](row, payload)
        return change

    def load(self, contents: Iterable[tuple[int, Row, Any]], layout: Layout | None = None) -> None:
        """Fill the inputs, then every other map in one pass over what it is made from."""
        if self.partitions is not None:
            self.partitions.load([c for c in contents if not self.ring.is_zero(c[2])], layout)
        else:
            inputs = {part.atom: self.maps[part.map] for part in self.program.parts}
            for atom, row, payload in contents:
                self.counter[0] += 1
                inputs[atom].add(row, payload)
        self.fill()

    def fill(self) -> None:
        """Compute every map that is no input from those that are."""
        for block in self.program.loading:
            self._run_load_block(block)

    def layout(self) -> Layout | None:
        """What is heavy now, if relations are split."""
        return None if self.partitions is None else self.partitions.layout()

    def inputs(self) -> Iterator[tuple[int, Row, Any]]:
        """The tuples of all atoms with their payloads."""
        for part in self.program.parts:
            for row, payload in self.maps[part.map].items():
                yield part.atom, row, payload

    def input_payload(self, atom: int, row: Row) -> Any:
        """The payload of one tuple of an atom; None if it is absent."""
        for part in self.program.parts:
            if part.atom == atom and (entry := self.maps[part.map].find_entry(row)) is not None:
                return entry[PAYLOAD]
        return None

    def sizes(self) -> dict[str, int]:
        """How many entries each map has."""
        return {name: len(relation) for name, relation in self.maps.items()}

    def _run_load_block(self, block: Block) -> None:
        run = self._compiler.on_row(block.steps, block.variables)
        if block.source == NOTHING:
            run((), self.ring.one)
            return
        for entry in self.maps[block.source].entries:
            self.counter[0] += 1
            run(entry[ROW], entry[PAYLOAD] if block.weigh else 1)

    # --- reading --------------------------------------------------------------------------------

    def enumerate(self, inputs: dict[str, Any]) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples with their payloads; the inputs are given."""
        bindings = self._bindings_of_inputs(inputs)
        head = [self._numbers[v] for v in self.program.enumerator.head]
        payloads = self._enumerate(bindings, self.ring.one)
        rows = ((tuple([bindings[i] for i in head]), payload) for payload in payloads)
        if self.program.enumerator.distinct:
            is_zero = self.ring.is_zero
            return ((row, payload) for row, payload in rows if not is_zero(payload))
        return iter(self._summed_rows(rows).items())

    def lookup(self, row: Row, inputs: dict[str, Any]) -> Any:
        """The payload of one output tuple."""
        bindings = self._bindings_of_inputs(inputs)
        for variable, value in zip(self.program.enumerator.head, row, strict=True):
            bindings[self._numbers[variable]] = value
        total = self.ring.zero
        for payload in self._lookup(bindings, self.ring.one):
            total = self.ring.add(total, payload)
        return total

    def _bindings_of_inputs(self, inputs: dict[str, Any]) -> Bindings:
        bindings: Bindings = [None] * len(self._numbers)
        for copy, original in self.program.inputs:
            bindings[self._numbers[copy]] = inputs[original]
        return bindings

    def _summed_rows(self, rows: Iterable[tuple[Row, Any]]) -> dict[Row, Any]:
        total: dict[Row, Any] = {}
        for row, payload in rows:
            accumulate(self.ring, total, row, payload)
        return total

    def _compile_change(
        self, parameters: tuple[str, ...], outputs: tuple[tuple[Step, ...], ...]
    ) -> Callable[[Row, Any], None]:
        collect = Collect(_OUTPUT, self.program.enumerator.head)
        blocks = tuple(Block(UPDATE, parameters, (*steps, collect)) for steps in outputs)
        return self._compiler.trigger(blocks, parameters)

    # --- heavy and light parts ------------------------------------------------------------------

    def _compile_partitions(self, program: Program) -> PartitionRebalancer:
        """Triggers for each part; those that move tuples leave out what no move changes."""
        compile_trigger = self._compiler.trigger
        own = {
            (t.atom, part.map): t
            for t in program.triggers
            for part in program.parts
            if part.atom == t.atom and t.part in ("", part.map)
        }
        return PartitionRebalancer(
            program,
            self.maps,
            self.counter,
            {k: compile_trigger(t.blocks, t.parameters) for k, t in own.items()},
            {k: compile_trigger(self._blocks_of_moves(t), t.parameters) for k, t in own.items()},
            self.ring.negate,
            self._reload_views,
        )

    def _blocks_of_moves(self, trigger: Trigger) -> tuple[Block, ...]:
        moving, sources = list[Block](), set[str]()
        for block in reversed(trigger.blocks):
            locals_ = {step.local for step in block.steps if isinstance(step, Collect)}
            if self._writes_skewed_map(block) or locals_ & sources:
                moving.insert(0, block)
                sources.add(block.source)
        return tuple(moving)

    def _reload_views(self) -> None:
        for block in self.program.loading:
            if self._writes_skewed_map(block):
                self._run_load_block(block)

    def _writes_skewed_map(self, block: Block) -> bool:
        return any(isinstance(step, Update) and self._parts[step.target] for step in block.steps)


_OUTPUT = "output"
"""The local delta that takes the change of the output."""


def _number_variables(program: Program) -> dict[str, int]:
    names = [v for each in program.maps for v in each.key] + [copy for copy, _ in program.inputs]
    return {variable: number for number, variable in enumerate(dict.fromkeys(names))}
