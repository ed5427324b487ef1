"""Keys that the driver looks up in the files of a table: what Spark finds for the same keys."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from viewkeep.execute.spark.driver import scanned
from viewkeep.execute.spark.driver.scanned import ScannedFiles
from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import to_rows
from viewkeep.tables.log.delta import LakeTable, StorageError

ROWS = pa.table(
    {
        "day": pa.array([date(2026, 1, 1 + n % 3) for n in range(30)], pa.date32()),
        "id": pa.array([None if n % 10 == 3 else n for n in range(30)], pa.int32()),
        "name": pa.array([f"n{n % 7}" for n in range(30)], pa.string_view()),
    }
)
Row = tuple[object, ...]


def scan(spark: SparkSession, place: Path, **options: object) -> ScannedFiles:
    write_deltalake(place, ROWS, **options)  # type: ignore[call-overload]
    table = LakeTable(str(place))
    return ScannedFiles.whole(spark, table, table.snapshot())


def fields(rows: ScannedFiles, *names: str) -> tuple[Field, ...]:
    return tuple(field for field in rows.snapshot.fields if field.name in names)


def near(rows: ScannedFiles, names: tuple[str, ...], *keys: Row) -> list[Row]:
    """The rows for some keys, in order; looking up may find a few others, too."""
    found = rows.look_up(rows.snapshot.fields, {names: set(keys)})
    assert found is not None
    places = [rows.frame.columns.index(name) for name in names]
    return [row for row in to_rows(found) if tuple(row[i] for i in places) in keys]


def expected(names: tuple[str, ...], *keys: Row) -> list[Row]:
    places = [ROWS.column_names.index(name) for name in names]
    return [row for row in to_rows(ROWS) if tuple(row[i] for i in places) in keys]


@pytest.mark.parametrize("partitions", [[], ["day"]])
@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (("id",), [(4,), (5,), (999,)]),
        (("id",), [(None,), (7,)]),
        (("name",), [("n3",)]),
        (("day",), [(date(2026, 1, 2),)]),
        (("day", "name"), [(date(2026, 1, 2), "n1"), (date(2026, 1, 3), "n9")]),
        (("id",), []),
    ],
)
def test_the_rows_of_keys(
    spark: SparkSession,
    tmp_path: Path,
    names: tuple[str, ...],
    keys: list[Row],
    partitions: list[str],
) -> None:
    rows = scan(spark, tmp_path / "t", partition_by=partitions or None)
    found = near(rows, names, *keys)
    assert sorted(found, key=str) == sorted(expected(names, *keys), key=str)


def test_many_groups_of_rows_and_some_columns_only(spark: SparkSession, tmp_path: Path) -> None:
    rows = scan(spark, tmp_path / "t")
    (file,) = rows.files
    pq.write_table(ROWS, file.location(rows.table.uri), row_group_size=4)
    found = rows.look_up(fields(rows, "id", "name"), {("id",): {(4,), (17,)}, ("name",): {("n6",)}})
    assert found is not None
    assert found.column_names == ["id", "name"]
    alike = [(i, n) for _, i, n in to_rows(ROWS) if i in (4, 17) or n == "n6"]
    assert to_rows(found) == alike


def test_other_names_for_columns(spark: SparkSession, tmp_path: Path) -> None:
    whole = scan(spark, tmp_path / "t")
    renamed = ScannedFiles(spark, whole.table, whole.snapshot, whole.files, {"key": "id"})
    (own,) = fields(whole, "id")
    found = renamed.look_up((Field("key", own.type),), {("key",): {(4,)}})
    assert found is not None
    assert found.to_pydict() == {"key": [4]}
    assert renamed.frame.columns == ["key"]
    assert renamed.look_up((Field("KEY", own.type),), {("KEY",): {(4,)}}) is None


def test_large_tables_are_sparks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = scan(spark, tmp_path / "t")
    monkeypatch.setattr(scanned, "DRIVER_BYTES", 10)
    assert rows.look_up(rows.snapshot.fields, {("id",): {(4,)}}) is None
    nothing = rows.look_up(rows.snapshot.fields, {("id",): {(999,)}})  # bounds rule every file out
    assert nothing is not None
    assert nothing.num_rows == 0


def test_a_file_that_is_gone_is_told(spark: SparkSession, tmp_path: Path) -> None:
    rows = scan(spark, tmp_path / "t")
    (file,) = rows.files
    Path(file.location(rows.table.uri)).unlink()
    with pytest.raises(StorageError, match=r"gone.*repair"):
        rows.look_up(rows.snapshot.fields, {("id",): {(4,)}})
