"""Hostile files: bytes that are no text, broken headers, values that name no row.

What does not fit is told or in quarantine; the rest is taken in.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from viewkeep import Keeper
from viewkeep.lake.intake import IngestReport, WaitingFile

POSTGRES = {"connector": "postgresql", "name": "shop"}


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("parts", {"pid": "int", "name": "string"}, ["pid"])
    (tmp_path / "in").mkdir()
    return keeper


def ingest(keeper: Keeper, tmp_path: Path, name: str, content: bytes, **kind: str) -> IngestReport:
    (tmp_path / "in" / name).write_bytes(content)
    return keeper.ingest("parts", tmp_path / "in", **kind)


def pids(keeper: Keeper) -> list[int]:
    return sorted(keeper.read("parts")["pid"].to_pylist())


def reasons(keeper: Keeper) -> list[str]:
    listed = sorted(keeper.quarantine("parts").to_pylist(), key=lambda each: each["record"])
    return [each["reason"] for each in listed]


@pytest.mark.parametrize("name", [b"\\ud800", b"\xff"])
def test_columns_whose_names_are_no_text(keeper: Keeper, tmp_path: Path, name: bytes) -> None:
    bad = b'{"op": "insert", "pid": 1, "name": "a", "%s": 1}\n' % name
    good = b'{"op": "insert", "pid": 2, "name": "b"}\n'
    report = ingest(keeper, tmp_path, "a.jsonl", bad + good)
    assert (report.records, report.rejected, pids(keeper)) == (2, 1, [2])
    assert reasons(keeper)[0].startswith('no column "\\')


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"op,pid,n\xffme", 'no column "n\\xffme"'),
        (b"op,pid,name\rinsert,7,x", "its header is not valid CSV"),
        (b'"op,pid,name', "its header is not valid CSV: unexpected end of data"),
        (b"op,pid,pid", "its header names pid twice"),
        (b"", "2 values"),
    ],
)
def test_headers_that_are_none(keeper: Keeper, tmp_path: Path, header: bytes, reason: str) -> None:
    lines = b"insert,1,a\ninsert,2,b\n" if header else b"1,a\n"
    report = ingest(keeper, tmp_path, "a.csv", header + b"\n" + lines)
    assert report.records == report.rejected == lines.count(b"\n")
    assert pids(keeper) == []
    assert all(each.startswith(reason) for each in reasons(keeper))
    later = ingest(keeper, tmp_path, "b.csv", b"op,pid,name\ninsert,1,a\n")
    assert (later.records, pids(keeper)) == (1, [1])


def test_a_file_whose_name_is_no_text_waits(keeper: Keeper, tmp_path: Path) -> None:
    place = os.fsencode(tmp_path / "in") + b"/a\xff.csv"
    try:
        Path(os.fsdecode(place)).write_bytes(b"op,pid,name\ninsert,1,a\n")
    except OSError as error:
        pytest.skip(f"the file system has no such names: {error}")
    report = ingest(keeper, tmp_path, "b.csv", b"op,pid,name\ninsert,2,b\n")
    assert report.waiting == (WaitingFile("a\\xff.csv", "its name is no text in UTF-8; rename it"),)
    assert pids(keeper) == [2]


def test_long_fields_do_not_end_where_a_line_does(keeper: Keeper, tmp_path: Path) -> None:
    long = "x" * 200_000 + "\ninsert,9,stray\n"
    report = ingest(
        keeper, tmp_path, "a.csv", f'op,pid,name\ninsert,1,"{long}"\ninsert,2,b\n'.encode()
    )
    assert (report.records, report.rejected, pids(keeper)) == (2, 0, [1, 2])
    assert len(keeper.read("parts").filter(keeper.read("parts")["pid"].to_numpy() == 1)) == 1


def test_a_mark_of_the_encoding_is_no_part_of_the_first_line(
    keeper: Keeper, tmp_path: Path
) -> None:
    content = b'\xef\xbb\xbf{"op": "insert", "pid": 1, "name": "a"}\n'
    assert ingest(keeper, tmp_path, "a.jsonl", content).rejected == 0
    assert pids(keeper) == [1]


def event(lsn: int, after: dict[str, Any], **source: Any) -> bytes:
    document = {"op": "u", "before": None, "after": after, "source": {**POSTGRES, **source}}
    document["source"]["lsn"] = lsn
    return json.dumps(document).encode() + b"\n"


def test_envelopes_that_name_no_row_or_no_source(keeper: Keeper, tmp_path: Path) -> None:
    content = (
        event(1, {"pid": "__debezium_unavailable_value", "name": "a"})
        + event(2, {"pid": 2, "name": "b"}, name="\ud800")
        + event(3, {"pid": 3, "name": "c"})
    )
    report = ingest(keeper, tmp_path, "a.jsonl", content, records="debezium")
    assert (report.records, report.rejected, pids(keeper)) == (3, 2, [2])
    untold, other = reasons(keeper)
    assert untold == "no value for pid, which is the key"
    assert "of another source" in other
    assert "\\ud800" in other
