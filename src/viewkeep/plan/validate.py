"""Checks of a program: a wrong one must not run."""

from viewkeep.errors import ViewkeepError
from viewkeep.plan.assemble import joins, step_lists
from viewkeep.plan.program import NOTHING, UPDATE, Collect, Join, Program, Step, Update


class ProgramError(ViewkeepError):
    """A trigger program that contradicts itself: a defect of a planner, not of a query."""


def validate(program: Program) -> None:
    """Every variable bound before use, every loop by an index, every map kept up to date."""
    names = [each.name for each in program.maps]
    _require(len(set(names)) == len(names), "two maps have the same name")
    given = tuple(copy for copy, _ in program.inputs)
    lists = list(step_lists(program.triggers, program.loading, program.enumerator, given))
    for steps, bound in lists:
        _check_bindings(program, steps, bound)
        _check_indexes(program, steps, bound)
    head_bound = lists[-2][1] | {
        v for s in program.enumerator.steps if isinstance(s, Join) for v in s.opens
    }
    _require(set(program.enumerator.head) <= head_bound, "the head is not bound by enumeration")
    _check_maintained(program)
    _check_sources(program)


def _check_bindings(program: Program, steps: tuple[Step, ...], bound: frozenset[str]) -> None:
    known = set(bound)
    for step in steps:
        if isinstance(step, Join):
            known |= set(step.opens)
            for access in step.accesses:
                arity = len(program.map(access.map).key)
                _require(len(access.arguments) == arity, f"{access} does not fit its map")
                _require(set(access.arguments) <= known, f"{access} reads an unbound variable")
        else:
            _require(set(step.key) <= known, f"{step} writes an unbound variable")
            if isinstance(step, Update):
                arity = len(program.map(step.target).key)
                _require(len(step.key) == arity, f"{step} does not fit its map")


def _check_indexes(program: Program, steps: tuple[Step, ...], bound: frozenset[str]) -> None:
    for join, known in joins(steps, bound):
        for access in join.accesses if join.opens else ():
            declared = program.map(access.map)
            columns = tuple(v for v in declared.key if v in known)
            _require(
                not columns or columns in declared.indexes,
                f"{access}: no index on ({', '.join(columns)}) to loop by",
            )


def _check_maintained(program: Program) -> None:
    """Every map is updated by the trigger of every atom it depends on that has a trigger."""
    for trigger in program.triggers:
        steps = [step for block in trigger.blocks for step in block.steps]
        updated = {step.target for step in steps if isinstance(step, Update)}
        for each in program.maps:
            depends = trigger.atom in each.atoms
            _require(
                depends == (each.name in updated),
                f"{each.name} and the update of {trigger.relation} disagree",
            )


def _check_sources(program: Program) -> None:
    for trigger in program.triggers:
        known = {UPDATE}
        for block in trigger.blocks:
            _require(block.source in known, f"block starts from unknown {block.source}")
            known |= {step.local for step in block.steps if isinstance(step, Collect)}
    maps = {each.name for each in program.maps} | {NOTHING}
    for block in program.loading:
        _require(block.source in maps, f"loading starts from unknown {block.source}")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ProgramError(f"invalid program: {problem}")
