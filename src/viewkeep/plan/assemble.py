"""Putting a program together: the indexes its joins need, found by following the bindings."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from viewkeep.plan.program import (
    INPUT,
    NOTHING,
    UPDATE,
    Block,
    Enumerator,
    Join,
    Map,
    Part,
    Program,
    Split,
    Step,
    Trigger,
    Union,
)


def assemble(
    strategy: str,
    maps: Iterable[Map],
    triggers: Iterable[Trigger],
    loading: Iterable[Block],
    enumerator: Enumerator,
    inputs: tuple[tuple[str, str], ...] = (),
    listed: str | None = None,
    notes: tuple[str, ...] = (),
    splits: tuple[Split, ...] = (),
    parts: tuple[Part, ...] = (),
) -> Program:
    """The program with every index that some join wants, or the degrees of a split."""
    triggers, loading, maps = tuple(triggers), tuple(loading), tuple(maps)
    split_atoms = {part.atom for part in parts}
    inputs_by_atom = ((next(iter(each.atoms)), each) for each in maps if each.definition == INPUT)
    parts += tuple(
        Part(atom, each.name) for atom, each in inputs_by_atom if atom not in split_atoms
    )
    keys = {each.name: each.key for each in maps}
    indexes: dict[str, dict[tuple[str, ...], None]] = {name: {} for name in keys}
    copies = tuple(copy for copy, _ in inputs)
    for steps, bound in step_lists(triggers, loading, enumerator, copies):
        for join, bound_before in joins(steps, bound):
            for access in join.accesses if join.opens else ():
                columns = tuple(v for v in keys[access.map] if v in bound_before)
                if columns:
                    indexes[access.map][columns] = None
    for part in parts:
        for number, _ in part.levels:
            indexes[part.map][_in_key_order(keys[part.map], splits[number].variables)] = None
    indexed = tuple(replace(each, indexes=tuple(indexes[each.name])) for each in maps)
    return Program(
        strategy, indexed, triggers, loading, enumerator, inputs, listed, notes, splits, parts
    )


def _in_key_order(key: tuple[str, ...], variables: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(v for v in key if v in variables)


def step_lists(
    triggers: tuple[Trigger, ...],
    loading: tuple[Block, ...],
    enumerator: Enumerator,
    inputs: tuple[str, ...],
) -> Iterator[tuple[tuple[Step, ...], frozenset[str]]]:
    """All lists of steps, each with the variables bound at its start."""
    for trigger in triggers:
        for block in trigger.blocks:
            start = trigger.parameters if block.source == UPDATE else block.variables
            yield block.steps, frozenset(start)
        for output in trigger.outputs:
            yield output, frozenset(trigger.parameters)
    for block in loading:
        yield block.steps, frozenset(() if block.source == NOTHING else block.variables)
    yield enumerator.steps, frozenset(inputs)
    # Look-ups of single output tuples bind the whole head before the same steps run.
    yield enumerator.steps, frozenset(inputs) | frozenset(enumerator.head)


def joins(steps: tuple[Step, ...], bound: frozenset[str]) -> Iterator[tuple[Join, frozenset[str]]]:
    """The joins with the variables bound before each; what is bound already is not opened."""
    variables = set(bound)
    for step in steps:
        if isinstance(step, Join):
            opens = tuple(v for v in step.opens if v not in variables)
            yield replace(step, opens=opens), frozenset(variables)
            variables |= set(step.opens)
        elif isinstance(step, Union):
            for branch in step.branches:
                inside = (*branch.over, *branch.steps)
                yield from joins(inside, frozenset(variables))
                # The sets are asked for single values too; `over` is bound without them.
                over = variables.union(*(join.opens for join in branch.over))
                yield from joins(branch.steps, frozenset(over | set(step.opens)))
            variables |= set(step.opens)
