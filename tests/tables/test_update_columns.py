"""Files of which some columns are written anew have the new rows, for every reader."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from tests.tables.test_spliced_rest import COLUMNS, ROWS, by_arrow, by_duckdb, stored
from viewkeep.execute.duckdb.scans import DuckdbScans
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files import rewrite, update_columns
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.rewrite import Rewrite
from viewkeep.tables.log.delta import DataFile, LakeTable

NEW_VALUES: dict[str, list[Any]] = {
    "n": [7, None, -1],
    "s": ["", None, "longer than before"],
    "d": [None, 1, 2],
    "x": [0.0, -0.0, float("nan")],
}
"""By column, values that it gets in turn."""


@pytest.fixture(autouse=True)
def small_files_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "FEWEST_ROWS", 2)


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    return LakeTable(str(tmp_path / "t"))


def changed(rows: pa.Table, ids: list[int], names: list[str]) -> tuple[pa.Table, pa.Table]:
    """The rows with these IDs, and the same in another order with other values."""
    old = rows.filter(pa.array(np.isin(rows["id"], ids)))
    new = old
    for name in names:
        values = NEW_VALUES[name] * (old.num_rows // 3 + 1)
        place, field = old.column_names.index(name), old.schema.field(name)
        new = new.set_column(place, field, pa.array(values[: old.num_rows], field.type))
    return old, new.take(pa.array(np.random.default_rng(1).permutation(old.num_rows)))


def updated(
    table: LakeTable, files: list[DataFile], old: pa.Table, new: pa.Table, driver_bytes: int
) -> Rewrite:
    snapshot = stored(table, *files).snapshot
    keys = old.select(["id"])
    return rewrite.rewrite_files(
        DuckdbScans(), table, snapshot, keys, new, driver_bytes, old_rows=old
    )


def check(table: LakeTable, files: list[DataFile], expected: pa.Table) -> None:
    """Arrow and DuckDB read the same rows."""
    order = [("id", "ascending")]
    expected = expected.cast(arrow_schema(COLUMNS)).sort_by(order)
    rows = ParquetFolder(table).read(files, COLUMNS).sort_by(order)
    places = [f"{table.uri}/{each.path}" for each in files]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        by_duckdb = connection.sql(f"FROM read_parquet({places}) ORDER BY id").to_arrow_table()
    for read in (rows, by_duckdb.cast(expected.schema)):
        assert read.drop_columns(["x"]).equals(expected.drop_columns(["x"]))
        assert list(map(repr, read["x"].to_pylist())) == list(map(repr, expected["x"].to_pylist()))


def with_rows(rows: pa.Table, old: pa.Table, new: pa.Table) -> pa.Table:
    rest = rows.filter(pa.array(~np.isin(rows["id"], old["id"])))
    return pa.concat_tables([rest, new])


@pytest.mark.parametrize("driver_bytes", [0, 1 << 30])
@pytest.mark.parametrize("names", [["n"], ["s", "d"], ["x", "n", "s", "d"]])
@pytest.mark.parametrize("writer", ["duckdb", "arrow"])
def test_columns_that_change_are_written(
    table: LakeTable, writer: str, names: list[str], driver_bytes: int
) -> None:
    file = by_duckdb(table)
    before = ParquetFolder(table).read([file], COLUMNS)
    if writer == "arrow":
        file = by_arrow(table, before)
    for ids in ([5], [0, 1, 4000, ROWS - 1], list(range(0, ROWS, 3))):
        old, new = changed(before, ids, names)
        result = updated(table, [file], old, new, driver_bytes)
        assert result.remove == (file,)
        assert len(result.add) == 1, "rows stay in their places"
        before = with_rows(before, old, new)
        [file] = result.add
        check(table, [file], before)
        assert_columns_are_copied(table, file, names)


def assert_columns_are_copied(table: LakeTable, file: DataFile, names: list[str]) -> None:
    """Row groups follow each other, as those need that read a part of a file; and the bounds of a
    file are those of its rows."""
    footer = pq.read_metadata(f"{table.uri}/{file.path}")
    end = 4
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        columns = [group.column(n) for n in range(group.num_columns)]
        starts = [each.dictionary_page_offset or each.data_page_offset for each in columns]
        assert starts[0] == end
        assert all(starts[i] + columns[i].total_compressed_size == starts[i + 1] for i in range(7))
        end = starts[-1] + columns[-1].total_compressed_size
    rows = pq.read_table(f"{table.uri}/{file.path}")
    assert file.nulls["n"] == rows["n"].null_count
    assert file.least["n"] == min(each for each in rows["n"].to_pylist() if each is not None)
    assert file.rows == rows.num_rows


def test_only_files_with_changed_rows_are_written(table: LakeTable) -> None:
    first = by_duckdb(table)
    rows = ParquetFolder(table).read([first], COLUMNS)
    others = rows.set_column(0, "id", pa.array(np.arange(ROWS, 2 * ROWS)))
    second = by_arrow(table, others)
    old, new = changed(others, [ROWS + 9], ["n"])
    result = updated(table, [first, second], old, new, 1 << 30)
    assert result.remove == (second,)
    both = pa.concat_tables([rows, with_rows(others.cast(rows.schema), old, new)])
    check(table, [first, *result.add], both)


def test_other_changes_are_written_as_before(
    table: LakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that come or go, keys that stand twice, and nested values."""
    monkeypatch.setattr(update_columns._FileUpdate, "write", None)
    file = by_duckdb(table)
    rows = ParquetFolder(table).read([file], COLUMNS)
    old, new = changed(rows, [1, 2, 3], ["n"])
    nested = new.set_column(7, new.schema.field("a"), pa.array([[1]] * 3, pa.list_(pa.int32())))
    for came in (new.slice(1), nested, new.slice(0, 0)):
        result = updated(table, [file], old, came, 1 << 30)
        check(table, list(result.add), with_rows(rows, old, came))
    twice = by_arrow(table, pa.concat_tables([rows, rows.slice(0, 2)]))
    result = updated(table, [twice], old, new, 1 << 30)
    rest = pa.concat_tables([rows, rows.slice(0, 2)])
    check(table, list(result.add), with_rows(rest, old, new))
