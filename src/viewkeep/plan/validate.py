"""Checks of a program: a wrong one must not run."""

from viewkeep.errors import ViewkeepError
from viewkeep.plan.assemble import joins, step_lists
from viewkeep.plan.program import NOTHING, UPDATE, Access, Block, Collect, Join, Program, Step


class ProgramError(ViewkeepError):
    """A trigger program that contradicts itself: a defect of a planner, not of a query."""


def validate(program: Program) -> None:
    """Every variable bound before use, every loop by an index, every map kept up to date."""
    _check_declared(program)
    given = tuple(copy for copy, _ in program.inputs)
    lists = list(step_lists(program.triggers, program.loading, program.enumerator, given))
    for steps, bound in lists:
        _check_bindings(program, steps, bound)
        _check_indexes(program, steps, bound)
    _check_reading(program, given)
    _check_maintained(program)
    _check_sources(program)


def _check_declared(program: Program) -> None:
    names = [each.name for each in program.maps]
    _require(len(set(names)) == len(names), "two maps have the same name")
    atoms = [trigger.atom for trigger in program.triggers]
    _require(len(set(atoms)) == len(atoms), "two triggers are for the same atom")
    for each in program.maps:
        for columns in each.indexes:
            fits = set(columns) <= set(each.key)
            _require(fits, f"{each.name} has no columns ({', '.join(columns)}) to index")


def _check_bindings(program: Program, steps: tuple[Step, ...], bound: frozenset[str]) -> None:
    known = set(bound)
    for step in steps:
        if isinstance(step, Join):
            _require(bool(step.accesses), "a join of no maps")
            known |= set(step.opens)
            for access in step.accesses:
                _check_access(program, step, access, known)
        else:
            _require(set(step.key) <= known, f"{step} writes an unbound variable")
            if not isinstance(step, Collect):
                _check_fits(program, step.target, step.key, step)


def _check_access(program: Program, join: Join, access: Access, known: set[str]) -> None:
    _check_fits(program, access.map, access.arguments, access)
    _require(set(access.arguments) <= known, f"{access} reads an unbound variable")
    opened = set(join.opens) <= set(access.arguments)
    _require(opened, f"{access} does not bind all of {', '.join(join.opens)}")


def _check_fits(program: Program, name: str, key: tuple[str, ...], place: object) -> None:
    """Maps are found by the variables of their keys, in the order of the key."""
    declared = next((each for each in program.maps if each.name == name), None)
    if declared is None:
        raise ProgramError(f"invalid program: {place}: there is no map {name}")
    _require(key == declared.key, f"{place} does not fit {name}({', '.join(declared.key)})")


def _check_indexes(program: Program, steps: tuple[Step, ...], bound: frozenset[str]) -> None:
    for join, known in joins(steps, bound):
        for access in join.accesses if join.opens else ():
            declared = program.map(access.map)
            columns = tuple(v for v in declared.key if v in known)
            _require(
                not columns or columns in declared.indexes,
                f"{access}: no index on ({', '.join(columns)}) to loop by",
            )


def _check_reading(program: Program, given: tuple[str, ...]) -> None:
    """The output and its changes are read by joins that bind the head."""
    head = set(program.enumerator.head)
    readings = [(program.enumerator.steps, given)]
    readings += [(trigger.output, trigger.parameters) for trigger in program.triggers]
    for steps, start in readings:
        bound = set(start)
        for step in steps:
            _require(isinstance(step, Join), f"{step} where output is only read")
            bound |= set(step.opens) if isinstance(step, Join) else set()
        _require(head <= bound, "the head is not bound by enumeration")


def _check_maintained(program: Program) -> None:
    """Every map is updated by the trigger of every atom it depends on that has a trigger."""
    for trigger in program.triggers:
        steps = [step for block in trigger.blocks for step in block.steps]
        updated = {step.target for step in steps if not isinstance(step, Join | Collect)}
        for each in program.maps:
            depends = trigger.atom in each.atoms
            _require(
                depends == (each.name in updated),
                f"{each.name} and the update of {trigger.relation} disagree",
            )


def _check_sources(program: Program) -> None:
    for trigger in program.triggers:
        known = {UPDATE: trigger.parameters}
        for block in trigger.blocks:
            _check_source(block, known)
            known |= {step.local: step.key for step in block.steps if isinstance(step, Collect)}
    maps = {each.name: each.key for each in program.maps} | {NOTHING: ()}
    for block in program.loading:
        _check_source(block, maps)


def _check_source(block: Block, known: dict[str, tuple[str, ...]]) -> None:
    _require(block.source in known, f"a block starts from unknown {block.source}")
    key = known[block.source]
    _require(block.variables == key, f"a block over {block.source} wants ({', '.join(key)})")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ProgramError(f"invalid program: {problem}")
