"""Programs for people: the maps, then what each update does, then how output is read."""

from collections.abc import Iterator

from viewkeep.plan.program import UPDATE, Block, Collect, Join, Program, Step, Update


def show(program: Program) -> str:
    """The whole program as indented text."""
    return "\n".join(_lines(program))


def _lines(program: Program) -> Iterator[str]:
    yield f"strategy {program.strategy}"
    yield from (f"note {note}" for note in program.notes)
    yield "maps"
    yield from (f"  {each}" for each in program.maps)
    for trigger in program.triggers:
        yield f"on {trigger.relation}({', '.join(trigger.parameters)})"
        for block in trigger.blocks:
            yield from _block(block)
    given = ", ".join(dict.fromkeys(original for _, original in program.inputs))
    yield f"output ({', '.join(program.enumerator.head)})" + (f" given {given}" if given else "")
    yield from _steps(program.enumerator.steps, 1)
    if not program.enumerator.distinct:
        yield "  sum over the rest"


def _block(block: Block) -> Iterator[str]:
    if block.source == UPDATE:
        yield from _steps(block.steps, 1)
    else:
        yield f"  for {', '.join(block.variables) or '()'} in {block.source}"
        yield from _steps(block.steps, 2)


def _steps(steps: tuple[Step, ...], depth: int) -> Iterator[str]:
    """Each step with what its payload is by then; what follows a join stands inside it."""
    payload = ["delta"]
    for step in steps:
        yield "  " * depth + _line(step, " * ".join(payload))
        if isinstance(step, Join):
            payload += [str(access) for access in step.accesses if access.weigh]
            depth += 1
        elif isinstance(step, Update) and step.live:
            payload = ["change"]
            depth += 1


def _line(step: Step, payload: str) -> str:
    match step:
        case Join():
            return str(step)
        case Collect():
            return f"{step.local}[{', '.join(step.key)}] += {payload}"
        case Update():
            then = "; if it appeared (change 1) or vanished (-1):" if step.live else ""
            return f"{step.target}[{', '.join(step.key)}] += {payload}{then}"
