"""Log entries that Viewkeep writes: deltalake reads from them what Viewkeep remembers of them."""

import errno
import os
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from viewkeep.query.types.data_types import Field, parse_type
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log import delta, deltalake_commits, read_log
from viewkeep.tables.log.delta import ConflictError, DataFile, LakeTable, Snapshot
from viewkeep.tables.log.memory import RecentSnapshots
from viewkeep.tables.log.write_entry import CHECKPOINTS

TYPES = ("int", "bigint", "string", "date", "double", "timestamp", "timestamp_ntz", "decimal(9,2)")
FIELDS = (
    Field("id", parse_type("int"), nullable=False),
    *(Field(f"c{n}", parse_type(each)) for n, each in enumerate((*TYPES, "array<int>"))),
)
PLAIN = FIELDS[:1]


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    return LakeTable(str(tmp_path / "t"))


@pytest.fixture
def by_deltalake(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commits that deltalake makes."""
    calls: list[str] = []
    create, commit = deltalake_commits.create_by_deltalake, deltalake_commits.commit_by_deltalake
    for name, made in (("create_by_deltalake", create), ("commit_by_deltalake", commit)):
        told = lambda *given, name=name, made=made: (calls.append(name), made(*given))  # noqa: E731
        monkeypatch.setattr(delta, name, told)
    return calls


def written(table: LakeTable, *numbers: int) -> DataFile:
    """A file of rows with these numbers; the row of 0 is NULL but for its number."""
    values = {
        "c0": [n * 7 for n in numbers],
        "c1": [n << 40 for n in numbers],
        "c2": [f"é{n}" * (1 + 40 * n) for n in numbers],
        "c3": [date(2026, 1, 1 + n) for n in numbers],
        "c8": [[n, None] for n in numbers],
    }
    schema = arrow_schema(FIELDS)
    columns = [
        pa.array([v if n else None for n, v in zip(numbers, values[f.name], strict=True)], f.type)
        if f.name in values
        else pa.nulls(len(numbers), f.type)
        for f in list(schema)[1:]
    ]
    return ParquetFolder(table).write(
        pa.Table.from_arrays([pa.array(numbers, pa.int32()), *columns], schema=schema)
    )


def as_value(snapshot: Snapshot) -> tuple[object, ...]:
    """A snapshot, whatever order its files have."""
    files = sorted(snapshot.files, key=lambda each: each.path)
    return (snapshot.version, snapshot.fields, files, snapshot.identity, snapshot.is_plain)


def read_anew(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """What a process that knows nothing reads."""
    with monkeypatch.context() as patch:
        patch.setattr(read_log, "RECENT", RecentSnapshots(10))
        return table.snapshot()


def test_a_version_is_remembered_as_it_is_read(
    table: LakeTable, by_deltalake: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = written(table, 0, 1), written(table, 2), written(table, 0)
    steps = (
        lambda: table.create(FIELDS, [first], {"create": 'a "t"\né'}, "Ein\nSatz"),
        lambda: table.commit(0, [second], [], {"apply": True}),
        lambda: table.commit(1, [third], [first], {"changes": None}),
        lambda: table.replace(2, table.snapshot().fields, [first], {"n": [1, None]}),
        lambda: table.commit(3, [], [], None),
    )
    for number, step in enumerate(steps):
        step()
        known = table.snapshot()
        assert known.version == number
        assert as_value(known) == as_value(read_anew(table, monkeypatch))
    assert by_deltalake == []
    [newest, overwritten, *_, created] = table.log(-1)
    assert (created.notes, created.operation) == ({"create": 'a "t"\né'}, "CREATE TABLE")
    assert (overwritten.notes, newest.notes) == ({"n": [1, None]}, None)
    opened = DeltaTable(table.uri)
    assert opened.metadata().description == "Ein\nSatz"
    assert opened.to_pyarrow_table().column("id").to_pylist() == [0, 1]
    opened.optimize.compact()


def marked(table: LakeTable, file: DataFile, *places: int) -> DataFile:
    """A file of which some rows are deleted."""
    [vector] = ParquetFolder(table).write_vectors([np.array(places)])
    return replace(file, rows=file.stored_rows - len(places), vector=vector)


def test_deletion_vectors_are_remembered_as_they_are_read(
    table: LakeTable, by_deltalake: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marked, marked again, written anew, with other columns and with a checkpoint."""
    monkeypatch.setattr("viewkeep.tables.log.deletion_vectors.INLINE_BYTES", 30)
    monkeypatch.setattr("viewkeep.tables.log.write_entry.CHECKPOINTS", 4)
    first, second = written(table, 0, 1, 2, 3), written(table, 4, 5)
    once, twice = marked(table, first, 1), marked(table, first, 1, 3)
    wider = (*FIELDS, Field("more", parse_type("double")))
    steps = (
        lambda: table.create(FIELDS, [first], {}, "", has_vectors=True),
        lambda: table.commit(0, [once, second], [first], {}),
        lambda: table.commit(1, [twice], [once], {}),
        lambda: table.commit(2, [marked(table, second, 0)], [second], {}),
        lambda: table.commit(3, [], [twice], {}),
        lambda: table.replace(4, wider, [once], {}, has_vectors=True),
        lambda: table.replace(5, wider, [first], {}),
    )
    for number, step in enumerate(steps):
        step()
        known = table.snapshot()
        assert known.version == number
        assert as_value(known) == as_value(read_anew(table, monkeypatch))
        counted = QueryBuilder().register("t", DeltaTable(table.uri)).execute("SELECT * FROM t")
        assert pa.table(counted).num_rows == known.rows
    assert by_deltalake == []
    assert os.path.exists(f"{table.uri}/_delta_log/{3:020d}.checkpoint.parquet")


def test_whoever_comes_second_has_a_conflict(table: LakeTable) -> None:
    table.create(PLAIN, [], {}, "")
    with pytest.raises(ConflictError, match="there is a table already"):
        LakeTable(table.uri).create(PLAIN, [], {}, "")
    table.commit(0, [], [], {"n": 1})
    with pytest.raises(ConflictError, match="another process committed first"):
        table.commit(0, [], [], {"n": 2})
    assert table.version() == 1
    assert not [each for each in os.listdir(f"{table.uri}/_delta_log") if each.endswith("tmp")]


def test_a_version_that_is_gone_is_not_followed(table: LakeTable) -> None:
    """A commit after it would leave a hole in the log."""
    table.create(PLAIN, [], {}, "")
    table.commit(0, [], [], {"n": 1})
    os.unlink(f"{table.uri}/_delta_log/{1:020d}.json")
    with pytest.raises(delta.StorageError, match="there is no version 1"):
        table.commit(1, [], [], {"n": 2})
    assert len(os.listdir(f"{table.uri}/_delta_log")) == 1


def test_checkpoints_are_written(table: LakeTable, by_deltalake: list[str]) -> None:
    table.create(PLAIN, [], {}, "")
    for start in range(CHECKPOINTS + 1):
        table.commit(start, [], [], {"n": start})
    assert by_deltalake == ["commit_by_deltalake"]
    assert os.path.exists(f"{table.uri}/_delta_log/{CHECKPOINTS - 1:020d}.checkpoint.parquet")
    assert DeltaTable(table.uri).version() == CHECKPOINTS + 1


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.appendOnly": "true"},
        {"delta.checkpointInterval": "3"},
    ],
    ids=str,
)
def test_a_table_that_asks_more_of_writers_is_left_to_deltalake(
    table: LakeTable, by_deltalake: list[str], properties: dict[str, str]
) -> None:
    table.create(PLAIN, [], {}, "")
    DeltaTable(table.uri).alter.set_table_properties(properties)
    table.commit(1, [], [], {"n": 1})
    assert by_deltalake == ["commit_by_deltalake"]


def test_a_feed_is_told_by_own_entries(table: LakeTable, by_deltalake: list[str]) -> None:
    table.create(PLAIN, [], {}, "")
    DeltaTable(table.uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    assert table.feeds(table.snapshot())
    file = DataFile("_change_data/cdc-1.parquet", 7, 1)
    Path(table.uri, "_change_data").mkdir()
    Path(table.uri, file.path).touch()
    table.commit(1, [], [], {"n": 1}, [file])
    assert by_deltalake == []
    assert table.log(1)[0].fed == (file.path,)
    assert not DeltaTable(table.uri).file_uris()


def test_constraints_are_left_to_deltalake(table: LakeTable, by_deltalake: list[str]) -> None:
    table.create(PLAIN, [], {}, "")
    DeltaTable(table.uri).alter.add_constraint({"positive": "id > 0"})
    table.commit(1, [], [], {"n": 1})
    assert by_deltalake == ["commit_by_deltalake"]


def test_a_file_system_without_links_is_left_to_deltalake(
    table: LakeTable, by_deltalake: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    table.create(PLAIN, [], {}, "")
    table.commit(0, [], [], {"n": 1})
    assert by_deltalake == ["create_by_deltalake", "commit_by_deltalake"]
    assert table.version() == 1
