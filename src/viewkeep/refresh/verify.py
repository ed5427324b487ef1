"""A view beside its query: what is missing, and what is too much.

Sums of floats depend on the order of their rows, so floats are compared with nine digits.
"""

from collections.abc import Sequence
from math import isclose
from time import perf_counter
from typing import Any

from viewkeep.execute.backend import Counted
from viewkeep.execute.engines import Engines
from viewkeep.lake import Pins, Verification
from viewkeep.lake.catalog import Catalog
from viewkeep.lake.views.lineage import replaced_history
from viewkeep.lake.views.status import unseen_changes
from viewkeep.lake.views.view import View
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.query.types.data_types import DOUBLE, FLOAT
from viewkeep.refresh.build_view import build_choice
from viewkeep.refresh.relations import ViewRelations
from viewkeep.tables.log.delta import Snapshot, StorageError
from viewkeep.tables.relations import StoredRows

LISTED = 20
MOST = 1000
"""The most differing rows that are looked at."""


def verify_view(plans: ViewPlans, name: str, engines: Engines) -> Verification:
    """Compare the newest version of a view with its query at the versions that it reflects."""
    with plans.lake.marked():
        catalog = plans.lake.catalog.read()
        return _verification_of(plans.finished_view(name, catalog), catalog, engines)


def _verification_of(view: View, catalog: Catalog, engines: Engines) -> Verification:
    start = perf_counter()
    stored = view.stored()
    if stored.state.build != view.definition.build:
        raise StorageError(f'view "{view.name}" has a new definition; refresh it first')
    reason = replaced_history(view, stored.state)
    if reason:
        raise StorageError(f'view "{view.name}": {reason}; refresh it first, or repair it')
    snapshot = view.table.snapshot(stored.newest)
    view = view.at(stored.state.clock)
    missing, extra = _missing_and_extra_rows(view, stored.state.inputs, snapshot, engines)
    return Verification(
        view.name,
        snapshot.rows,
        sum(missing.values()),
        sum(extra.values()),
        list(missing)[:LISTED],
        list(extra)[:LISTED],
        view.layout.names,
        perf_counter() - start,
        unseen_changes(view.lake, catalog, stored)[0],
    )


def _missing_and_extra_rows(
    view: View, inputs: Pins, snapshot: Snapshot, engines: Engines
) -> tuple[Counted, Counted]:
    """The rows that the view lacks, and those that it should not have."""
    versions = {(name, "post"): inputs[name] for name in view.sources}
    relations = ViewRelations(view, versions, plain=True)
    names = dict(zip(view.query.names, view.layout.names, strict=True))
    rows = StoredRows(view.table, snapshot, snapshot.files, names)
    backend = engines[build_choice(view, engines, inputs).backend]
    counts = backend.compare(f'view "{view.name}"', view.computed, relations, rows, MOST)
    missing = {row: count for row, count in counts.items() if count > 0}
    extra = {row: -count for row, count in counts.items() if count < 0}
    floats = [n for n, f in enumerate(view.query.schema) if f.type in (DOUBLE, FLOAT)]
    if floats:
        _remove_rounded_pairs(missing, extra, floats)
    return missing, extra


def _remove_rounded_pairs(missing: Counted, extra: Counted, floats: Sequence[int]) -> None:
    """Leave out pairs that are the same but for the ninth digit, which may be rounded both ways."""
    for row in list(missing):
        for other in [each for each in extra if _are_close_rows(row, each, floats)]:
            count = min(missing[row], extra[other])
            missing[row] -= count
            extra[other] -= count
    for differences in (missing, extra):
        for row in [each for each, count in differences.items() if not count]:
            del differences[row]


def _are_close_rows(first: Sequence[Any], second: Sequence[Any], floats: Sequence[int]) -> bool:
    return all(
        first_value == second_value
        or (
            place in floats
            and None not in (first_value, second_value)
            and isclose(first_value, second_value, rel_tol=2e-9)
        )
        for place, (first_value, second_value) in enumerate(zip(first, second, strict=True))
    )
