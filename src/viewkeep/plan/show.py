"""Programs for people: the maps, then what each update does, then how output is read."""

from collections.abc import Iterator

from viewkeep.plan.program import UPDATE, Block, Join, Program, Step, Update


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
    for step in steps:
        yield "  " * depth + str(step)
        # What a join weighs and what is live holds for the steps after it, not for other blocks.
        if isinstance(step, Join) or (isinstance(step, Update) and step.live):
            depth += 1
