"""Costs of a program with split relations, read off its steps: how many times loops can run and how
large maps can be, by the degrees that the levels of parts promise."""

from collections.abc import Iterable
from dataclasses import replace

from viewkeep.plan.adaptive.degrees import FREE, Cost, Degree, Factor, cheapest, number_of
from viewkeep.plan.adaptive.splits import factor_of
from viewkeep.plan.program import UPDATE, Access, Block, Collect, Join, Map, Program, Step, Trigger


def with_costs(program: Program) -> Program:
    """The program with the cost of every block of a trigger and the size of every view."""
    return _Costs(program).annotated()


def shortest_first(program: Program) -> Program:
    """The program with the lists that a loop intersects in the order of their bounds: for engines
    that do not compare the lists of every single update."""
    return _Costs(program).ordered()


class _Costs:
    def __init__(self, program: Program) -> None:
        self._program = program
        shared = len({split.thresholds for split in program.splits}) == 1
        self._parts: dict[int, dict[str, Factor]] = {}
        for part in program.parts:
            key = program.map(part.map).key
            factor = factor_of(part, key, program.splits, shared)
            self._parts.setdefault(part.atom, {})[part.map] = factor
        self._degrees = {each.name: self._map_degrees(each) for each in program.maps}

    def annotated(self) -> Program:
        inputs = {part.map for part in self._program.parts}
        return replace(
            self._program,
            maps=tuple(
                each if each.name in inputs else replace(each, size=self._map_size(each).exponent)
                for each in self._program.maps
            ),
            triggers=tuple(map(self._trigger_with_costs, self._program.triggers)),
        )

    def ordered(self) -> Program:
        triggers = tuple(
            replace(
                trigger,
                blocks=tuple(map(self._block_shortest_first, trigger.blocks)),
                outputs=tuple(
                    self._steps_shortest_first(steps, frozenset(trigger.parameters))
                    for steps in trigger.outputs
                ),
            )
            for trigger in self._program.triggers
        )
        loading = tuple(map(self._block_shortest_first, self._program.loading))
        return replace(self._program, triggers=triggers, loading=loading)

    def _block_shortest_first(self, block: Block) -> Block:
        return replace(
            block, steps=self._steps_shortest_first(block.steps, frozenset(block.variables))
        )

    def _steps_shortest_first(
        self, steps: Iterable[Step], bound: frozenset[str]
    ) -> tuple[Step, ...]:
        ordered = list[Step]()
        for step in steps:
            if isinstance(step, Join) and step.opens:
                opens = frozenset(step.opens)
                lengths = {a: self._list_length(a, opens, bound).value for a in step.accesses}
                accesses = sorted(step.accesses, key=lambda access: lengths[access])
                step, bound = replace(step, accesses=tuple(accesses)), bound | opens
            ordered.append(step)
        return tuple(ordered)

    def _list_length(self, access: Access, opens: frozenset[str], bound: frozenset[str]) -> Cost:
        return number_of(self._degrees[access.map], opens, bound & frozenset(access.arguments))

    def _map_degrees(self, each: Map) -> frozenset[Degree]:
        """What holds for all parts of an atom that the map is made of, atom by atom."""
        degrees: set[Degree] = set()
        for atom in each.atoms:
            parts = self._parts[atom]
            factors = [f for name, f in parts.items() if not each.parts or name in each.parts]
            degrees |= _common_degrees(factors or parts.values())
        return frozenset(degrees)

    def _map_size(self, each: Map) -> Cost:
        return number_of(self._degrees[each.name], frozenset(each.key), frozenset())

    def _trigger_with_costs(self, trigger: Trigger) -> Trigger:
        blocks, entries = list[Block](), dict[str, Cost]()
        for block in trigger.blocks:
            start = FREE if block.source == UPDATE else entries[block.source]
            cost = start + self._loop_cost(block.steps, frozenset(block.variables))
            for step in block.steps:
                if isinstance(step, Collect):
                    entries[step.local] = cost
            blocks.append(replace(block, cost=cost.exponent))
        return replace(trigger, blocks=tuple(blocks))

    def _loop_cost(self, steps: Iterable[Step], bound: frozenset[str]) -> Cost:
        """The product of the loops, each as short as the shortest of the lists it intersects."""
        total = FREE
        for step in steps:
            if isinstance(step, Join) and step.opens:
                opens = frozenset(step.opens)
                lists = [self._list_length(access, opens, bound) for access in step.accesses]
                total, bound = total + cheapest(lists), bound | opens
        return total


def _common_degrees(factors: Iterable[Factor]) -> set[Degree]:
    """The degrees that all of some parts have, each with the largest bound."""
    first, *others = factors
    degrees = set(first.degrees)
    for other in others:
        others_by_variables = {(d.determinant, d.binds): d for d in other.degrees}
        pairs = [
            (d, others_by_variables[d.determinant, d.binds])
            for d in degrees
            if (d.determinant, d.binds) in others_by_variables
        ]
        degrees = {max(pair, key=lambda d: d.power.value) for pair in pairs}
    return degrees
