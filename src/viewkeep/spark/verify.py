"""A view beside its query: what is missing, and what is too much.

Sums of floats depend on the order of their rows, so floats are compared with nine digits.
"""

from time import perf_counter

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.diffs.sql_text import quote
from viewkeep.query.types import DOUBLE, FLOAT
from viewkeep.spark.build import Builder
from viewkeep.spark.local import Relation, with_types
from viewkeep.spark.views import View, leaf_frame
from viewkeep.storage import Verification

LISTED = 20
_SIDE, _COUNT = "#side", "#count"


def verify_view(view: View) -> Verification:
    """Compare the newest version of a view with its query at the versions that it reflects."""
    start = perf_counter()
    found = view.found()
    frames = view.table_frames("post", found.state.inputs)
    builder = Builder(lambda leaf: Relation(leaf_frame(frames, leaf)))
    expected = with_types(builder.frame(view.node), view.node.schema)
    snapshot = view.table.snapshot(found.version)
    shown = view.lake.frame(snapshot).selectExpr(*map(quote, view.layout.names))
    differing = _differing(_comparable(view, expected), _comparable(view, shown)).collect()
    missing = [row for row in differing if row[_COUNT] > 0]
    extra = [row for row in differing if row[_COUNT] < 0]
    width = len(view.layout.names)
    return Verification(
        view.name,
        snapshot.rows,
        sum(row[_COUNT] for row in missing),
        -sum(row[_COUNT] for row in extra),
        [tuple(row)[:width] for row in missing[:LISTED]],
        [tuple(row)[:width] for row in extra[:LISTED]],
        view.layout.names,
        perf_counter() - start,
    )


def _comparable(view: View, rows: DataFrame) -> DataFrame:
    columns = []
    for name, field in zip(rows.columns, view.node.schema, strict=True):
        value = quote(name)
        if field.type in (DOUBLE, FLOAT):
            # The exponent decides how many digits after the point are sure.
            value = f"CAST(format_string('%.9e', CAST({value} AS DOUBLE)) AS DOUBLE) + 0.0D"
        columns.append(f"{value} AS {quote(field.name)}")
    return rows.selectExpr(*columns)


def _differing(expected: DataFrame, shown: DataFrame) -> DataFrame:
    """Rows with how many more of them there should be; few, if any."""
    both = expected.withColumn(_SIDE, F.lit(1)).union(shown.withColumn(_SIDE, F.lit(-1)))
    columns = [F.col(quote(name)) for name in expected.columns]
    counts = both.groupBy(*columns).agg(F.sum(quote(_SIDE)).alias(_COUNT))
    return counts.where(f"{quote(_COUNT)} <> 0").limit(1000)
