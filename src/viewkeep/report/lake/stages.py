"""What the next refresh will do: a line for each view."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group
from rich.text import Text

from viewkeep.refresh.plan import FAILS, INCREMENTAL, SKIP, Stage
from viewkeep.report.lake.refreshes import FORMAT
from viewkeep.report.lines import lines_table
from viewkeep.report.style import BAD, GOOD


def stages_page(stages: Sequence[Stage]) -> Group:
    """The stages of a refresh, in their order."""
    if not stages:
        return Group(Text("no views yet"))
    table = lines_table(("view", "action", "strategy", "engine", "changes", "why"), ())
    for each in stages:
        counts = [f"{'?' if n is None else f'{n:,}'} of {name}" for name, n in each.changes.items()]
        about = (each.strategy if each.action != SKIP else "", each.backend, ", ".join(counts))
        table.add_row(Text(each.view, "bold"), _stage_action(each), *about, why(each))
    return Group(table)


def why(stage: Stage) -> str:
    """The reason of a stage, and what happens if it turns out too costly."""
    parts = [stage.reason, stage.backend_reason]
    parts += ["recomputed if that costs more"] if stage.fallback else []
    return "; ".join(part for part in parts if part)


def stages_json(stages: Sequence[Stage]) -> dict[str, Any]:
    """The stages for programs."""
    return {"format": FORMAT, "stages": [asdict(each) for each in stages]}


def _stage_action(stage: Stage) -> Text:
    style = {INCREMENTAL: GOOD, FAILS: BAD}.get(stage.action, "")
    return Text(stage.action, style)
