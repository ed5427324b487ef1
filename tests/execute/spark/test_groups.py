"""Row groups are left out only where they have none of the keys."""

import io
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeep.tables.files import row_groups as groups
from viewkeep.tables.files.row_groups import groups_near

ROWS = {"id": st.none() | st.integers(0, 30), "name": st.none() | st.sampled_from("abcdäz€")}
TYPES = {"id": pa.int32(), "name": pa.string()}


def footer(table: pa.Table, size: int) -> Any:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=size)
    return pq.read_metadata(file)


def found(table: pa.Table, size: int, *keys: dict[str, list[Any]]) -> list[int]:
    tables = [
        pa.table({n: pa.array(v, table.schema.field(n).type) for n, v in each.items()})
        for each in keys
    ]
    return [number for some in groups_near(footer(table, size), tables) for number in some]


@given(st.lists(st.fixed_dictionaries(ROWS), min_size=1), st.lists(st.fixed_dictionaries(ROWS)))
def test_no_row_with_a_key_is_left_out(rows: list[Any], keys: list[Any]) -> None:
    table = pa.table({n: pa.array([row[n] for row in rows], kind) for n, kind in TYPES.items()})
    chosen = found(table, 3, {n: [key[n] for key in keys] for n in TYPES})
    for place, row in enumerate(rows):
        assert row not in keys or place // 3 in chosen


def test_bounds_rule_groups_out() -> None:
    table = pa.table({"id": pa.array(range(40), pa.int32())})
    assert found(table, 10, {"id": [3, 25, 99]}) == [0, 2]
    assert found(table, 10, {"id": [3]}, {"id": [39]}) == [0, 3]
    assert found(table, 10, {"id": []}) == []
    days = pa.table({"day": pa.array([date(2026, 1, 1 + n) for n in range(9)], pa.date32())})
    assert found(days, 3, {"day": [date(2026, 1, 5)]}) == [1]


def test_what_has_no_bounds_is_read() -> None:
    table = pa.table({"id": pa.array([None] * 4 + [5] * 4, pa.int32())})
    assert found(table, 4, {"id": [1]}) == [0]  # all NULL: no bounds
    assert found(table, 4, {"id": [None]}) == [0]
    keys = [pa.table({"other": pa.array([1])})]
    assert list(groups_near(footer(table, 4), keys)) == [[0, 1]]  # a column of the partition


def test_many_rows_come_in_several_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "ROWS_AT_ONCE", 10)
    table = pa.table({"id": pa.array([1] * 25, pa.int32())})
    keys = [pa.table({"id": pa.array([1], pa.int32())})]
    assert list(groups_near(footer(table, 5), keys)) == [[0, 1], [2, 3], [4]]
