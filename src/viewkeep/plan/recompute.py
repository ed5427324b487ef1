"""Recomputation: only the inputs are kept, the output is joined anew when it is asked for."""

from collections.abc import Sequence

from viewkeep.plan.assemble import assemble
from viewkeep.plan.program import UPDATE, Block, Enumerator, Program, Trigger
from viewkeep.plan.tree import Leaf
from viewkeep.plan.worst_case import (
    Projections,
    join_steps,
    load_projections,
    output_changes,
    variable_sequence,
)


def plan_recompute(
    leaves: Sequence[Leaf],
    relations: Sequence[str],
    head: tuple[str, ...],
    inputs: tuple[tuple[str, str], ...] = (),
    notes: tuple[str, ...] = (),
) -> Program:
    """A worst-case optimal join, one variable at a time, inputs and outputs first."""
    projections = Projections(leaves)
    outputs = output_changes(projections)
    copies = [copy for copy, _ in inputs]
    first = [*copies, *(v for v in head if v not in copies)]
    join_of_all = join_steps(projections, leaves, copies, variable_sequence(leaves, first))
    variables = {v for leaf in leaves for v in leaf.key}
    return assemble(
        "recompute",
        projections.maps(),
        [
            Trigger(
                leaf.atom,
                relations[leaf.atom],
                leaf.key,
                tuple(Block(UPDATE, leaf.key, steps) for steps in projections.update(leaf)),
                (outputs[leaf.atom],),
            )
            for leaf in leaves
        ],
        load_projections(projections),
        Enumerator(head, join_of_all, distinct=variables <= set(head)),
        inputs,
        None,
        notes,
    )
