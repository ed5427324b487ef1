"""`viewkeep ingest`, `viewkeep quarantine`, and what `status` and `watch` tell of them."""

from pathlib import Path

import pytest

from tests.cli.lakes import done, viewkeep, write
from viewkeep import Keeper


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for files of changes, and a lake that the environment names."""
    monkeypatch.setenv("VIEWKEEP_LAKE", str(tmp_path / "lake"))
    keeper = Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=[(1, 10)])
    keeper.create_view("total", "SELECT sum(price) AS total FROM parts")
    place = tmp_path / "in"
    place.mkdir()
    return place


def test_files_and_quarantine(folder: Path) -> None:
    write(folder / "1.csv", "op,pid,price\ninsert,2,20\ninsert,1,1\n")
    write(folder / "2.csv", "op,pid")
    told = done("ingest", "parts", folder).out
    assert told.startswith("parts: version 1, 1 file, 2 records, 1 of them in quarantine, ")
    assert told.endswith("parts: 2.csv waits: its last line has no end\n")
    assert "parts: 1 record in quarantine" in done("status").out
    [record] = done("quarantine", "parts", "--json").json["records"]
    assert (record["name"], record["record"]) == ("1.csv", 3)
    assert "the key is there" in record["reason"]
    assert "the key is there" in done("quarantine", "parts").out.replace("\n", " ")
    assert done("quarantine", "parts", "--clear").out == "forgot 1 records\n"
    document = done("ingest", "parts", folder, "--json").json
    assert (document["files"], document["records"], document["error"]) == (0, 0, None)
    assert [each["name"] for each in document["waiting"]] == ["2.csv"]


def test_what_is_not_right_is_told(folder: Path) -> None:
    assert 'records="avro"' in viewkeep("ingest", "parts", folder, "--records", "avro").err
    assert "cannot read the folder" in viewkeep("ingest", "parts", folder / "x").err
    assert "name a table and a folder" in viewkeep("watch", "--ingest", "parts").err
    both = viewkeep("watch", "--ingest", "parts=a", "--ingest", "parts=b")
    assert both.code == 2
    assert 'table "parts" has two folders' in both.err
    for port in ("99999", "-1"):
        assert f"cannot serve figures at port {port}" in viewkeep("watch", "--serve", port).err
