"""What a project would change in its lake, for people and programs."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from viewkeep.report.amounts import size
from viewkeep.report.lake.refreshes import FORMAT, refresh_json, refresh_page
from viewkeep.report.lines import lines_table
from viewkeep.report.live.maintenance import count_text
from viewkeep.report.style import BAD, FAIR, GOOD

if TYPE_CHECKING:  # they load what reads a lake
    from viewkeep.project.plan import ProjectPlan, Step
    from viewkeep.project.run import ProjectRun

Json = dict[str, Any]
_SIGNS = {
    **dict.fromkeys(("create", "register"), "+"),
    **dict.fromkeys(("alter", "replace", "set lag", "set text"), "~"),
    "drop": "-",
    "fails": "!",
}
_BEFORE_CARET = 60
"""The most characters of a line before the place of an error."""
_STYLES = {"+": GOOD, "~": FAIR, "-": BAD, "!": BAD, " ": "dim"}


def project_plan_page(plan: "ProjectPlan", way: str = "`viewkeep up` does it") -> RenderableType:
    """A line for each step, what is not right, and what would be lost."""
    table = lines_table(("", "name", "action", "kept by", "update", "delay", "why"))
    for each in plan.steps:
        if each.action != "fails":
            table.add_row(*_step_cells(each))
    place = f"{_short_place(plan.lake)}{' (new)' if plan.is_new else ''}"
    return Group(
        Text.assemble(("project ", "dim"), (plan.project.name, "bold"), (f"  lake {place}", "dim")),
        *([table] if table.row_count else []),
        *_improvement_lines(plan),
        *_problem_lines(plan),
        *(Text(each, FAIR) for each in plan.project.notes),
        Text(_plan_summary(plan, way), "bold"),
    )


def _step_cells(step: "Step") -> Iterator[Text]:
    sign = _SIGNS.get(step.action, " ")
    strategy = step.keeping.partition(" (")[0]
    yield Text(sign, _STYLES[sign])
    yield Text(step.name, "bold")
    yield Text(f"{step.action} {step.kind}", _STYLES[sign])
    yield from (Text(strategy), Text(step.update), Text(step.delay))
    reads = f"reads {size(step.reads)}" if step.reads else ""
    refresh = f"then {step.refresh}" if step.refresh else ""
    yield Text("; ".join(filter(None, (step.reason, reads, refresh))))


def _improvement_lines(plan: "ProjectPlan") -> Iterator[Text]:
    """Foreign keys that could be declared for views that are to be made; what else would help, but
    is rarely true of tables (keys, static), stands with the rest of the theory."""
    for step in plan.steps:
        for name, text in step.theory if step.changes else ():
            if name == "better" and text.endswith(("foreign key", "foreign keys")):
                yield Text(f"  {step.name}: {text}", "dim")


def _problem_lines(plan: "ProjectPlan") -> Iterator[Text]:
    for each in plan.problems:
        place = f" ({each.file})" if each.file else ""
        problem, *lines = each.reason.split("\n")
        yield Text.assemble((f"! {each.kind} {each.name}{place}: ", BAD), problem)
        yield from _excerpt_lines(lines)
    for each in plan.destroying:
        yield Text(f"- {each.name}: {each.destroys} will be lost", BAD)


def _excerpt_lines(lines: list[str]) -> Iterator[Text]:
    """The lines after a problem: the caret stays under its place, in a line that is not broken."""
    carets = [len(line) for line in lines if line.strip() == "^"]
    cut = max(0, max(carets, default=0) - _BEFORE_CARET)
    for line in lines:
        is_excerpt = line[:2] == "  "
        text = line[:2] + line[2 + cut :] if is_excerpt else line
        yield Text(text, no_wrap=is_excerpt, overflow="crop" if is_excerpt else None)


def _plan_summary(plan: "ProjectPlan", way: str) -> str:
    if plan.problems:
        return f"{count_text(len(plan.problems), 'problem')}: nothing can be done"
    counts = {action: [s.action for s in plan.steps].count(action) for action in _SIGNS}
    parts = [f"{count} to {action}" for action, count in counts.items() if count]
    return "; ".join(filter(None, (", ".join(parts), way))) if parts else "nothing to do"


def _short_place(place: str) -> str:
    """A folder as it is called from here."""
    path = Path(place)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else place


def project_plan_json(plan: "ProjectPlan") -> Json:
    """The plan for programs."""
    return {
        "format": FORMAT,
        "project": plan.project.name,
        "lake": plan.lake,
        "new": plan.is_new,
        "steps": [asdict(each) for each in plan.steps],
        "problems": len(plan.problems),
        "destroys": bool(plan.destroying),
        "notes": list(plan.project.notes),
    }


def run_page(run: "ProjectRun") -> RenderableType:
    """What was done, then the refreshes, if one did something."""
    lines = [Text.assemble((f"{s.action} {s.kind} ", "dim"), (s.name, "bold")) for s in run.steps]
    told = [each for each in run.refreshes if each.error or each.strategy != "none"]
    refreshes = [refresh_page(told)] if told else []
    end = Text("some views could not be refreshed" if run.failed else "all views are fresh", "bold")
    return Group(*lines, *refreshes, end)


def run_json(run: "ProjectRun") -> Json:
    """The same for programs."""
    return {"steps": [asdict(each) for each in run.steps], **refresh_json(run.refreshes)}
