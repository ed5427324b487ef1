"""A round of refreshes: all views brought to the same versions of the base tables.

A round pins the newest version of every table, and takes the views in the order in which they
read each other. When another process refreshes at the same time, one of the two loses a commit; it
then looks at the newest versions and goes round again, and finds most of its work done.
"""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from viewkeep.errors import ViewkeepError
from viewkeep.spark.catalog import Catalog, ViewDefinition
from viewkeep.spark.delta import ConflictError
from viewkeep.spark.lake import Lake
from viewkeep.spark.refresh import refresh_view
from viewkeep.spark.report import SPARK_ERRORS
from viewkeep.spark.views import View
from viewkeep.storage import Pins, RefreshReport

TRIES = 50
WAIT = 0.2

Plan = Callable[[ViewDefinition, Catalog], View]


class RefreshError(ViewkeepError):
    """Views that could not be refreshed; `reports` tells of all, also of those that could."""

    def __init__(self, reports: Iterable[RefreshReport]) -> None:
        self.reports = list(reports)
        failed = [each for each in self.reports if each.error]
        lines = [f'view "{each.view}": {each.error}' for each in failed]
        fresh = len(self.reports) - len(failed)
        super().__init__("\n".join([*lines, f"the other views ({fresh}) are up to date"]))


@dataclass(frozen=True)
class Round:
    """What a round did: a report for each view, the versions that it pinned or made, and for each
    of these the versions of the base tables below it."""

    reports: Mapping[str, RefreshReport]
    pins: Pins
    below: Mapping[str, Pins]

    def inputs(self, definition: ViewDefinition) -> dict[str, int]:
        """The versions that a view is to read."""
        return {name: self.pins[name] for name in definition.inputs if name in self.pins}

    def tables(self, definition: ViewDefinition) -> dict[str, int]:
        """The versions of all base tables below a view."""
        found: dict[str, int] = {}
        for name in definition.inputs:
            found |= self.below.get(name, {})
        return found


def refresh_round(lake: Lake, wanted: Iterable[str] | None, plan: Plan) -> list[RefreshReport]:
    """Refresh the views, or those that are wanted with what they read; reports in their order."""
    names = None if wanted is None else list(wanted)
    done = _until_settled(lake, lambda: _round(lake, lake.catalog.read(), names, (), plan))
    return _checked(done)


def pinned_inputs(lake: Lake, definition: ViewDefinition, plan: Plan) -> Round:
    """Refresh what a view reads, and pin it, so that the view can be built from it."""

    def attempt() -> Round:
        catalog = lake.catalog.read()
        views = [name for name in definition.inputs if name in catalog.views]
        return _round(lake, catalog, views, definition.inputs, plan)

    done = _until_settled(lake, attempt)
    _checked(done)
    return done


def _until_settled(lake: Lake, attempt: Callable[[], Round]) -> Round:
    for number in range(TRIES):
        try:
            return attempt()
        except ConflictError:
            time.sleep(WAIT * random.random() * (number + 1))
    raise ConflictError(f"{lake.uri}: other processes refresh all the time; try again later")


def _checked(done: Round) -> list[RefreshReport]:
    reports = list(done.reports.values())
    if any(each.error for each in reports):
        raise RefreshError(reports)
    return reports


def _round(
    lake: Lake,
    catalog: Catalog,
    wanted: list[str] | None,
    also_pinned: Iterable[str],
    plan: Plan,
) -> Round:
    order = catalog.order(wanted)
    read = {name for view in order for name in view.inputs} | set(also_pinned)
    pins = {n: lake.at(t.location).version() for n, t in catalog.tables.items() if n in read}
    below: dict[str, Pins] = {name: {name: version} for name, version in pins.items()}
    reports: dict[str, RefreshReport] = {}
    done = Round(reports, pins, below)
    for definition in order:
        report = _refresh(definition, catalog, plan, done)
        reports[definition.name] = report
        if not report.error:
            pins[definition.name] = report.version
            below[definition.name] = done.tables(definition)
    return done


def _refresh(
    definition: ViewDefinition, catalog: Catalog, plan: Plan, done: Round
) -> RefreshReport:
    broken = {name for name, report in done.reports.items() if report.error}
    failed = [name for name in definition.inputs if name in broken]
    if failed:
        error = f"not refreshed, since it reads {', '.join(failed)}"
        return RefreshReport(definition.name, "none", error=error)
    try:
        view = plan(definition, catalog)
        return refresh_view(view, done.inputs(definition), done.tables(definition))
    except ConflictError:
        raise
    except (ViewkeepError, *SPARK_ERRORS) as error:
        return RefreshReport(definition.name, "none", error=str(error))
