"""The invariants of heavy and light parts, checked by brute force
(triangle_ivm_epsilon, definitions 6 and 7)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from viewkeep.engine.interpreter.engine import ReferenceEngine
from viewkeep.engine.interpreter.partitions import Row
from viewkeep.errors import ViewkeepError
from viewkeep.plan.program import Part, Program, Split
from viewkeep.rings import Relation, Ring
from viewkeep.rings.index import key_function


class InvariantError(ViewkeepError):
    """A partition or a view that is not what it must be: a defect of the engine."""


class CheckedEngine(Protocol):
    """What is checked of an engine, whichever it is."""

    @property
    def maps(self) -> Mapping[str, Relation[Any]]: ...

    @property
    def partitions(self) -> "CheckedParts | None": ...

    def inputs(self) -> Iterator[tuple[int, Row, Any]]: ...


class CheckedParts(Protocol):
    """What is checked of its heavy and light parts."""

    @property
    def splits(self) -> tuple[Split, ...]: ...

    @property
    def parts(self) -> tuple[Part, ...]: ...

    @property
    def levels(self) -> list[dict[Row, int]]: ...

    @property
    def base(self) -> int: ...

    @property
    def size(self) -> int: ...


class Checker:
    """Checks one engine after each update; a second engine computes the views from scratch."""

    def __init__(self, program: Program, ring: Ring[Any]) -> None:
        self._fresh = ReferenceEngine(program, ring)

    def check(self, engine: CheckedEngine) -> None:
        """Size, domain partition, heavy and light conditions, views equal to their definitions."""
        partitions = engine.partitions
        if partitions is None:
            return
        _check_partition_size(engine, partitions)
        for number in range(len(partitions.splits)):
            _check_split_levels(engine, partitions, number)
        self._check_view_contents(engine, partitions)

    def _check_view_contents(self, engine: CheckedEngine, partitions: CheckedParts) -> None:
        """Every map equals what it is computed to from the same parts."""
        fresh = self._fresh.maps
        for relation in fresh.values():
            relation.clear()
        for part in partitions.parts:
            for row, payload in engine.maps[part.map].items():
                fresh[part.map].add(row, payload)
        self._fresh.fill()
        for name, relation in engine.maps.items():
            problem = f"{name} holds\n{relation}\ninstead of\n{fresh[name]}"
            _require_invariant(relation == fresh[name], problem)


def _check_partition_size(engine: CheckedEngine, partitions: CheckedParts) -> None:
    size, base = sum(1 for _ in engine.inputs()), partitions.base
    _require_invariant(size == partitions.size, f"{size} tuples, {partitions.size} counted")
    _require_invariant(base // 4 <= size < base, f"size {size} is not within [{base // 4}, {base})")


def _check_split_levels(engine: CheckedEngine, partitions: CheckedParts, number: int) -> None:
    """Every value at one level, and its largest degree within the slack of that level."""
    split, levels = partitions.splits[number], dict[Row, set[int]]()
    degrees: dict[int, Counter[Row]] = {atom: Counter() for atom in split.atoms}
    for part in partitions.parts:
        level = dict(part.levels).get(number)
        if level is not None:
            relation = engine.maps[part.map]
            value_of = key_function(tuple(map(relation.schema.index, split.variables)))
            for row in relation:
                levels.setdefault(value_of(row), set()).add(level)
                degrees[part.atom][value_of(row)] += 1
    thetas = [partitions.base**threshold for threshold in split.thresholds]
    for value, own_levels in levels.items():
        _require_invariant(
            len(own_levels) == 1, f"{value} is at levels {sorted(own_levels)} of {split}"
        )
        [level] = own_levels
        stored_level = partitions.levels[number].get(value, 0)
        _require_invariant(
            stored_level == level, f"{value} is at level {level}, not {stored_level} of {split}"
        )
        degree = max(counted[value] for counted in degrees.values())
        light = level == len(thetas) or degree < 1.5 * thetas[level]
        _require_invariant(light, f"{value} with degree {degree} is too heavy for level {level}")
        heavy = level == 0 or degree >= 0.5 * thetas[level - 1]
        _require_invariant(heavy, f"{value} with degree {degree} is too light for level {level}")
    stale_values = partitions.levels[number].keys() - levels.keys()
    _require_invariant(
        not stale_values, f"{sorted(stale_values, key=repr)} have a level, but no tuple"
    )


def _require_invariant(condition: bool, problem: str) -> None:
    if not condition:
        raise InvariantError(f"invariant violated: {problem}")
