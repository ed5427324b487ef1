"""Programs without the maps that nothing reads after loading.

A view tree sums variables away one by one. Where one atom has many variables, most of its views are
only a step on the way: a payload of many words need not be added to each of them.
"""

from collections.abc import Sequence
from dataclasses import replace

from viewkeep.engine.compiled.layout import maps_accessed, steps_after_loading
from viewkeep.plan.assemble import assemble
from viewkeep.plan.program import INPUT, NOTHING, Block, Collect, Join, Program, Step, Update

WIDE = 16
"""Words of a payload from which on such maps are left out."""


def without_unread_maps(program: Program) -> Program:
    """The program without maps that only sum up another map, and that no step reads but those that
    load such maps; these read the other one.

    >>> from viewkeep import maintain
    >>> shorter = without_unread_maps(maintain("Q() = R(a, b, c)").program)
    >>> [each.name for each in shorter.maps]
    ['R', 'V_a']
    """
    sources = _unread_maps(program)
    if not sources or program.splits:
        return program
    triggers = [
        replace(trigger, blocks=tuple(_shortened(each, sources) for each in trigger.blocks))
        for trigger in program.triggers
    ]
    keys = {each.name: each.key for each in program.maps}
    loading = list[Block]()
    for block in program.loading:
        if any(isinstance(step, Update) and step.target in sources for step in block.steps):
            continue
        source = block.source
        while source in sources:
            source = sources[source]
        loading.append(replace(block, source=source, variables=keys.get(source, ())))
    return assemble(
        program.strategy,
        [each for each in program.maps if each.name not in sources],
        triggers,
        loading,
        program.enumerator,
        program.inputs,
        program.listed,
        program.notes,
    )


def _unread_maps(program: Program) -> dict[str, str]:
    """By map that can be left out, the map that it sums up."""
    steps = [step for trigger in program.triggers for b in trigger.blocks for step in b.steps]
    if any(isinstance(step, Collect) for step in steps):
        return {}  # a local delta may be there for such a map alone
    read = {name for own, _, _ in steps_after_loading(program) for name in maps_accessed(own)}
    read |= {step.target for step in steps if isinstance(step, Update) and step.live}
    read |= {name for block in program.loading for name in maps_accessed(block.steps)}
    sources = {}
    for each in program.maps:
        blocks = [b for b in program.loading if _updates(b.steps, each.name)]
        sums_up = [b for b in blocks if b.steps == (Update(each.name, each.key),) and b.weigh]
        plain = each.definition != INPUT and not each.live and each.name != program.listed
        unread = plain and each.name not in read and len(blocks) == len(sums_up) == 1
        if unread and sums_up[0].source != NOTHING:
            sources[each.name] = sums_up[0].source
    return sources


def _updates(steps: Sequence[Step], name: str) -> bool:
    return any(isinstance(step, Update) and step.target == name for step in steps)


def _shortened(block: Block, left_out: dict[str, str]) -> Block:
    """The block without updates of some maps, and without joins at its end that led to them."""
    steps = [s for s in block.steps if not (isinstance(s, Update) and s.target in left_out)]
    while steps and isinstance(steps[-1], Join):
        steps.pop()
    return replace(block, steps=tuple(steps))
