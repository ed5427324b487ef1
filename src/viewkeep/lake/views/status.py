"""How fresh a view is: what its tables hold that it does not reflect yet."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from viewkeep.display import facts_html
from viewkeep.errors import problem_of
from viewkeep.lake import RefreshReport
from viewkeep.lake.catalog import Catalog, ViewDefinition
from viewkeep.lake.intake import count_quarantined
from viewkeep.lake.lake import Lake
from viewkeep.lake.transactions import Transactions
from viewkeep.lake.views.balance import Balance, balance_of_view
from viewkeep.lake.views.lineage import replaced_history
from viewkeep.lake.views.problems import noted_problem
from viewkeep.lake.views.stored_view import StoredView
from viewkeep.lake.views.view import View
from viewkeep.tables.feed import Feed
from viewkeep.tables.log.delta import StorageError
from viewkeep.tables.log.memory import remembered_logs

Plan = Callable[[ViewDefinition, Catalog], View]
Advise = Callable[[View, Sequence[RefreshReport]], str]
"""What would make refreshes of a view faster, by its last ones; empty if nothing is known."""


@dataclass(frozen=True)
class ViewStatus:
    """A view now: its rows, what it has not seen yet, and what its last refreshes took.

    `behind` counts, for each table below it, the changed rows that it does not reflect; None where
    the table's writer did not count them. `waiting` are the seconds since the oldest of them.
    `speed_up` is the last refresh by recomputation over the last incremental one, in seconds; None
    before there was one of each. The first computation does not count: it is slower than any other.
    `quarantined` counts, for each table below it, the records of sources that did not fit.
    `balance` tells the thresholds and heavy values of a view in heavy and light parts, and `advice`
    which other strategy would have been much faster in the last refreshes.
    """

    name: str
    rows: int
    strategy: str
    policy: str
    behind: Mapping[str, int | None] = field(default_factory=dict)
    waiting: float = 0.0
    last: RefreshReport | None = field(default=None, repr=False)
    speed_up: float | None = None
    problem: str = ""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    balance: Balance | None = field(default=None, repr=False)
    advice: str = ""

    def _repr_html_(self) -> str:
        behind = [f"{'?' if n is None else f'{n:,}'} of {name}" for name, n in self.behind.items()]
        last = "" if self.last is None else self.last.summary
        return facts_html(
            f"View {self.name}",
            [
                ("fresh", "yes" if self.is_fresh else "no"),
                ("not seen yet", ", ".join(behind)),
                ("rows", f"{self.rows:,}"),
                ("strategy", f"{self.strategy}, policy {self.policy}"),
                ("last refresh", last),
                ("problem", self.problem),
                ("advice", self.advice),
            ],
        )

    @property
    def is_fresh(self) -> bool:
        """Whether it reflects all that its tables hold."""
        return not self.behind and not self.problem


def view_statuses(lake: Lake, names: Sequence[str], plan: Plan, advise: Advise) -> list[ViewStatus]:
    """The status of the views that are named, or of all; each log is read once."""
    catalog = lake.catalog.read()
    with remembered_logs():
        return [
            _view_status(lake, catalog, catalog.view(name), plan, advise)
            for name in names or catalog.views
        ]


def _view_status(
    lake: Lake,
    catalog: Catalog,
    definition: ViewDefinition,
    plan: Plan,
    advise: Advise,
) -> ViewStatus:
    """The status of a view; what is wrong with it is told, not raised."""
    empty = ViewStatus(definition.name, 0, definition.strategy, definition.policy)
    if not definition.ready:
        problem = "it was never finished: create it again, or drop it"
        return _status_with_problem(empty, problem)
    try:
        view = plan(definition, catalog)
        stored = view.stored()
        reason = _replaced_below(view, stored, catalog, plan)
        behind, waiting = unseen_changes(lake, catalog, stored)
        history = view.history()
        return ViewStatus(
            definition.name,
            stored.report.rows,
            view.decision.strategy,
            definition.policy,
            behind,
            waiting,
            stored.report,
            speed_up(history),
            _problem_of_view(lake, definition, reason),
            quarantined_records(lake, catalog, stored.state.tables),
            balance_of_view(view, stored.state),
            advise(view, history),
        )
    except Exception as error:  # the status of a broken view is that it is broken
        return _status_with_problem(empty, problem_of(error))


def quarantined_records(lake: Lake, catalog: Catalog, names: Iterable[str]) -> dict[str, int]:
    """The records in quarantine of tables that have some."""
    counts = {n: count_quarantined(lake, catalog.table(n)) for n in names}
    return {name: count for name, count in counts.items() if count}


def _replaced_below(view: View, stored: StoredView, catalog: Catalog, plan: Plan) -> str:
    """Why the view, or one that it reads, has to be computed anew."""
    reason = replaced_history(view, stored.state)
    for name in view.definition.inputs:
        if not reason and name in catalog.views:
            lower = plan(catalog.views[name], catalog)
            reason = _replaced_below(lower, lower.stored(), catalog, plan)
    return reason


def _problem_of_view(lake: Lake, definition: ViewDefinition, reason: str) -> str:
    """Why the view is not what it should be: what happened below it, or its last refresh."""
    if not reason:
        return noted_problem(lake, definition.name)
    if definition.policy == "strict":
        return f'{reason}; repair("{definition.name}") computes it anew'
    return f"{reason}; the next refresh computes it anew"


def _status_with_problem(status: ViewStatus, problem: str) -> ViewStatus:
    return ViewStatus(status.name, 0, status.strategy, status.policy, problem=problem)


def unseen_changes(
    lake: Lake, catalog: Catalog, stored: StoredView
) -> tuple[dict[str, int | None], float]:
    """For each table below, the changes that the view has not seen; and how old the oldest is."""
    behind: dict[str, int | None] = {}
    oldest, transactions = float("inf"), Transactions(lake)
    for name, version in stored.state.tables.items():
        definition = catalog.table(name)
        table = lake.at(definition.location)
        newest = transactions.visible_version(definition)
        if newest == version:
            continue
        if newest < version:  # it was put back: which rows are other ones, nobody knows
            behind[name] = None
            continue
        feed = Feed(lake.scans, name, definition.table, table)
        behind[name] = feed.count(version, newest)
        with suppress(StorageError):  # the entry was cleaned up
            oldest = min(oldest, table.log(version, version + 1)[0].timestamp / 1000)
    return behind, max(0.0, time.time() - oldest) if oldest < float("inf") else 0.0


def speed_up(history: Sequence[RefreshReport]) -> float | None:
    """The seconds of the last refresh that recomputed over those of the last that brought changes.

    Both found a lake that had been read before; the first computation of a view did not.
    """
    refreshes = [each for each in history if each.before]
    recompute = next((r.seconds for r in refreshes if r.strategy == "recompute"), None)
    incremental = next(
        (r.seconds for r in refreshes if not r.from_scratch and r.rows_changed), None
    )
    return recompute / incremental if recompute and incremental else None
