"""Programs for people: the maps, then what each update does, then how output is read."""

from collections.abc import Iterator
from fractions import Fraction

from viewkeep.plan.program import (
    UPDATE,
    Block,
    Collect,
    Join,
    Program,
    Split,
    Step,
    Union,
    Update,
)


def program_text(program: Program) -> str:
    """The whole program as indented text."""
    return "\n".join(_program_lines(program))


def _program_lines(program: Program) -> Iterator[str]:
    yield f"strategy {program.strategy}"
    yield from (f"note {note}" for note in program.notes)
    if program.splits:
        yield "splits"
        yield from (f"  {describe_split(program, split)}" for split in program.splits)
    yield "maps"
    yield from (f"  {each}" for each in program.maps)
    for trigger in program.triggers:
        yield f"on {trigger.label}({', '.join(trigger.parameters)})"
        for block in trigger.blocks:
            yield from _block_lines(block)
    inputs = ", ".join(dict.fromkeys(original for _, original in program.inputs))
    yield f"output ({', '.join(program.enumerator.head)})" + (f" given {inputs}" if inputs else "")
    yield from _step_lines(program.enumerator.steps, 1)
    if not program.enumerator.distinct:
        yield "  sum over the rest"


def describe_split(program: Program, split: Split) -> str:
    """What is told apart, and from which degree on.

    For example `b in S: h from degree N^1/2`.
    """
    relations = atom_names(program)
    where = ", ".join(relations[atom] for atom in split.atoms)
    levels = ", ".join(
        f"{split.letter(level + 1)} from degree N^{exponent_text(threshold)}"
        for level, threshold in enumerate(split.thresholds)
    )
    return f"{', '.join(split.variables)} in {where}: {levels}"


def atom_names(program: Program) -> dict[int, str]:
    """Every atom that changes: its leaf where it is split, else its relation."""
    leaves = {part.atom: part.leaf for part in program.parts}
    return {t.atom: leaves.get(t.atom) or t.relation for t in program.triggers}


def exponent_text(threshold: float) -> str:
    """A threshold's exponent as people write it: a simple fraction, or a decimal.

    >>> exponent_text(0.5), exponent_text(1 / 3), exponent_text(0.35)
    ('1/2', '1/3', '0.35')
    """
    simple = Fraction(threshold).limit_denominator(4)
    return str(simple) if abs(float(simple) - threshold) < 1e-9 else f"{threshold:g}"


def _block_lines(block: Block) -> Iterator[str]:
    if block.source == UPDATE:
        yield from _step_lines(block.steps, 1)
    else:
        yield f"  for {', '.join(block.variables) or '()'} in {block.source}"
        yield from _step_lines(block.steps, 2)


def _step_lines(steps: tuple[Step, ...], depth: int) -> Iterator[str]:
    """Each step with what its payload is by then; what follows a join stands inside it."""
    payload = ["delta"]
    for step in steps:
        if isinstance(step, Union):
            yield from _union_lines(step, depth)
            payload.append("the sum")
            depth += 1
            continue
        yield "  " * depth + _step_line(step, " * ".join(payload))
        if isinstance(step, Join):
            payload += [str(access) for access in step.accesses if access.weigh]
            depth += 1
        elif isinstance(step, Update) and step.live:
            payload = ["change"]
            depth += 1


def _union_lines(union: Union, depth: int) -> Iterator[str]:
    """The sets of a union stand inside it."""
    kind = "disjoint" if union.disjoint else "distinct"
    yield "  " * depth + f"for {kind} {', '.join(union.opens)} in any of"
    for branch in union.branches:
        yield "  " * (depth + 1) + ("one set" if not branch.over else "a set for each")
        yield from _step_lines(branch.over, depth + 2)
        yield from _step_lines(branch.steps, depth + 2 + len(branch.over))


def _step_line(step: Join | Update | Collect, payload: str) -> str:
    match step:
        case Join():
            return str(step)
        case Collect():
            return f"{step.local}[{', '.join(step.key)}] += {payload}"
        case Update():
            consequence = "; if it appeared (change 1) or vanished (-1):" if step.live else ""
            return f"{step.target}[{', '.join(step.key)}] += {payload}{consequence}"
