"""From a view to its delta script in six passes, each a function from value to value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from viewkeep.diffs.id_plan import id_plan
from viewkeep.diffs.passes.compose import compose
from viewkeep.diffs.passes.identify import IdPlan
from viewkeep.diffs.passes.instantiate import RuleDag, instantiate
from viewkeep.diffs.passes.minimize import minimize
from viewkeep.diffs.schemas import base_diffs, every_change
from viewkeep.diffs.script import Script
from viewkeep.query.algebra import Node

Changes = Mapping[str, Iterable[tuple[str, frozenset[str]]]]
"""By table: kinds of changes, and for updates the columns that they may change."""


@dataclass(frozen=True)
class GeneratedScript:
    """What each pass made, for people and tests."""

    plan: IdPlan
    dag: RuleDag
    composed: Script
    script: Script


def generate(
    view: Node,
    changes: Changes | None = None,
    tuple_based: bool = False,
    plan: IdPlan | None = None,
) -> GeneratedScript:
    """The script of a view for some kinds of changes, by default for all.

    View -> better view -> view over sets -> plan with IDs -> rule DAG -> script -> smaller script.
    Diffs are ID-based, or tuple-based. A `plan` that was made before takes the place of the first
    passes.
    """
    plan = plan or id_plan(view)
    diffs = base_diffs(plan, every_change(plan) if changes is None else changes)
    dag = instantiate(plan, diffs, tuple_based)
    composed = compose(dag)
    return GeneratedScript(plan, dag, composed, minimize(composed))
