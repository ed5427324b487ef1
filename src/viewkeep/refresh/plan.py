"""What the next refresh of a view will do, as a value: made from logs and counts, printed by
`plan` and run by `run`.

    skip         the inputs have no newer versions
    incremental  the changes, through the view's delta script, by one of the engines
    recompute    the view has no script, its policy or definition says so, changes are too many
    fails        something is wrong with the view, or below it

Which of the two is cheaper is estimated (`costs.py`). What is known only while it runs is the
fallback: an incremental stage that finds more changes than it may bring in, or costs more than
recomputation, becomes a recomputation. One that is made for its cost leaves the caches out; they
are written again once they would have saved what they cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from viewkeep.diffs.decide import HEAVY_LIGHT
from viewkeep.display import facts_html
from viewkeep.errors import QueryError
from viewkeep.execute.engines import Choice, Engines
from viewkeep.lake import Costs, Experience, Pins, ViewState
from viewkeep.lake.views.cache_versions import open_caches
from viewkeep.lake.views.lineage import replaced_cache, replaced_history
from viewkeep.lake.views.state import WRITTEN
from viewkeep.lake.views.stored_view import StoredView
from viewkeep.lake.views.view import View
from viewkeep.query.clock import CLOCK
from viewkeep.refresh.build_view import build_choice
from viewkeep.refresh.costs import Estimate, estimate
from viewkeep.tables import feed
from viewkeep.tables.feed import check_declared_columns
from viewkeep.tables.log.delta import ConflictError, StorageError

SKIP, INCREMENTAL, RECOMPUTE, FAILS = "skip", "incremental", "recompute", "fails"
FALLS_BACK = True
"""Whether a script that is costly or fails gives way to recomputation, under the policy `auto`."""
LARGE_SHARE = 0.3
"""Under the policy `auto`, a view is computed anew when more than this share of a table changed."""
FEW = 1000
"""So many changes are brought in whatever share of a table they are."""

Counts = Mapping[str, int | None]
"""The changes of each input; None where the log does not tell."""


@dataclass(frozen=True)
class Stage:
    """What a refresh of one view does, by which engine, and why.

    `first` tells that the definition has no version yet; `fallback`, that an incremental stage
    recomputes where it turns out too costly, or fails.
    """

    view: str
    action: str
    reason: str = ""
    strategy: str = "none"
    backend: str = ""
    backend_reason: str = ""
    changes: Counts = field(default_factory=dict)
    fallback: bool = False
    first: bool = field(default=False, repr=False)
    paused: bool = field(default=False, repr=False)
    size: int = field(default=0, repr=False)
    """The most bytes of files that it reads."""
    caches: bool = field(default=True, repr=False)
    """Whether a recomputation writes the caches as well."""
    estimate: Estimate | None = field(default=None, repr=False)
    """What both ways are expected to take, where that is known."""

    def __str__(self) -> str:
        return f"{self.view}: {self.summary}"

    def _repr_html_(self) -> str:
        return facts_html(f"Next refresh of {self.view}", [("plan", self.summary)])

    @property
    def summary(self) -> str:
        """What it does, by which engine, for how many changes, and why."""
        counts = [f"{'?' if n is None else f'{n:,}'} of {name}" for name, n in self.changes.items()]
        parts = [
            self.action if self.action != INCREMENTAL else f"{self.action} ({self.strategy})",
            f"by {self.backend}" if self.backend else "",
            f"changes: {', '.join(counts)}" if counts else "",
            self.reason,
            str(self.estimate) if self.estimate and self.action == INCREMENTAL else "",
            "recomputed if that costs more" if self.fallback else "",
        ]
        return "; ".join(part for part in parts if part)


def plan_view(view: View, stored: StoredView, inputs: Pins, engines: Engines) -> Stage:
    """The stage of a view whose inputs are at these versions; it reads logs, and no rows."""
    reason = definition_reason(view, stored.state)
    if reason:
        is_new = stored.state.build != view.definition.build
        return _recompute_stage(view, inputs, engines, reason, first=is_new)
    _check_input_columns(view, stored.state, inputs)
    reason = replaced_history(view, stored.state)
    if not reason:
        if stored.state.is_ahead_of(inputs):
            raise ConflictError(f'view "{view.name}": another process has seen newer changes')
        if dict(stored.state.inputs) == dict(inputs) and not view.has_moved_clock(stored.state):
            return Stage(view.name, SKIP, "nothing changed")
        reason = _written_reason(stored.state) or replaced_cache(view, stored.state)
    if reason:
        return _recompute_stage(view, inputs, engines, unless_strict(view, reason))
    counts = {
        name: _count_of_changes(view, stored, inputs, name)
        for name in changed_inputs(stored, inputs)
    }
    if view.has_moved_clock(stored.state):
        counts[CLOCK] = 1
    reason = recompute_reason(view, inputs, counts)
    if reason:
        return _recompute_stage(view, inputs, engines, reason, counts)
    return _incremental_stage(view, stored, inputs, engines, counts)


def plan_above(view: View, state: ViewState, lower: list[str]) -> Stage:
    """The stage of a view that reads others which are refreshed first."""
    reason = definition_reason(view, state)
    if reason:
        is_new = state.build != view.definition.build
        strategy = view.decision.strategy if is_new else "recompute"
        return Stage(
            view.name, RECOMPUTE, f"after {', '.join(lower)}; {reason}", strategy, first=is_new
        )
    after = f"after {', '.join(lower)}, whose changes are not known yet"
    if not view.is_incremental:
        return Stage(view.name, RECOMPUTE, f"{after}; {view.decision.reason}", "recompute")
    fallback = may_fall_back(view)
    return Stage(view.name, INCREMENTAL, after, view.decision.strategy, fallback=fallback)


def changed_inputs(stored: StoredView, inputs: Pins) -> list[str]:
    """The inputs that have another version than the one that the view reflects."""
    return [name for name, version in inputs.items() if stored.state.inputs.get(name) != version]


def may_fall_back(view: View) -> bool:
    """Whether the view may be computed anew where bringing changes in is costly, or fails."""
    return FALLS_BACK and view.definition.policy == "auto"


def script_choice(view: View, stored: StoredView, inputs: Pins, engines: Engines) -> Choice:
    """The engine that runs the view's script: by all that the script may read."""
    tables = [view.sources[name].table.snapshot(inputs[name]).size for name in view.sources]
    cache_sizes = [cache.snapshot.size for cache in open_caches(view, stored.state).values()]
    size = sum(tables) + sum(cache_sizes) + view.table.snapshot(stored.newest).size
    return engines.choose(view.queries, size)


def recompute_reason(view: View, inputs: Pins, counts: Counts) -> str:
    """Why changes of so many rows are not brought in; empty if they are."""
    if not view.is_incremental:
        return view.decision.reason
    fixed = [name for name in counts if name not in view.changing and name != CLOCK]
    if fixed and view.is_recursive:
        return f"{', '.join(fixed)}, declared as static, changed"
    for name, count in counts.items():
        if count is None:
            continue
        if count > feed.MOST_CHANGES:
            return too_many_reason(view, f"{count:,} changes of {name}")
        if view.definition.policy == "auto" and count > FEW:
            rows = view.sources[name].table.snapshot(inputs[name]).rows
            if count > LARGE_SHARE * rows:
                return f"{count:,} changes of {name}, which has {rows:,} rows"
    return ""


def too_many_reason(view: View, problem: str) -> str:
    """The reason of a recomputation, which the policy strict does not allow."""
    reason = f"{problem}, too many to bring in one by one"
    if view.definition.policy == "strict":
        raise QueryError(f"{reason}; the policy strict allows nothing else")
    return reason


def unless_strict(view: View, reason: str) -> str:
    """The reason of a recomputation of a view whose changes cannot be told: that is right, whatever
    happened below it, but nothing that the policy strict does by itself."""
    if view.definition.policy == "strict":
        raise StorageError(
            f'{reason}; the policy strict computes nothing anew by itself: repair("{view.name}")'
        )
    return reason


def writes_caches(view: View) -> bool:
    """Whether a recomputation that is made for its cost writes the caches: not where they can be
    written as cheaply when they are wanted."""
    if view.decision.strategy == HEAVY_LIGHT:  # its rows are computed from its caches
        return True
    return not may_fall_back(view)


def cost_reason(estimate: Estimate | None) -> str:
    """Why changes that could be brought in are not; empty if they are cheap."""
    if estimate is None or not estimate.is_dear:
        return ""
    return f"bringing the changes in would take {estimate}"


def pause_reason(view: View, changes: Mapping[str, int], costs: Costs, backend: str) -> str:
    """Why changes that could be brought in are not tried; empty if they are."""
    if not may_fall_back(view) or not costs.of(backend).is_paused(changes):
        return ""
    return f"changes of {' and '.join(changes)} went past the cost of recomputation before"


def _incremental_stage(
    view: View, stored: StoredView, inputs: Pins, engines: Engines, counts: Counts
) -> Stage:
    choice = script_choice(view, stored, inputs, engines)
    exact_counts = {name: count for name, count in counts.items() if count is not None}
    costs = Costs.from_notes(stored.report.experience)
    cost_estimate = None
    if len(exact_counts) == len(counts):
        cost_estimate = fallback_estimate(view, stored, inputs, choice, exact_counts, costs)
        reason = cost_reason(cost_estimate)
        if reason:
            return _recompute_stage(
                view, inputs, engines, reason, counts, cost_estimate=cost_estimate
            )
        reason = pause_reason(view, exact_counts, costs, choice.backend)
        if reason:
            return _recompute_stage(
                view, inputs, engines, reason, counts, paused=True, cost_estimate=cost_estimate
            )
    if view.lacks_caches(stored.state):
        return _stage_without_caches(
            view, inputs, engines, counts, costs.of(choice.backend), cost_estimate
        )
    return Stage(
        view.name,
        INCREMENTAL,
        "",
        view.decision.strategy,
        choice.backend,
        choice.reason,
        counts,
        may_fall_back(view),
        size=choice.size,
        estimate=cost_estimate,
    )


def fallback_estimate(
    view: View,
    stored: StoredView,
    inputs: Pins,
    choice: Choice,
    changes: Mapping[str, int],
    costs: Costs,
) -> Estimate | None:
    """What the two ways are expected to take, if the view may go either way."""
    if not may_fall_back(view):
        return None
    return estimate(view, stored, inputs, choice, changes, costs.of(choice.backend))


def _stage_without_caches(
    view: View,
    inputs: Pins,
    engines: Engines,
    counts: Counts,
    experience: Experience,
    cost_estimate: Estimate | None,
) -> Stage:
    """Computed anew once more, with the caches when they are worth it."""
    if cost_estimate is None:  # over few bytes, what took too long is not tried again
        exact_counts = {name: count for name, count in counts.items() if count is not None}
        with_caches = not experience.has_given_up(exact_counts)
    else:
        loss = cost_estimate.recompute - cost_estimate.incremental
        with_caches = experience.after_missing(loss).wants_caches
    reason = (
        "the caches that bring changes in are written anew" if with_caches else "it has no caches"
    )
    stage = _recompute_stage(view, inputs, engines, reason, counts, cost_estimate=cost_estimate)
    return replace(stage, caches=with_caches or stage.caches)


def _recompute_stage(
    view: View,
    inputs: Pins,
    engines: Engines,
    reason: str,
    counts: Counts | None = None,
    first: bool = False,
    paused: bool = False,
    cost_estimate: Estimate | None = None,
) -> Stage:
    choice = build_choice(view, engines, inputs)
    strategy = view.decision.strategy if first else "recompute"
    stage = Stage(view.name, RECOMPUTE, reason, strategy, choice.backend, choice.reason)
    caches = view.begins_with_caches if counts is None else writes_caches(view)
    return replace(
        stage,
        changes=counts or {},
        first=first,
        paused=paused,
        size=choice.size,
        caches=caches,
        estimate=cost_estimate,
    )


def definition_reason(view: View, state: ViewState) -> str:
    """Why rows and caches of a state are none that the view's plan keeps; empty if they are."""
    if state.build != view.definition.build:
        return "the definition has changed"
    if state.plan not in (view.plan, WRITTEN):
        return "this version of Viewkeep keeps it in another way"
    return ""


def _written_reason(state: ViewState) -> str:
    """Why changes cannot be brought into rows that no refresh has made."""
    return "a live view has written it, without its caches" if state.plan == WRITTEN else ""


def _check_input_columns(view: View, state: ViewState, inputs: Pins) -> None:
    """Refuse inputs that have lost columns since, or changed their types, and whose definitions
    could not follow that."""
    for name, since in state.inputs.items():
        source = view.sources[name]
        if inputs[name] != since:
            check_declared_columns(name, source.declared, source.table.snapshot(inputs[name]))


def _count_of_changes(view: View, stored: StoredView, inputs: Pins, name: str) -> int | None:
    return view.feed(name).count(stored.state.inputs[name], inputs[name])
