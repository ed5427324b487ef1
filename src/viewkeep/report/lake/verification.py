"""Views compared with their queries: which are right, and the rows that differ."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from viewkeep.lake import Verification
from viewkeep.report.amounts import duration
from viewkeep.report.lake.refreshes import FORMAT
from viewkeep.report.lines import lines_table, rows_table
from viewkeep.report.live.maintenance import count_text, row_json
from viewkeep.report.style import BAD, FAIR, GOOD, section

Json = dict[str, Any]


def verification_page(views: Sequence[Verification]) -> Group:
    """A line for each view, then the first rows that differ."""
    if not views:
        return Group(Text("no views yet"))
    table = lines_table(("view", "rows", "verdict", "seconds"), ("rows", "seconds"))
    for each in views:
        table.add_row(
            Text(each.view, "bold"),
            f"{each.rows:,}",
            _verification_verdict(each),
            duration(each.seconds),
        )
    return Group(table, *(_differences_section(each) for each in views if not each.ok))


def _verification_verdict(each: Verification) -> Text:
    if each.ok and not each.fresh:
        return Text(f"right, but stale: {_changes_not_seen(each)} not seen yet", FAIR)
    if each.ok:
        return Text("as its query gives", GOOD)
    missing = f"{count_text(each.missing_rows, 'row')} missing"
    return Text(f"WRONG: {missing}, {count_text(each.extra_rows, 'row')} too many", BAD)


def _changes_not_seen(each: Verification) -> str:
    """The changes that a view does not reflect; None where their writer did not count them."""
    counts = {
        t: "changes" if n is None else count_text(n, "change") for t, n in each.behind.items()
    }
    return " and ".join(f"{count} of {table}" for table, count in counts.items())


def _differences_section(each: Verification) -> RenderableType:
    missing = [(Text("missing", BAD), *row) for row in each.missing]
    extra = [(Text("too many", BAD), *row) for row in each.extra]
    table = rows_table(("", *each.columns), [*missing, *extra])
    left = each.missing_rows + each.extra_rows - len(each.missing) - len(each.extra)
    more = [Text(f"and {count_text(left, 'row')} more", "dim")] if left > 0 else []
    repair = Text(f"`viewkeep view repair {each.view}` computes it anew", "dim")
    return section(f"{each.view}: rows that differ", table, *more, repair)


def verification_json(views: Iterable[Verification]) -> Json:
    """The comparison for programs."""
    return {
        "format": FORMAT,
        "views": [
            {
                "name": each.view,
                "ok": each.ok,
                "fresh": each.fresh,
                "behind": dict(each.behind),
                "rows": each.rows,
                "columns": list(each.columns),
                "missing_rows": each.missing_rows,
                "extra_rows": each.extra_rows,
                "missing": [row_json(row) for row in each.missing],
                "extra": [row_json(row) for row in each.extra],
                "seconds": each.seconds,
            }
            for each in views
        ],
    }
