"""The tests of a project: which passed, and the rows that are not as expected."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from viewkeep.report.lake.refreshes import FORMAT
from viewkeep.report.lake.row_changes import named_row_json
from viewkeep.report.lines import rows_table
from viewkeep.report.live.maintenance import count_text
from viewkeep.report.style import BAD, GOOD

if TYPE_CHECKING:  # it loads what reads a lake
    from viewkeep.project.checks import CheckResult

Json = dict[str, Any]


def checks_page(results: Sequence["CheckResult"]) -> RenderableType:
    """A line for each test; below those that failed, the rows."""
    if not results:
        return Text("no tests yet: put queries that must give no rows into tests/")
    failed = [each for each in results if not each.passed]
    parts: list[RenderableType] = [part for each in results for part in _check_parts(each)]
    verdict = f"{len(failed)} of {count_text(len(results), 'test')} failed" if failed else ""
    passed = f"{count_text(len(results), 'test')} passed"
    return Group(*parts, Text(verdict or passed, BAD if failed else GOOD))


def _check_parts(result: "CheckResult") -> list[RenderableType]:
    place = (f"  {result.file}", "dim")
    if result.passed:
        return [Text.assemble(("ok    ", GOOD), result.name, place)]
    title = Text.assemble(("FAILS ", BAD), (result.name, "bold"), place)
    rows = [("missing", row) for row in result.missing] + [("too many", r) for r in result.extra]
    return [title, Text(f"      {result.problem}"), *([_rows_part(rows)] if rows else [])]


def _rows_part(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> RenderableType:
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    lines = [("     ", Text(what, BAD), *(row.get(name) for name in names)) for what, row in rows]
    return rows_table(("", "", *names), lines)


def checks_json(results: Sequence["CheckResult"]) -> Json:
    """The same for programs."""
    return {
        "format": FORMAT,
        "tests": [
            {
                "name": each.name,
                "file": each.file,
                "kind": each.kind,
                "passed": each.passed,
                "problem": each.problem or None,
                "missing": [named_row_json(row) for row in each.missing],
                "extra": [named_row_json(row) for row in each.extra],
            }
            for each in results
        ],
    }
