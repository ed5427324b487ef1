"""Checks of a program: a wrong one must not run."""

from itertools import product

from viewkeep.errors import ViewkeepError
from viewkeep.plan.assemble import joins, step_lists
from viewkeep.plan.program import (
    NOTHING,
    UPDATE,
    Access,
    Block,
    Collect,
    Join,
    Map,
    Program,
    Step,
    Union,
    Update,
)

Maps = dict[str, Map]
"""The maps of a program by name."""


class ProgramError(ViewkeepError):
    """A trigger program that contradicts itself: a defect of a planner, not of a query."""


def validate(program: Program) -> None:
    """Every variable bound before use, every loop by an index, every map kept up to date."""
    _check_maps_declared(program)
    inputs = tuple(copy for copy, _ in program.inputs)
    lists = list(step_lists(program.triggers, program.loading, program.enumerator, inputs))
    maps = {each.name: each for each in program.maps}
    for steps, bound in lists:
        _check_variables_bound(maps, steps, bound)
        _check_loop_indexes(maps, steps, bound)
    _check_enumerator(program, inputs)
    _check_maps_maintained(program)
    _check_block_sources(program)
    _check_split_parts(program)


def _check_maps_declared(program: Program) -> None:
    names = [each.name for each in program.maps]
    _require_of_program(len(set(names)) == len(names), "two maps have the same name")
    atoms = [(trigger.atom, trigger.part) for trigger in program.triggers]
    _require_of_program(len(set(atoms)) == len(atoms), "two triggers are for the same atom")
    for each in program.maps:
        for columns in each.indexes:
            fits = set(columns) <= set(each.key)
            _require_of_program(fits, f"{each.name} has no columns ({', '.join(columns)}) to index")


def _check_variables_bound(maps: Maps, steps: tuple[Step, ...], bound: frozenset[str]) -> None:
    variables = set(bound)
    for step in steps:
        if isinstance(step, Join):
            _require_of_program(bool(step.accesses), "a join of no maps")
            variables |= set(step.opens)
            for access in step.accesses:
                _check_map_access(maps, step, access, variables)
        elif isinstance(step, Union):
            for branch in step.branches:
                inside = (*branch.over, *branch.steps)
                _check_variables_bound(maps, inside, frozenset(variables))
                binds = set(step.opens) <= variables | _variables_opened(inside)
                _require_of_program(binds, f"a branch does not bind all of {', '.join(step.opens)}")
            variables |= set(step.opens)
        else:
            _require_of_program(set(step.key) <= variables, f"{step} writes an unbound variable")
            if not isinstance(step, Collect):
                _check_map_key(maps, step.target, step.key, step)


def _check_map_access(maps: Maps, join: Join, access: Access, bound: set[str]) -> None:
    _check_map_key(maps, access.map, access.arguments, access)
    _require_of_program(set(access.arguments) <= bound, f"{access} reads an unbound variable")
    opened = set(join.opens) <= set(access.arguments)
    _require_of_program(opened, f"{access} does not bind all of {', '.join(join.opens)}")


def _check_map_key(maps: Maps, name: str, key: tuple[str, ...], place: object) -> None:
    """Maps are found by the variables of their keys, in the order of the key."""
    declared = maps.get(name)
    if declared is None:
        raise ProgramError(f"invalid program: {place}: there is no map {name}")
    _require_of_program(
        key == declared.key, f"{place} does not fit {name}({', '.join(declared.key)})"
    )


def _check_loop_indexes(maps: Maps, steps: tuple[Step, ...], bound: frozenset[str]) -> None:
    for join, variables in joins(steps, bound):
        for access in join.accesses if join.opens else ():
            declared = maps[access.map]
            columns = tuple(v for v in declared.key if v in variables)
            _require_of_program(
                not columns or columns in declared.indexes,
                f"{access}: no index on ({', '.join(columns)}) to loop by",
            )


def _check_enumerator(program: Program, inputs: tuple[str, ...]) -> None:
    """The output and its changes are read by joins that bind the head."""
    head = set(program.enumerator.head)
    readings = [(program.enumerator.steps, inputs)]
    readings += [
        (output, trigger.parameters) for trigger in program.triggers for output in trigger.outputs
    ]
    for steps, start in readings:
        bound = set(start)
        for step in steps:
            _require_of_program(isinstance(step, Join | Union), f"{step} where output is only read")
        bound |= _variables_opened(steps)
        _require_of_program(head <= bound, "the head is not bound by enumeration")


def _variables_opened(steps: tuple[Step, ...]) -> set[str]:
    return {v for step in steps if isinstance(step, Join | Union) for v in step.opens}


def _check_maps_maintained(program: Program) -> None:
    """Every map is updated by the trigger of every atom it depends on that has a trigger."""
    for trigger in program.triggers:
        steps = [step for block in trigger.blocks for step in block.steps]
        updated = {step.target for step in steps if isinstance(step, Update)}
        for each in program.maps:
            _require_of_program(
                each.depends_on(trigger) == (each.name in updated),
                f"{each.name} and the update of {trigger.label} disagree",
            )


def _check_block_sources(program: Program) -> None:
    for trigger in program.triggers:
        keys = {UPDATE: trigger.parameters}
        for block in trigger.blocks:
            _check_block_source(block, keys)
            keys |= {step.local: step.key for step in block.steps if isinstance(step, Collect)}
    maps = {each.name: each.key for each in program.maps} | {NOTHING: ()}
    for block in program.loading:
        _check_block_source(block, maps)


def _check_block_source(block: Block, keys: dict[str, tuple[str, ...]]) -> None:
    _require_of_program(block.source in keys, f"a block starts from unknown {block.source}")
    key = keys[block.source]
    _require_of_program(
        block.variables == key, f"a block over {block.source} wants ({', '.join(key)})"
    )


def _check_split_parts(program: Program) -> None:
    """The parts of an atom are all combinations of the levels of its splits."""
    for number, split in enumerate(program.splits):
        rising = all(0 <= t <= 1 for t in split.thresholds)
        rising &= list(split.thresholds) == sorted(split.thresholds)
        _require_of_program(
            rising and bool(split.thresholds), f"split {number} has no rising thresholds"
        )
    for atom in {part.atom for part in program.parts}:
        part_levels = {part.levels for part in program.parts if part.atom == atom}
        splits = [n for n, split in enumerate(program.splits) if atom in split.atoms]
        sizes = [range(len(program.splits[n].thresholds) + 1) for n in splits]
        combinations = {tuple(zip(splits, levels, strict=True)) for levels in product(*sizes)}
        _require_of_program(
            part_levels == combinations, f"the parts of atom {atom} do not match its splits"
        )
    for part in program.parts:
        for number, _ in part.levels:
            declared, variables = program.map(part.map), program.splits[number].variables
            columns = tuple(v for v in declared.key if v in variables)
            indexed = len(columns) == len(variables) and columns in declared.indexes
            _require_of_program(
                indexed, f"{part.map} has no index on ({', '.join(columns)}) for its degrees"
            )


def _require_of_program(condition: bool, problem: str) -> None:
    if not condition:
        raise ProgramError(f"invalid program: {problem}")
