"""Files whose untouched row groups are copied as bytes have the same rows, for every reader."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from viewkeep.execute.duckdb.scans import DuckdbScans
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files import spliced_rest
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import DataFile, LakeTable
from viewkeep.tables.log.snapshots import Snapshot
from viewkeep.tables.relations import StoredRows

GROUP, ROWS = 2048, 20_000
COLUMNS = Table(
    {
        "id": "bigint",
        "n": "int",
        "s": "string",
        "d": "decimal(12,2)",
        "day": "date",
        "moment": "timestamp",
        "x": "double",
        "a": "array<int>",
    }
).columns
QUERY = f"""
    SELECT i AS id, CASE WHEN i % 7 > 0 THEN (i % 50)::INT END AS n,
        CASE WHEN i % 5 > 0 THEN 'text ' || i % 90 END AS s, (i / 4)::DECIMAL(12, 2) AS d,
        DATE '2020-01-01' + (i % 400)::INT AS day,
        TIMESTAMPTZ '2020-01-01 00:00:00+00' + INTERVAL (i) MINUTE AS moment, i / 3.0::DOUBLE AS x,
        CASE WHEN i % 3 > 0 THEN [i::INT, NULL] END AS a
    FROM range({ROWS}) t(i)
"""


@pytest.fixture(autouse=True)
def few_groups_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spliced_rest, "FEWEST_GROUPS", 2)
    monkeypatch.setattr(spliced_rest, "SMALL_GROUP", 500)


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    return LakeTable(str(tmp_path / "t"))


def by_duckdb(table: LakeTable, text: str = QUERY, name: str = "by_duckdb") -> DataFile:
    ParquetFolder(table).make("")
    place = f"{table.uri}/{name}.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"COPY ({text}) TO '{place}' (FORMAT parquet, ROW_GROUP_SIZE {GROUP})")
    return ParquetFolder(table).read_described(f"{name}.parquet")


def by_arrow(table: LakeTable, rows: pa.Table) -> DataFile:
    """With numbers stored as DuckDB stores them."""
    place, about = f"{table.uri}/arrow.parquet", {"store_decimal_as_integer": True}
    pq.write_table(rows, place, row_group_size=GROUP, write_page_index=True, **about)
    return ParquetFolder(table).read_described("arrow.parquet")


def stored(table: LakeTable, *files: DataFile, fields: tuple[Field, ...] = COLUMNS) -> StoredRows:
    return StoredRows.whole(table, Snapshot(table.uri, 0, fields, files))


def ids(values: Any) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def spliced(rows: StoredRows, gone: Any) -> list[DataFile] | None:
    return DuckdbScans()._write_spliced_file(rows, ids(gone))


def check(table: LakeTable, written: list[DataFile] | None, expected: pa.Table) -> None:
    """Arrow, DuckDB and the footer tell the same rows."""
    assert written is not None
    [file] = written
    place = f"{table.uri}/{file.path}"
    order = [("id", "ascending")]
    expected = expected.cast(arrow_schema(COLUMNS)).sort_by(order)
    assert ParquetFolder(table).read(written, COLUMNS).sort_by(order).equals(expected)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql(f"FROM '{place}' ORDER BY id").to_arrow_table()
    assert found.cast(expected.schema).equals(expected)
    assert file.rows == expected.num_rows
    assert (file.least["id"], file.greatest["id"]) == (min(ids_of(expected)), max(ids_of(expected)))
    assert file.nulls["n"] == expected["n"].null_count


def ids_of(rows: pa.Table) -> list[int]:
    values: list[int] = rows["id"].to_pylist()
    return values


@pytest.mark.parametrize("gone", [[5], [0, 1, 4000, ROWS - 1], list(range(6000, 6100)), [-1]])
def test_row_groups_of_duckdb_are_copied(table: LakeTable, gone: list[int]) -> None:
    rows = stored(table, by_duckdb(table))
    before = ParquetFolder(table).read(rows.files, COLUMNS)
    written = spliced(rows, gone)
    check(table, written, before.filter(pa.array(~np.isin(before["id"], gone))))


def test_row_groups_of_several_writers_come_into_one_file(table: LakeTable) -> None:
    """Also a file that was put together before, and one with other types whose few rows go."""
    first = by_duckdb(table)
    again = spliced(stored(table, first), [77])
    assert again is not None
    other = by_duckdb(table, f"SELECT * REPLACE (id + {ROWS} AS id) FROM ({QUERY})", "other")
    small = by_duckdb(table, f"SELECT * REPLACE (-id AS id) FROM ({QUERY}) WHERE id < 30", "small")
    few = ParquetFolder(table).write(ParquetFolder(table).read([small], COLUMNS))
    arrow = by_arrow(table, ParquetFolder(table).read([other], COLUMNS))
    gone = [*range(-20, 0), 3000, ROWS + 9000]
    files = (few, *again, arrow)
    before = ParquetFolder(table).read(files, COLUMNS)
    written = spliced(stored(table, *files), gone)
    check(table, written, before.filter(pa.array(~np.isin(before["id"], gone))))
    assert written is not None
    footer = pq.read_metadata(f"{table.uri}/{written[0].path}")
    sizes = [footer.row_group(n).num_rows for n in range(footer.num_row_groups)]
    assert max(sizes) == GROUP
    assert sum(size < GROUP - 10 for size in sizes) <= 3, "small row groups become one"


def test_what_touches_most_row_groups_is_left_to_the_engine(table: LakeTable) -> None:
    rows = stored(table, by_duckdb(table))
    assert spliced(rows, list(range(0, ROWS, 1000))) is None
    written = DuckdbScans().write_without(rows, ids(list(range(0, ROWS, 1000))))
    assert sum(each.rows for each in written) == ROWS - ROWS // 1000


def test_files_that_are_not_alike_are_left_to_the_engine(table: LakeTable) -> None:
    """A column of another width, and one that a file does not have."""
    first, names = by_duckdb(table), ["id", "n"]
    wide = by_duckdb(table, f"SELECT -1 - id AS id, n::BIGINT AS n FROM ({QUERY})", "wide")
    narrow = by_duckdb(table, f"SELECT id, n FROM ({QUERY})", "narrow")
    fields = tuple(each for each in COLUMNS if each.name in names)
    assert spliced(stored(table, narrow, wide, fields=fields), [5]) is None
    assert spliced(stored(table, first, narrow), [5]) is None
    parquet = sorted(each.name for each in Path(table.uri).glob("*.parquet"))
    assert parquet == ["by_duckdb.parquet", "narrow.parquet", "wide.parquet"], "nothing is left"
