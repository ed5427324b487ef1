"""The rows that a refresh changes, on the driver: what storage has to write, without a scan."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame

from viewkeep.diffs.script import Materialized
from viewkeep.execute.apply_rows import apply_to_rows, keys_and_values, matched_ids
from viewkeep.execute.near_rows import MissingError
from viewkeep.execute.row_changes import RowChanges
from viewkeep.execute.spark.apply_diff import Part, TargetChanges
from viewkeep.execute.spark.driver.collect import collect
from viewkeep.execute.spark.driver.look_up import LookUps, NotHereError
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.rows import Rows, key_of
from viewkeep.tables.arrow_rows import to_arrow, to_rows


def find_changed_rows(
    changes: Mapping[str, TargetChanges], look_ups: LookUps, limit: int
) -> dict[str, RowChanges | None]:
    """The changed rows of relations, by at most one job; None where they are too many."""
    look_ups.limit = limit
    frames: dict[str, DataFrame] = {}
    for name, changed in changes.items():
        with suppress(MissingError):
            try:
                looked_up(changed.target, changed.parts, look_ups)
            except NotHereError:
                frames |= {f"old {name}": changed.old_rows, f"new {name}": changed.new_rows}
    tables = collect(frames | look_ups.frames(), limit)
    look_ups.fill(tables)
    rows: dict[str, RowChanges | None] = {}
    for name, changed in changes.items():
        if f"old {name}" in frames:
            rows[name] = _changed_rows_collected(
                changed, tables[f"old {name}"], tables[f"new {name}"], limit
            )
        else:
            rows[name] = _changed_on_driver(changed, look_ups)
    return rows


def looked_up(target: Materialized, parts: Sequence[Part], look_ups: LookUps) -> Rows:
    """The old rows that diffs target, each once; missing ones are requested."""
    by_key: dict[Row, Row] = {}
    missing: MissingError | None = None
    key = key_of(target.ids, target.definition.schema)
    for part in parts:
        try:
            ids, values = matched_ids(target, part.schema), _values_of_collected_diff(target, part)
            rows = look_ups.look_up(target.name, ids, set(values))
            by_key |= {key(row): row for row in rows}
        except MissingError as error:
            missing = error
    if missing is not None:
        raise missing
    return list(by_key.values())


def rows_changed(target: Materialized, parts: Sequence[Part], look_ups: LookUps) -> dict[str, int]:
    """How many rows each diff changes after those before it, where the rows are at hand."""
    counts: dict[str, int] = {}
    with suppress(MissingError, NotHereError):
        rows = looked_up(target, parts, look_ups)
        for part in parts:
            rows, counts[part.name] = apply_part(target, part, rows)
    return counts


def _changed_on_driver(changed: TargetChanges, look_ups: LookUps) -> RowChanges | None:
    try:
        old_rows = new_rows = looked_up(changed.target, changed.parts, look_ups)
        for part in changed.parts:
            new_rows, _ = apply_part(changed.target, part, new_rows)
    except NotHereError:
        return None
    return _rows_with_new_values(changed.target, old_rows, new_rows)


def _changed_rows_collected(
    changed: TargetChanges, old_rows_of_diff: pa.Table, new_rows_of_diff: pa.Table, limit: int
) -> RowChanges | None:
    if max(old_rows_of_diff.num_rows, new_rows_of_diff.num_rows) > limit:
        return None
    return _rows_with_new_values(
        changed.target, to_rows(old_rows_of_diff), to_rows(new_rows_of_diff)
    )


def _rows_with_new_values(
    target: Materialized, old_rows_of_diff: Rows, new_rows_of_diff: Rows
) -> RowChanges:
    fields = target.definition.schema
    old, new = Counter(old_rows_of_diff), Counter(new_rows_of_diff)
    left = [list((each - other).elements()) for each, other in ((old, new), (new, old))]
    return RowChanges(*(to_arrow(fields, rows) for rows in left))


def apply_part(target: Materialized, part: Part, rows: Rows) -> tuple[Rows, int]:
    """Rows changed by one diff, and how many it changed."""
    return apply_to_rows(target, part.schema, _values_of_collected_diff(target, part), rows)


def _values_of_collected_diff(target: Materialized, part: Part) -> dict[Row, Row]:
    """The values that a collected diff sets for each key."""
    if part.diff.table is None:
        raise NotHereError(f"{part.name} was not collected")
    try:
        return dict(keys_and_values(target, part.schema, part.diff.table))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise NotHereError(str(error)) from error
