"""What an update to one relation changes, delta by delta, as figure 3 of triangle_ivm_epsilon.

The lines are read off the blocks of the triggers, so they say what runs. What the triggers of
several parts of a relation do alike is one line, with `*` for the part.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from viewkeep.analysis.exponents import Exponent
from viewkeep.plan.program import (
    UPDATE,
    Access,
    Block,
    Collect,
    Join,
    Program,
    Step,
    Trigger,
    Union,
    Update,
)
from viewkeep.plan.show import atom_names

ANY_PART = "*"
_PART = "\0"
"""Stands for the letters of the updated part until it is known which parts do the same."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A change of one map: `target` and the sum or product that is added to it.

    `parts` are those of the relation whose updates cause it, and `then` the maps that follow
    where an entry appears or vanishes.
    """

    atom: int
    relation: str
    parts: tuple[str, ...]
    target: str
    value: str
    then: tuple[str, ...] = ()
    cost: Exponent | None = None

    def __str__(self) -> str:
        after = f", then {', '.join(self.then)}" if self.then else ""
        return f"{self.target} {self.value}{after}"


def deltas_of(program: Program, query_name: str) -> tuple[Delta, ...]:
    """The deltas of all relations, in the order of the triggers."""
    writer = _DeltaWriter(program, query_name)
    deltas = [delta for trigger in program.triggers for delta in writer.deltas(trigger)]
    return tuple(_merged_deltas(program, deltas))


def _merged_deltas(program: Program, deltas: Iterable[Delta]) -> Iterator[Delta]:
    """Lines that are the same but for the part, as one; the part's own map comes last."""
    deltas_by_line: dict[tuple[object, ...], list[Delta]] = {}
    for each in deltas:
        key = (each.atom, each.target, each.value, each.then, each.cost)
        deltas_by_line.setdefault(key, []).append(each)
    order = sorted(
        deltas_by_line.values(), key=lambda lines: (lines[0].atom, _delta_rank(lines[0]))
    )
    for first, *others in order:
        parts = tuple(part for each in (first, *others) for part in each.parts)
        letters = _letters_of_parts(program, first.atom, parts)
        yield Delta(
            first.atom,
            first.relation,
            parts,
            first.target.replace(_PART, letters),
            first.value.replace(_PART, letters),
            first.then,
            first.cost,
        )


def _delta_rank(delta: Delta) -> int:
    """The result before views before the relation itself."""
    if delta.value.startswith("= "):
        return 0
    return 2 if _PART in delta.target else 1


def _letters_of_parts(program: Program, atom: int, parts: tuple[str, ...]) -> str:
    """The letters of one part, `*` for all parts, or those of several."""
    letters = {part.map: part.letters for part in program.parts if part.atom == atom}
    every = [part.map for part in program.parts if part.atom == atom and part.levels]
    if len(every) > 1 and set(parts) >= set(every):
        return ANY_PART
    return "|".join(letters.get(part) or part for part in parts)


class _DeltaWriter:
    """Turns the blocks of triggers into formulas."""

    def __init__(self, program: Program, query_name: str) -> None:
        self._program, self._query_name = program, query_name
        self._by_map = {part.map: part for part in program.parts}
        self._maps = {each.name: each for each in program.maps}
        self._names = atom_names(program)
        self._atoms = sorted({part.atom for part in program.parts if part.levels})

    def deltas(self, trigger: Trigger) -> Iterator[Delta]:
        """The lines of one trigger; nothing is merged yet."""
        for block in trigger.blocks:
            yield from self._deltas_of_block(trigger, block)

    def _deltas_of_block(self, trigger: Trigger, block: Block) -> Iterator[Delta]:
        """A line for each map that gets the payload; maps after a live one follow from it."""
        start = f"d{self._map_name(trigger, trigger.label)}({', '.join(trigger.parameters)})"
        if block.source != UPDATE:
            start = f"{block.source}({', '.join(block.variables)})"
        joins: list[Join] = []
        for number, step in enumerate(block.steps):
            if isinstance(step, Join):
                joins.append(step)
            elif not isinstance(step, Union):
                rest = block.steps[number + 1 :] if _is_live_update(step) else ()
                loops = any(join.opens for join in joins)
                yield Delta(
                    trigger.atom,
                    self._names[trigger.atom],
                    (trigger.label,),
                    self._delta_target(trigger, step, joins),
                    self._delta_value(trigger, start, joins, step),
                    tuple(each.target for each in rest if isinstance(each, Update)),
                    block.cost if loops else Fraction(0),
                )
                if _is_live_update(step):
                    return

    def _updates_result(self, step: Update | Collect) -> bool:
        return isinstance(step, Update) and step.target == self._program.listed

    def _delta_target(self, trigger: Trigger, step: Update | Collect, joins: list[Join]) -> str:
        if self._updates_result(step):
            letters = self._parts_text(trigger, joins)
            return f"d{self._query_name}{'_' if letters else ''}{letters}"
        name = step.target if isinstance(step, Update) else step.local
        return f"{self._map_name(trigger, name)}({', '.join(step.key)})"

    def _delta_value(
        self, trigger: Trigger, start: str, joins: list[Join], step: Update | Collect
    ) -> str:
        sign = "=" if self._updates_result(step) else "+="
        summed = [v for join in joins for v in join.opens if v not in step.key]
        factors = [self._factor_text(trigger, each) for join in joins for each in join.accesses]
        total = f"sum_{','.join(summed)} " if summed else ""
        product = f" * {total}{' * '.join(factors)}" if factors else ""
        return f"{sign} {start}{product}"

    def _factor_text(self, trigger: Trigger, access: Access) -> str:
        access_text = f"{self._map_name(trigger, access.map)}({', '.join(access.arguments)})"
        return access_text if access.weigh else f"live {access_text}"

    def _map_name(self, trigger: Trigger, name: str) -> str:
        """A map as it is called, but with the part that is updated left open."""
        if trigger.part and name == trigger.part:
            return f"{self._names[trigger.atom]}_{_PART}"
        return name

    def _parts_text(self, trigger: Trigger, joins: list[Join]) -> str:
        """Which parts are joined, atom by atom: `*hl` is any part of the first, and so on."""
        read = {self._by_map[name].atom: name for name in self._parts_read(joins)}
        letters = [
            _PART if atom == trigger.atom else self._by_map[read[atom]].letters
            for atom in self._atoms
            if atom == trigger.atom or atom in read
        ]
        separator = "," if any(len(each) > 1 for each in letters) else ""
        return separator.join(letters)

    def _parts_read(self, joins: list[Join]) -> Iterator[str]:
        """The parts that are read, also through views."""
        for access in (access for join in joins for access in join.accesses):
            names = self._maps[access.map].parts or {access.map}
            yield from (n for n in names if n in self._by_map and self._by_map[n].levels)


def _is_live_update(step: Step) -> bool:
    return isinstance(step, Update) and step.live
