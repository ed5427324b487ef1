"""Changes of one relation after each other: the relation in between, and both changes as one."""

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession

from viewkeep.execute.spark.changed_rows import RowChanges
from viewkeep.execute.spark.layered import Layered
from viewkeep.execute.spark.scanned import Scanned
from viewkeep.tables.key_match import without


def changed_relation(
    spark: SparkSession,
    given: DataFrame | Scanned | Layered,
    changes: RowChanges,
    ids: tuple[str, ...],
) -> Layered:
    """A relation with some of its rows changed."""
    covered = pa.concat_tables([t.select(list(ids)) for t in (changes.gone, changes.came)])
    if not isinstance(given, Layered):
        return Layered(spark, given, changes.came, covered)
    live = pa.concat_tables([without(given.live, covered), _like(given.live, changes.came)])
    return Layered(
        spark, given.base, live, pa.concat_tables([given.covered, _like(given.covered, covered)])
    )


def composed(first: RowChanges, then: RowChanges, ids: tuple[str, ...]) -> RowChanges:
    """Two changes as one, from before the first to after the second."""
    names = list(ids)
    touched = pa.concat_tables([first.gone.select(names), first.came.select(names)])
    touched_then = pa.concat_tables([then.gone.select(names), then.came.select(names)])
    gone = pa.concat_tables([first.gone, _like(first.gone, without(then.gone, touched))])
    came = pa.concat_tables([without(first.came, touched_then), _like(first.came, then.came)])
    return RowChanges(gone, came)


def _like(one: pa.Table, other: pa.Table) -> pa.Table:
    """Columns in the order, and of the types, of another table."""
    return other.select(one.column_names).cast(one.schema)
