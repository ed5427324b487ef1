"""`viewkeep apply` with changes of several tables: a folder, or one JSON document."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.lakes import done, viewkeep, write
from viewkeep import Keeper

ORDERS = {"id": "int", "placed": "date", "price": "decimal(8, 2)", "note": "string"}
LINES = {"id": "int", "line": "int", "weight": "double"}


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """Two tables in a lake that the environment names."""
    monkeypatch.setenv("VIEWKEEP_LAKE", str(tmp_path / "lake"))
    keeper = Keeper(tmp_path / "lake", durable=False)
    first = [(1, date(2026, 1, 1), Decimal("1.50"), "a")]
    keeper.create_table("orders", ORDERS, ["id"], rows=first)
    keeper.create_table("lines", LINES, ["id", "line"], rows=[(1, 1, 0.5)])
    return keeper


def test_a_folder(keeper: Keeper, tmp_path: Path) -> None:
    folder = tmp_path / "changes"
    folder.mkdir()
    write(folder / "orders.inserts.csv", "id,placed,price,note\n2,2026-02-01,2.25,\n")
    write(folder / "orders.deletes.csv", "id\n1\n")
    row = {"id": pa.array([2], pa.int32()), "line": pa.array([1], pa.int32()), "weight": [1.5]}
    pq.write_table(pa.table(row), folder / "lines.inserts.parquet")
    write(folder / ".hidden", "")
    assert done("apply", folder).out.splitlines() == [
        "1 insert: lines is at version 1",
        "1 delete, 1 insert: orders is at version 1",
    ]
    assert keeper.read("orders").to_pylist() == [
        {"id": 2, "placed": date(2026, 2, 1), "price": Decimal("2.25"), "note": None}
    ]
    write(folder / "readme.txt", "")
    assert "its name does not tell what it is" in viewkeep("apply", folder).err


def test_a_document(keeper: Keeper, tmp_path: Path) -> None:
    text = """{"orders": {"updates": [{"id": 1, "price": 9.99, "placed": "2026-03-01"}]},
               "lines": {"inserts": [{"id": 1, "line": 2, "weight": 0.1}],
                         "deletes": [{"id": 1, "line": 1}]}}"""
    found = done("apply", write(tmp_path / "changes.json", text), "--json").json
    assert found["tables"] == [
        {"table": "lines", "version": 1, "inserts": 1, "deletes": 1},
        {"table": "orders", "version": 1, "updates": 1},
    ]
    [order] = keeper.read("orders").to_pylist()
    assert (order["price"], order["placed"]) == (Decimal("9.99"), date(2026, 3, 1))
    assert keeper.read("lines").to_pylist() == [{"id": 1, "line": 2, "weight": 0.1}]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "it is no JSON"),
        ("[1]", 'expected {"table"'),
        ('{"orders": {"inserts": 1}}', "expected a list of rows"),
        ('{"orders": {"insert": []}}', 'did you mean "inserts"'),
        ('{"order": {}}', 'did you mean "orders"'),
        (
            '{"lines": {"deletes": [{"id": 1, "line": 1}]}, "orders": {"deletes": [{"id": 5}]}}',
            "id = 5",
        ),
    ],
)
def test_documents_that_change_nothing(
    keeper: Keeper, tmp_path: Path, text: str, problem: str
) -> None:
    answer = viewkeep("apply", write(tmp_path / "changes.json", text))
    assert answer.code in (1, 2)
    assert problem in answer.err
    assert (keeper.read("orders").num_rows, keeper.read("lines").num_rows) == (1, 1)


def test_json_lines(keeper: Keeper, tmp_path: Path) -> None:
    lines = """{"id": 2, "placed": "2026-02-01", "price": 2.25, "note": "7"}

{"id": 3, "placed": null, "price": null, "note": null}
"""
    done("apply", "orders", "--inserts", write(tmp_path / "new.jsonl", lines))
    assert keeper.read("orders").to_pylist()[1:] == [
        {"id": 2, "placed": date(2026, 2, 1), "price": Decimal("2.25"), "note": "7"},
        {"id": 3, "placed": None, "price": None, "note": None},
    ]
    bad_lines = {
        '{"id": 4}\n{"id": ': "line 2 is no JSON",
        '{"id": 4}\n[5]': "line 2: expected a row",
        '{"id": 4, "placed": "soon"}': "line 1",
        '{"id": 4, "nope": 1}': "nope",
    }
    for text, problem in bad_lines.items():
        answer = viewkeep("apply", "orders", "--inserts", write(tmp_path / "bad.ndjson", text))
        assert answer.code
        assert problem in answer.err, answer.err
    assert keeper.read("orders").num_rows == 3
