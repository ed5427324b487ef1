"""First-order maintenance: delta queries over the inputs, the output kept as a list
(recent_increments_in_ivm, section 3.1)."""

from collections.abc import Sequence

from viewkeep.plan.assemble import assemble
from viewkeep.plan.program import (
    UPDATE,
    Access,
    Block,
    Enumerator,
    Join,
    Map,
    Program,
    Trigger,
    Update,
)
from viewkeep.plan.tree import Leaf
from viewkeep.plan.view_tree import RESULT
from viewkeep.plan.worst_case import Projections, load_projections, output_changes


def plan_delta(
    leaves: Sequence[Leaf],
    relations: Sequence[str],
    head: tuple[str, ...],
    inputs: tuple[tuple[str, str], ...] = (),
    notes: tuple[str, ...] = (),
) -> Program:
    """For each atom: the change of the output is the update joined with all other atoms."""
    projections = Projections(leaves)
    outputs = output_changes(projections)
    first = leaves[0]
    atoms = frozenset(leaf.atom for leaf in leaves)
    return assemble(
        "delta",
        [*projections.maps(), Map(RESULT, head, "the output as a list", atoms)],
        [
            Trigger(
                leaf.atom,
                relations[leaf.atom],
                leaf.key,
                (
                    Block(UPDATE, leaf.key, (*outputs[leaf.atom], Update(RESULT, head))),
                    *(Block(UPDATE, leaf.key, steps) for steps in projections.update(leaf)),
                ),
                (outputs[leaf.atom],),
            )
            for leaf in leaves
        ],
        [
            *load_projections(projections),
            Block(first.name, first.key, (*outputs[first.atom], Update(RESULT, head))),
        ],
        Enumerator(head, (Join((Access(RESULT, head),), head),)),
        inputs,
        RESULT,
        notes,
    )
