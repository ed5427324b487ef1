"""How fresh the views of a lake are."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from time import time
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from viewkeep.lake import RefreshReport
from viewkeep.report.amounts import ago, duration, times
from viewkeep.report.lake.refreshes import FORMAT, report_json, strategy_text
from viewkeep.report.lines import lines_table
from viewkeep.report.live.maintenance import count_text
from viewkeep.report.style import BAD, FAIR, GOOD

if TYPE_CHECKING:  # it loads what reads a lake
    from viewkeep.lake.views.status import ViewStatus

COLUMNS = ("view", "rows", "freshness", "waiting", "refreshed", "by", "seconds", "speed-up")
Json = dict[str, Any]


def status_page(views: Sequence["ViewStatus"]) -> Group:
    """A line for each view, then what is wrong."""
    if not views:
        return Group(Text("no views yet; `viewkeep view create` makes one"))
    table = lines_table(COLUMNS, ("rows", "waiting", "seconds", "speed-up"))
    for each in views:
        waiting = duration(each.waiting) if each.behind else "-"
        table.add_row(
            Text(each.name, "bold"),
            f"{each.rows:,}",
            freshness(each),
            waiting,
            *_last_refresh_cells(each),
        )
    problems = [
        Text.assemble((f"{each.name}: ", "bold"), (each.problem, BAD))
        for each in views
        if each.problem
    ]
    advice = [
        Text.assemble((f"{each.name}: ", "bold"), (each.advice, FAIR))
        for each in views
        if each.advice
    ]
    return Group(table, *problems, *advice, *_quarantine_lines(views), *_heavy_value_lines(views))


def _quarantine_lines(views: Iterable["ViewStatus"]) -> Iterable[Text]:
    """A line for each table with records in quarantine."""
    counts = {name: count for each in views for name, count in each.quarantined.items()}
    for name, count in counts.items():
        where = f"{count_text(count, 'record')} in quarantine (`viewkeep quarantine {name}`)"
        yield Text.assemble((f"{name}: ", "bold"), (where, FAIR))


def _heavy_value_lines(views: Iterable["ViewStatus"]) -> Iterable[Text]:
    """What views in heavy and light parts tell apart."""
    for each in views:
        if each.balance is not None:
            yield Text.assemble((f"{each.name}: ", "bold"), str(each.balance))
            yield from (Text(f"  heavy {values}") for values in each.balance.heavy)


def freshness(status: "ViewStatus") -> Text:
    """Whether a view is fresh, or how many changes it has not seen; some were not counted.

    >>> from viewkeep.lake.views.status import ViewStatus
    >>> print(freshness(ViewStatus("cost", 1, "id", "auto", {"parts": 1200, "stock": None})))
    1,200+ behind
    """
    if status.problem:
        return Text("broken", BAD)
    if status.is_fresh:
        return Text("fresh", GOOD)
    changes = sum(count or 0 for count in status.behind.values())
    more = "+" if None in status.behind.values() else ""
    return Text(f"{changes:,}{more} behind" if changes else "behind", FAIR)


def created_text(report: RefreshReport, status: "ViewStatus") -> Text:
    """A view that was just made, and how it will be kept."""
    return Text.assemble(
        (report.view, "bold"),
        f": {count_text(report.rows, 'row')}, computed in {duration(report.seconds)}; "
        f"kept by strategy {status.strategy} ({report.reason})",
    )


def _last_refresh_cells(status: "ViewStatus") -> Iterable[RenderableType]:
    """When, how and how fast the view was refreshed last."""
    last = status.last
    if last is None:
        return ("-",) * 4
    return (
        ago(time() - last.at / 1000),
        strategy_text(last),
        duration(last.seconds),
        times(status.speed_up),
    )


def status_json(views: Iterable["ViewStatus"]) -> Json:
    """The status for programs; `behind` counts are null where a writer did not count."""
    return {
        "format": FORMAT,
        "views": [
            {
                "name": each.name,
                "rows": each.rows,
                "fresh": each.is_fresh,
                "behind": dict(each.behind),
                "waiting_seconds": each.waiting,
                "strategy": each.strategy,
                "policy": each.policy,
                "speed_up": each.speed_up,
                "last": None if each.last is None else report_json(each.last),
                "problem": each.problem or None,
                "quarantined": dict(each.quarantined),
                "advice": each.advice or None,
                **({} if each.balance is None else {"balance": asdict(each.balance)}),
            }
            for each in views
        ],
    }
