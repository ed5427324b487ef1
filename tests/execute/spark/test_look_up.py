"""Look-ups on the driver: asked for together, and refused for good when they find too much."""

from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from viewkeep.execute.spark.driver.collect import local
from viewkeep.execute.spark.driver.look_up import LookUps, MissingError, NotHereError
from viewkeep.query.types.data_types import INT, Field

LINES = ("lines", "post")


def test_keys_that_were_refused_together_are_not_asked_for_again() -> None:
    """Two statements look up other keys of one table, and together they find too many rows: asking
    again, one by one or together, would go on for ever."""
    nothing = cast(Any, None)
    look_ups = LookUps(
        nothing, lambda source: nothing, {LINES: (Field("product_id", INT),)}, limit=3
    )
    asked = [{(1,), (2,)}, {(2,), (3,)}]
    for keys in asked:
        with pytest.raises(MissingError):
            look_ups.look_up(LINES, ["product_id"], keys)
    [name] = look_ups.requests()
    look_ups.fill({name: pa.table({"product_id": pa.array([1, 1, 2, 3], pa.int32())})})
    for keys in asked:
        with pytest.raises(NotHereError):
            look_ups.look_up(LINES, ["product_id"], keys)
    with pytest.raises(MissingError):  # others may be fewer
        look_ups.look_up(LINES, ["product_id"], {(4,)})


def test_rows_behind_an_empty_chunk_are_not_lost(spark: SparkSession) -> None:
    """Spark itself takes an empty chunk of an Arrow table for its end."""
    chunks = [pa.table({"a": pa.array(values, pa.int32())}) for values in ([1, 2], [], [3])]
    frame = local(spark, pa.concat_tables(chunks)).frame
    assert sorted(row.a for row in frame.collect()) == [1, 2, 3]
