"""Heavy and light parts of a compiled engine, read from its memory."""

from collections.abc import Callable, Iterable
from typing import Any

from viewkeep.engine.compiled.emit.parts import level_name
from viewkeep.engine.compiled.layout import BASE, MAJOR, MINOR, SIZE
from viewkeep.engine.compiled.memory import MemoryState
from viewkeep.engine.compiled.values import Coder, Domain
from viewkeep.engine.interpreter.partitions import Layout, Partition, Row
from viewkeep.plan.program import Program


class CompiledPartitions:
    """The levels and thresholds of a compiled engine, as `Rebalancer` has those of the reference
    engine."""

    def __init__(
        self,
        program: Program,
        state: MemoryState,
        coder: Coder,
        domains: Callable[[Iterable[str]], list[Domain]],
    ) -> None:
        self.splits, self.parts = program.splits, program.parts
        self._program, self._state, self._coder, self._domains = program, state, coder, domains

    @property
    def base(self) -> int:
        """The threshold base N."""
        return int(self._state.words[BASE])

    @property
    def size(self) -> int:
        """How many tuples there are."""
        return int(self._state.words[SIZE])

    @property
    def minor(self) -> int:
        """How often the tuples of a value were moved."""
        return int(self._state.words[MINOR])

    @property
    def major(self) -> int:
        """How often everything was partitioned anew."""
        return int(self._state.words[MAJOR])

    @property
    def levels(self) -> list[dict[Row, int]]:
        """The values above the lowest level of each split."""
        return [self._levels_of_split(number) for number in range(len(self.splits))]

    def _levels_of_split(self, number: int) -> dict[Row, int]:
        store = self._state.memory.stores[level_name(number)]
        rows = self._state.rows(store.table)
        domains = self._domains(self.splits[number].variables)
        keys = self._coder.rows([rows[:, i] for i in range(len(domains))], domains)
        return dict(zip(keys, rows[:, store.word].tolist(), strict=True))

    def set_levels(self, layout: Layout, call: Callable[..., int]) -> None:
        """Take over the levels of another state."""
        for number, levels in enumerate(layout.levels):
            domains = self._domains(self.splits[number].variables)
            for value, level in levels.items():
                codes = [self._coder.code(v, d) for v, d in zip(value, domains, strict=True)]
                call(f"set_level_{number}", *codes, level)

    def layout(self) -> Layout:
        """What is heavy now, for a load that must give just this state."""
        return Layout(self.base, tuple(self.levels))

    def state(self) -> tuple[Partition, ...]:
        """What is heavy now, split by split."""
        partitions = []
        for number, split in enumerate(self.splits):
            levels = self._levels_of_split(number)
            thetas = tuple(self.base**threshold for threshold in split.thresholds)
            partitions.append(
                Partition(split, thetas, levels, self._degrees_of_split(number, levels))
            )
        return tuple(partitions)

    def _degrees_of_split(self, number: int, levels: dict[Row, int]) -> dict[Row, int]:
        """The largest degree of each value in the atoms of a split."""
        split, most = self.splits[number], dict.fromkeys(levels, 0)
        for atom in split.atoms:
            counted: dict[Row, int] = dict.fromkeys(levels, 0)
            for part in self.parts:
                if part.atom == atom:
                    for value in self._values_of_map(part.map, split.variables):
                        if value in counted:
                            counted[value] += 1
            most = {value: max(degree, counted[value]) for value, degree in most.items()}
        return most

    def _values_of_map(self, name: str, variables: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
        store = self._state.memory.stores[name]
        rows = self._state.entries(store)
        columns = [rows[:, store.key.index(v)] for v in variables]
        return self._coder.rows(columns, self._domains(variables))
