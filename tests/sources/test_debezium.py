"""Envelopes of Debezium: any order, any repetition, the rows of the greatest positions."""

import json
from base64 import b64encode
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.keeper.lakes import check, check_replayed
from viewkeep import Keeper
from viewkeep.errors import SchemaError
from viewkeep.sources.debezium import position_of

SOURCE = {"connector": "postgresql", "name": "shop", "db": "shop", "table": "parts"}
Row = dict[str, Any]


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("parts", {"price": "int", "pid": "int", "lot": "int"}, ["lot", "pid"])
    keeper.create_view("total", "SELECT lot, sum(price) AS total FROM parts GROUP BY lot")
    (tmp_path / "in").mkdir()
    return keeper


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "in"


def event(op: str, lsn: int, before: Row | None, after: Row | None, **source: Any) -> Row:
    about = {**SOURCE, "lsn": lsn, **source}
    return {"op": op, "before": before, "after": after, "source": about, "ts_ms": 1}


def part(pid: int, price: int | None = None) -> Row:
    return {"pid": pid, "price": price, "lot": pid % 2}


def write(folder: Path, name: str, *messages: Any) -> None:
    (folder / name).write_text("".join(json.dumps(each) + "\n" for each in messages))


def rows(keeper: Keeper) -> dict[int, int]:
    return {row["pid"]: row["price"] for row in keeper.read("parts").to_pylist()}


def reasons(keeper: Keeper) -> list[str]:
    listed = sorted(keeper.quarantine("parts").to_pylist(), key=lambda each: each["record"])
    return [each["reason"] for each in listed]


def test_wrapped_and_plain_envelopes_and_tombstones(keeper: Keeper, folder: Path) -> None:
    write(
        folder,
        "a.jsonl",
        event("r", 1, None, part(1, 10)),
        {"schema": {}, "payload": event("c", 2, None, part(2, 20))},
        {"key": {"pid": 3, "lot": 1}, "value": json.dumps(event("c", 3, None, part(3, 30)))},
        event("u", 4, part(1, 10), part(1, 11)),
        event("d", 5, part(2), None),
        None,
        {"schema": None, "payload": None},
        {"key": {"pid": 2, "lot": 0}, "value": None},
        {"key": {"payload": {"pid": 3, "lot": 1}}, "value": event("d", 6, None, None)},
        event("m", 7, None, None),
    )
    report = keeper.ingest("parts", folder, records="debezium")
    assert (report.records, report.rejected, report.skipped) == (10, 0, 4)
    assert rows(keeper) == {1: 11}
    keeper.refresh()
    check(keeper)


def test_late_and_repeated_events_change_nothing(keeper: Keeper, folder: Path) -> None:
    write(folder, "b.jsonl", event("u", 9, None, part(1, 9)), event("d", 8, part(2), None))
    keeper.ingest("parts", folder, records="debezium")
    late = [event("c", 3, None, part(1, 3)), event("c", 4, None, part(2, 4))]
    write(folder, "a.jsonl", *late, event("u", 9, None, part(1, 9)), event("d", 5, part(3), None))
    report = keeper.ingest("parts", folder, records="debezium")
    assert (report.records, report.skipped, report.rejected) == (4, 3, 0)
    assert rows(keeper) == {1: 9}
    write(folder, "c.jsonl", event("c", 2, None, part(3, 2)), event("c", 10, None, part(2, 10)))
    keeper.ingest("parts", folder, records="debezium")
    assert rows(keeper) == {1: 9, 2: 10}


def test_any_order_gives_the_same_rows(keeper: Keeper, folder: Path) -> None:
    rng, model, events = Random(3), dict[int, int](), list[Row]()
    for lsn in range(60):
        pid = rng.randrange(6)
        if pid in model and rng.random() < 0.4:
            events.append(event("d", lsn, part(pid, model.pop(pid)), None))
        else:
            model[pid] = lsn
            events.append(event("u", lsn, None, part(pid, lsn)))
    messages: list[Any] = [*events, *rng.sample(events, 30), None, None]
    rng.shuffle(messages)
    for number in range(0, len(messages), 23):
        write(folder, f"{rng.random()}.jsonl", *messages[number : number + 23])
        keeper.ingest("parts", folder, records="debezium")
        keeper.refresh()
    assert rows(keeper) == model
    assert reasons(keeper) == []
    check(keeper)
    check_replayed(keeper)


def test_what_is_not_whole_goes_to_quarantine(keeper: Keeper, folder: Path) -> None:
    write(
        folder,
        "a.jsonl",
        {"before": None, "after": part(1, 1)},
        event("x", 1, None, part(1, 1)),
        event("c", 1, None, None),
        event("d", 1, None, None),
        event("t", 1, None, None),
        {"op": "c", "after": part(1, 1)},
        {"op": "c", "after": part(1, 1), "source": SOURCE},
        event("c", 1, None, {"pid": 1, "lot": 1}),
        event("c", 1, None, {**part(1, 1), "colour": "red"}),
        event("c", 1, None, {**part(1), "price": "dear"}),
        event("u", 1, None, {**part(1), "price": "__debezium_unavailable_value"}),
        {"schema": {"fields": 7}, "payload": event("c", 1, None, part(1, 1))},
        {"payload": 3},
        7,
        event("c", 2, None, part(1, 1)),
        event("c", 3, None, part(2, 1), db="other"),
    )
    (folder / "b.jsonl").write_text('{"op": "c", "after"')  # it waits, and holds nobody back
    write(folder, "c.jsonl", event("c", 3, None, part(3, 3)))
    (folder / "d.csv").write_text("op,pid\n")
    report = keeper.ingest("parts", folder, records="debezium")
    assert (report.records, report.rejected) == (17, 15)
    assert {each.name for each in report.waiting} == {"b.jsonl", "d.csv"}
    expected = ['no "op"', "none of c", 'no "after"', 'no "before"', "truncated", 'no "source"']
    expected += ["no position", "no value for price", 'no column "colour"', "dear", "no value for"]
    expected += ['"schema" cannot be read', "no object", "expected an object", "another source"]
    told = reasons(keeper)
    assert len(told) == len(expected)
    for reason, wanted in zip(told, expected, strict=True):
        assert wanted in reason
    assert rows(keeper) == {1: 1, 3: 3}


def test_a_value_that_is_not_told_stays(keeper: Keeper, folder: Path) -> None:
    write(folder, "a.jsonl", event("c", 1, None, part(1, 1)))
    unknown = {**part(1), "price": "__debezium_unavailable_value"}
    write(folder, "b.jsonl", event("u", 2, None, unknown))
    assert keeper.ingest("parts", folder, records="debezium").rejected == 0
    assert rows(keeper) == {1: 1}


def test_values_as_connectors_write_them(keeper: Keeper, folder: Path) -> None:
    columns = {"id": "int", "day": "date", "at": "timestamp", "cents": "decimal(8,2)"}
    keeper.create_table("typed", {**columns, "raw": "binary", "far": "double"}, ["id"])
    kinds = {
        "day": {"name": "io.debezium.time.Date"},
        "at": {"name": "io.debezium.time.MicroTimestamp"},
        "cents": {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
    }
    after = {"field": "after", "fields": [{"field": n, **about} for n, about in kinds.items()]}
    coded = b64encode((-12345).to_bytes(3, "big", signed=True)).decode()
    row = {"id": 1, "day": 366, "at": 1_000_001, "cents": coded, "raw": "AAE=", "far": 0.1}
    plain = {"id": 2, "day": 1, "at": "1970-01-02T00:00:00Z", "cents": "1.5", "raw": None, "far": 2}
    write(
        folder,
        "a.jsonl",
        {"schema": {"fields": [after]}, "payload": event("c", 1, None, row)},
        event("c", 2, None, plain),
        event("c", 3, None, {**plain, "id": 3, "at": 1_000_001}),  # of which unit?
    )
    assert keeper.ingest("typed", folder, records="debezium").rejected == 1, [
        each["reason"] for each in keeper.quarantine("typed").to_pylist()
    ]
    first, second = sorted(keeper.read("typed").to_pylist(), key=lambda each: each["id"])
    assert first["day"] == date(1971, 1, 2)
    assert first["at"].replace(tzinfo=None) == datetime(1970, 1, 1, 0, 0, 1, 1)
    assert (first["cents"], first["raw"], first["far"]) == (Decimal("-123.45"), b"\x00\x01", 0.1)
    assert (second["cents"], second["far"]) == (Decimal("1.50"), 2.0)


@pytest.mark.parametrize(
    "ordered",
    [
        [{"lsn": 9}, {"lsn": 10}],
        [
            {"file": "bin.000009", "pos": 900, "row": 0},
            {"file": "bin.000010", "pos": 4, "row": 0},
            {"file": "bin.000010", "pos": 4, "row": 1},
        ],
        [
            {"commit_lsn": "0000001e:00000a98:0003", "change_lsn": None},
            {"commit_lsn": "0000001e:00000a98:0003", "change_lsn": "01", "event_serial_no": 1},
            {"commit_lsn": "0000001e:00000a98:0003", "change_lsn": "01", "event_serial_no": 2},
        ],
        [{"scn": "9"}, {"scn": "10", "ssn": 0}, {"scn": "10", "ssn": 1}],
        [{"ts_ms": 1, "ord": 9}, {"ts_ms": 2, "ord": 1}],
    ],
)
def test_positions_are_in_order(ordered: list[Row]) -> None:
    positions = [position_of(each) for each in ordered]
    assert positions == sorted(set(positions))


@pytest.mark.parametrize("source", [{}, {"lsn": "x"}, {"file": "bin", "pos": 1}, {"ord": 1}])
def test_positions_that_cannot_be_read(source: Row) -> None:
    with pytest.raises(SchemaError, match="position"):
        position_of(source)
