"""A view beside its query: what is missing, and what is too much.

Sums of floats depend on the order of their rows, so floats are compared with nine digits.
"""

from collections.abc import Sequence
from math import isclose
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.execute.spark.collect import Relation, with_types
from viewkeep.execute.spark.frames import Builder
from viewkeep.execute.spark.report import named
from viewkeep.lake import Verification
from viewkeep.lake.catalog import Catalog
from viewkeep.lake.lineage import replaced_history
from viewkeep.lake.status import unseen_changes
from viewkeep.lake.view import View, leaf_frame
from viewkeep.query.expressions import quote
from viewkeep.query.types.data_types import DOUBLE, FLOAT
from viewkeep.tables.delta import StorageError

LISTED = 20
_SIDE, _COUNT = "#side", "#count"

Counted = dict[tuple[Any, ...], int]
"""Rows with how many of them there are."""


def verify_view(view: View, catalog: Catalog) -> Verification:
    """Compare the newest version of a view with its query at the versions that it reflects."""
    start = perf_counter()
    found = view.found()
    if found.state.build != view.definition.build:
        raise StorageError(f'view "{view.name}" has a new definition; refresh it first')
    reason = replaced_history(view, found.state)
    if reason:
        raise StorageError(f'view "{view.name}": {reason}; refresh it first, or repair it')
    frames = view.table_frames("post", found.state.inputs)
    builder = Builder(lambda leaf: Relation(leaf_frame(frames, leaf)))
    snapshot = view.table.snapshot(found.newest)
    with named(f'view "{view.name}"'):
        expected = with_types(builder.frame(view.node), view.node.schema)
        shown = view.lake.frame(snapshot).selectExpr(*map(quote, view.layout.names))
        missing, extra = _differing(view, expected, shown)
    return Verification(
        view.name,
        snapshot.rows,
        sum(missing.values()),
        sum(extra.values()),
        list(missing)[:LISTED],
        list(extra)[:LISTED],
        view.layout.names,
        perf_counter() - start,
        unseen_changes(view.lake, catalog, found)[0],
    )


def _differing(view: View, expected: DataFrame, shown: DataFrame) -> tuple[Counted, Counted]:
    """The rows that are missing in the view, and those that are too much."""
    rows = _counted(_comparable(view, expected), _comparable(view, shown)).collect()
    counts = {tuple(map(_hashable, row))[:-1]: row[_COUNT] for row in rows}
    missing = {row: count for row, count in counts.items() if count > 0}
    extra = {row: -count for row, count in counts.items() if count < 0}
    floats = [n for n, f in enumerate(view.node.schema) if f.type in (DOUBLE, FLOAT)]
    if floats:
        _pair_off(missing, extra, floats)
    return missing, extra


def _hashable(value: Any) -> Any:
    """Nested values as tuples, which can be counted."""
    match value:
        case dict():
            return tuple((_hashable(key), _hashable(each)) for key, each in value.items())
        case list() | tuple():
            return tuple(map(_hashable, value))
        case bytearray():
            return bytes(value)
    return value


def _comparable(view: View, rows: DataFrame) -> DataFrame:
    columns = []
    for name, field in zip(rows.columns, view.node.schema, strict=True):
        value = quote(name)
        if field.type in (DOUBLE, FLOAT):
            # The exponent decides how many digits after the point are sure.
            nine = f"CAST(format_string('%.9e', CAST({value} AS DOUBLE)) AS DOUBLE) + 0.0D"
            value = f"CASE WHEN {value} IS NOT NULL THEN {nine} END"
        columns.append(f"{value} AS {quote(field.name)}")
    return rows.selectExpr(*columns)


def _counted(expected: DataFrame, shown: DataFrame) -> DataFrame:
    """Rows with how many more of them there should be; few, if any."""
    both = expected.withColumn(_SIDE, F.lit(1)).union(shown.withColumn(_SIDE, F.lit(-1)))
    columns = [F.col(quote(name)) for name in expected.columns]
    counts = both.groupBy(*columns).agg(F.sum(quote(_SIDE)).alias(_COUNT))
    return counts.where(f"{quote(_COUNT)} <> 0").limit(1000)


def _pair_off(missing: Counted, extra: Counted, floats: Sequence[int]) -> None:
    """Leave out pairs that are the same but for the ninth digit, which may be rounded both ways."""
    for row in list(missing):
        for other in [each for each in extra if _are_close(row, each, floats)]:
            count = min(missing[row], extra[other])
            missing[row] -= count
            extra[other] -= count
    for counted in (missing, extra):
        for row in [each for each, count in counted.items() if not count]:
            del counted[row]


def _are_close(first: Sequence[Any], second: Sequence[Any], floats: Sequence[int]) -> bool:
    return all(
        one == other
        or (place in floats and None not in (one, other) and isclose(one, other, rel_tol=2e-9))
        for place, (one, other) in enumerate(zip(first, second, strict=True))
    )
