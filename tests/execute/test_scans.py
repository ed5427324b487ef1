"""What storage asks of an engine: the same answers of both."""

from collections import Counter
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from viewkeep.execute.duckdb.scans import DuckdbScans
from viewkeep.execute.scans import SizedScans
from viewkeep.query.tables import Table
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.scans import SIDE, Scans
from viewkeep.tables.log.delta import LakeTable, StorageError
from viewkeep.tables.log.snapshots import Snapshot
from viewkeep.tables.relations import StoredRows

NAN = float("nan")
T = Table(
    {
        "k": "int",
        "x": "double",
        "s": "string",
        "m": "decimal(20, 3)",
        "at": "timestamp",
        "d": "date",
        "b": "binary",
        "a": "array<int>",
        "r": "struct<u:int,v:string>",
        "p": "map<string,int>",
    }
)
ROWS: list[tuple[Any, ...]] = [
    (1, 0.0, "a", Decimal("1.500"), datetime(2026, 1, 1), date(2026, 1, 1), b"x", (1,), (1, "v"),
     (("k", 1),)),
    (1, NAN, None, None, None, None, None, None, None, None),
    (None, -0.0, "b", Decimal("-0.001"), datetime(1969, 1, 1), date(1, 1, 1), b"", (), (None, ""),
     ()),
    (None, None, "b", None, None, None, None, (None,), None, (("k", None),)),
]  # fmt: skip


@pytest.fixture(params=["duckdb", "spark"])
def scans(request: pytest.FixtureRequest) -> Scans:
    if request.param == "duckdb":
        return DuckdbScans()
    from viewkeep.execute.spark.scans import SparkScans
    from viewkeep.execute.spark.session import lake_session

    return SparkScans(lake_session(request.getfixturevalue("spark")))


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    return LakeTable(str(tmp_path / "t"))


def stored(table: LakeTable, *files: list[tuple[Any, ...]]) -> StoredRows:
    """Rows in files; all but the first one hold as many rows that are deleted."""
    folder = ParquetFolder(table)
    written = [folder.write(to_arrow(T.columns, rows)) for rows in files[:1]]
    for number, rows in enumerate(files[1:]):
        places = np.arange(len(rows)) + (len(rows) if number % 2 else 0)
        [vector] = folder.write_vectors([places])
        file = folder.write(to_arrow(T.columns, [*rows, *rows]))
        written.append(replace(file, rows=len(rows), vector=vector))
    return StoredRows.whole(table, Snapshot(table.uri, 0, T.columns, tuple(written)))


def counted(rows: list[tuple[Any, ...]]) -> Counter[str]:
    """NaN equals itself, and 0.0 is -0.0."""
    return Counter(repr(row).replace("-0.0,", "0.0,") for row in rows)


KEYS = [
    ({"k": [1, None], "x": [NAN, 0.0]}, [1, 2]),
    ({"k": [None]}, [2, 3]),
    ({"s": [None, "a"], "m": [None, Decimal("1.500")]}, [0, 1]),
    ({"at": [datetime(1969, 1, 1)], "d": [date(1, 1, 1)], "b": [b""]}, [2]),
    ({"k": [7]}, []),
]


@pytest.mark.parametrize(("keys", "places"), KEYS)
def test_rows_by_key(
    scans: Scans, table: LakeTable, keys: dict[str, list[Any]], places: list[int]
) -> None:
    rows = stored(table, ROWS[:2], ROWS[2:])
    fields = [field for field in T.columns if field.name in keys]
    listed = to_arrow(fields, list(zip(*(keys[f.name] for f in fields), strict=True)))
    near = to_rows(scans.rows_near(rows, listed))
    assert counted([ROWS[place] for place in places]) <= counted(near) <= counted(ROWS)
    files = scans.write_without(rows, listed)
    kept = to_rows(ParquetFolder(table).read(files, T.columns))
    assert counted(kept) == counted([row for n, row in enumerate(ROWS) if n not in places])


def test_no_columns_are_a_key_of_all_rows(scans: Scans, table: LakeTable) -> None:
    rows, some = stored(table, ROWS), to_arrow(T.columns, ROWS[:1]).select([])
    assert scans.rows_near(rows, some).num_rows == len(ROWS)
    assert scans.write_without(rows, some) == []


def test_rows_that_only_one_side_has(scans: Scans, table: LakeTable) -> None:
    old, new = stored(table, ROWS, ROWS[:1]), stored(table, ROWS[1:], ROWS[2:])
    found = to_rows(scans.unpaired(old, new, None))
    gone = [row[:-1] for row in found if row[-1] == "old"]
    came = [row[:-1] for row in found if row[-1] == "new"]
    assert counted(gone) == counted(ROWS[:1] * 2)
    assert counted(came) == counted(ROWS[2:])
    assert scans.unpaired(old, new, 1).num_rows >= 1
    assert scans.unpaired(old, old, None).schema.names == [*T.names, SIDE]
    assert scans.unpaired(stored(table), new, None).num_rows == 2 * len(ROWS) - 3


def test_keys_that_stand_twice(scans: Scans, table: LakeTable) -> None:
    rows = stored(table, ROWS[:2], ROWS[2:])
    assert scans.repeated_key(rows, ["k", "x"]) is None
    assert scans.repeated_key(rows, ["k"]) in ((1,), (None,))
    assert scans.repeated_key(rows, ["s"]) == ("b",)


def test_columns_with_nulls(scans: Scans, table: LakeTable) -> None:
    assert scans.null_columns(stored(table, ROWS[:1]), T.names) == []
    assert scans.null_columns(stored(table, ROWS[:1], ROWS[2:]), ["s", "k", "d"]) == ["k", "d"]
    assert scans.null_columns(stored(table), ["s"]) == []


def test_a_file_that_is_gone_is_named(scans: Scans, table: LakeTable) -> None:
    rows = stored(table, ROWS)
    Path(rows.files[0].location(table.uri)).unlink()
    with pytest.raises(StorageError, match="gone, probably vacuumed"):
        scans.rows_near(rows, pa.table({"k": pa.array([1], pa.int32())}))


class Named:
    """Scans that answer with their name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def repeated_key(self, rows: StoredRows, key: Any) -> Any:
        return (self.name,)


def test_the_bytes_to_read_choose_the_engine(table: LakeTable) -> None:
    rows: Any = stored(table, ROWS)
    small, large = Named("small"), Named("large")
    for limit, name in ((rows.size, "small"), (rows.size - 1, "large")):
        chosen = SizedScans(small, large, limit)  # type: ignore[arg-type]  # a part of both
        assert chosen.repeated_key(rows, ["k"]) == (name,)
