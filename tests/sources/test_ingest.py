"""Files of changes: each of them once, whatever is half written, comes twice or dies in between."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.keeper.faults import fault
from tests.keeper.lakes import check, check_replayed
from tests.keeper.test_watch import wait_for
from viewkeep import Keeper, MissingLibraryError, ViewkeepError
from viewkeep.lake import transactions
from viewkeep.lake.intake import IngestReport, WaitingFile
from viewkeep.sources.folder import list_files

PARTS = {"pid": "int", "price": "int", "name": "string"}
LONG = bool(os.environ.get("VIEWKEEP_LONG"))


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("parts", PARTS, ["pid"], rows=[(1, 10, "a"), (2, 20, "b")])
    keeper.create_view("total", "SELECT name, sum(price) AS total FROM parts GROUP BY name")
    return keeper


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "in"
    place.mkdir()
    return place


def rows(keeper: Keeper, name: str = "parts") -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in keeper.read(name).to_pylist())


def reasons(keeper: Keeper) -> list[tuple[str, int, str]]:
    listed = keeper.quarantine("parts").to_pylist()
    return sorted((each["name"], each["record"], each["reason"]) for each in listed)


def amounts(report: IngestReport) -> tuple[int, int, int]:
    return report.files, report.records, report.rejected


def test_all_kinds_of_files_in_the_order_of_their_names(keeper: Keeper, folder: Path) -> None:
    (folder / "1.csv").write_text('op,pid,price,name\ninsert,3,30,"c\nd"\nupdate,1,11,\n')
    (folder / "2.jsonl").write_text('{"op":"u","pid":3,"price":31}\n\n{"op":"d","pid":2}\n')
    added = {"op": ["upsert", "upsert"], "pid": [1, 4], "price": [12, 40], "name": ["z", None]}
    pq.write_table(pa.table(added), folder / "3.parquet")
    report = keeper.ingest("parts", folder)
    assert amounts(report) == (3, 6, 0)
    assert (report.version, report.waiting) == (1, ())
    assert rows(keeper) == [(1, 12, "z"), (3, 31, "c\nd"), (4, 40, None)]
    keeper.refresh()
    check(keeper)
    check_replayed(keeper)


def test_a_file_waits_for_those_that_came_before_it(
    keeper: Keeper, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files come while the folder is listed, which then shows the last one only."""
    (folder / "1.csv").write_text("op,pid,price,name\nupsert,1,11,a\n")
    list_names, list_entries = os.listdir, os.scandir

    def names(place: str) -> list[str]:
        listed = list_names(place)
        (folder / "2.csv").write_text("op,pid,price,name\ninsert,70,1,a\n")
        (folder / "3.csv").write_text("op,pid\ndelete,70\n")
        return listed

    @contextmanager
    def entries(place: str) -> Iterator[Iterator["os.DirEntry[str]"]]:
        with list_entries(place) as listed:
            yield (each for each in listed if each.name != "2.csv")

    with monkeypatch.context() as racing:
        racing.setattr(os, "listdir", names)
        racing.setattr(os, "scandir", entries)
        found, waiting = list_files(str(folder))
    assert ([each.name for each in found], waiting) == (["1.csv"], [])
    assert amounts(keeper.ingest("parts", folder)) == (3, 3, 0)
    assert keeper.quarantine("parts").num_rows == 0


def test_a_file_is_taken_in_once(keeper: Keeper, folder: Path) -> None:
    (folder / "a.csv").write_text("op,pid,price,name\nupsert,1,11,a\n")
    assert keeper.ingest("parts", folder).files == 1
    keeper.apply("parts", updates=[{"pid": 1, "price": 99}])
    for _ in range(2):
        assert amounts(Keeper(keeper._lake.uri).ingest("parts", folder)) == (0, 0, 0)
        text = (folder / "a.csv").read_text()
        (folder / "a.csv").unlink()  # it is delivered once more
        (folder / "a.csv").write_text(text)
    assert (1, 99, "a") in rows(keeper)
    (folder / "a.csv").write_text("op,pid,price,name\nupsert,1,55,a\n")
    assert keeper.ingest("parts", folder).files == 1
    (folder / "b.csv").write_text("op,pid,price,name\nupsert,1,11,a\n")
    assert keeper.ingest("parts", folder).files == 1, "the same change may happen again"
    assert (1, 11, "a") in rows(keeper)


def test_half_a_file_waits(keeper: Keeper, folder: Path) -> None:
    (folder / "0.csv").write_text("op,pid,price,name\ninsert,7,70,x\n")
    half = folder / "1.csv"
    half.write_text("op,pid,price,name\ninsert,8,80,x\ninsert,9,9")
    (folder / "2.csv").write_text("op,pid,price,name\nupdate,9,91,x\n")
    report = keeper.ingest("parts", folder)
    assert report.files == 1
    assert report.waiting == (WaitingFile("1.csv", "its last line has no end"),)
    with half.open("a") as file:
        file.write("0,x\n")
    assert keeper.ingest("parts", folder).files == 2
    assert [row[:2] for row in rows(keeper)][-3:] == [(7, 70), (8, 80), (9, 91)]
    assert reasons(keeper) == []


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_file_that_grows_is_taken_in_where_it_ended(
    keeper: Keeper, folder: Path, kind: str
) -> None:
    header = "op,pid,price,name\n" if kind == "csv" else ""
    line: Callable[[int], str] = (
        (lambda n: f"insert,{n},{n},x\n")
        if kind == "csv"
        else (lambda n: f'{{"op":"insert","pid":{n},"price":{n},"name":"x"}}\n')
    )
    file = folder / f"log.{kind}"
    text = header
    for number in range(10, 15):
        text += line(number)
        file.write_text(text)
        assert amounts(keeper.ingest("parts", folder)) == (1, 1, 0)
    file.write_text(text + line(15) + line(10))
    assert amounts(keeper.ingest("parts", folder)) == (1, 2, 1)
    assert [row[0] for row in rows(keeper)] == [1, 2, 10, 11, 12, 13, 14, 15]
    [(_, number, reason)] = reasons(keeper)
    assert number == text.count("\n") + 2
    assert reason.endswith("insert, but the key is there; update the row instead")


def test_drafts_and_parquet_without_a_footer_wait(keeper: Keeper, folder: Path) -> None:
    added = pa.table({"op": ["insert"], "pid": [5], "price": [5], "name": ["e"]})
    pq.write_table(added, folder / "whole.tmp")
    whole = (folder / "whole.tmp").read_bytes()
    (folder / "a.parquet").write_bytes(whole[:-10])
    (folder / ".b.csv").write_text("op,pid\ndelete,1\n")
    (folder / "notes.txt").write_text("")
    report = keeper.ingest("parts", folder)
    assert [each.name for each in report.waiting] == ["a.parquet", "notes.txt"]
    (folder / "a.parquet").write_bytes(whole)
    assert keeper.ingest("parts", folder).files == 1
    (folder / "c.csv").write_text('op,pid,price,name\ninsert,6,6,"two\n')
    assert keeper.ingest("parts", folder).waiting[0].reason == "it ends inside of quotes"
    assert rows(keeper)[-1] == (5, 5, "e")


def test_records_that_do_not_fit_go_to_quarantine(keeper: Keeper, folder: Path) -> None:
    (folder / "a.jsonl").write_bytes(
        b'{"op":"insert","pid":1,"price":1,"name":"x"}\n'  # the key is there
        b'{"op":"update","pid":7,"price":1}\n'  # no such row
        b'{"op":"delete","pid":null}\n'
        b'{"op":"insert","pid":3,"price":"dear","name":"x"}\n'
        b'{"op":"insert","pid":4}\n'  # columns are missing
        b'{"op":"insert","pid":4,"price":1,"name":"x","colour":"red"}\n'
        b'{"op":"replace","pid":1}\n'
        b'{"pid":1,"price":1}\n'
        b'{"op":"insert","pid":\n'
        b"[1]\n"
        b'{"op":"insert","pid":5,"price":1,"name":"\xff"}\n'
        b'{"op":"insert","pid":6,"price":1.5,"name":"x"}\n'
        b'{"op":"insert","pid":6,"price":6,"name":"fits"}\n'
    )
    (folder / "b.csv").write_text("op,pid,prize\ninsert,8,1\n")
    (folder / "c.parquet").write_bytes(b"PAR1 no parquet at all PAR1")
    (folder / "d.csv").write_bytes(b"op,pid,price,name\ninsert,8,1\ninsert,9,9,\xff\nd,2,,\n")
    report = keeper.ingest("parts", folder)
    assert (report.files, report.records, report.rejected) == (4, 18, 16)
    assert rows(keeper) == [(1, 10, "a"), (6, 6, "fits")]
    told = reasons(keeper)
    assert [each[:2] for each in told[:12]] == [("a.jsonl", n) for n in range(1, 13)]
    expected = ["key is there", "no row has this key", "NULL", "dear", "no value for price, name"]
    expected += ['no column "colour"', "no operation", 'no "op"', "not JSON", "expected an object"]
    for (_, _, reason), part in zip(told, expected, strict=False):
        assert part in reason
    assert told[12] == ("b.csv", 2, 'no column "prize" (pid, price, name); did you mean "price"?')
    assert "not a Parquet file" in told[13][2]
    assert "3 values, but the header has 4" in told[14][2]
    assert keeper.status()[0].quarantined == {"parts": 16}
    assert keeper.describe_tables()[0].quarantined == 16
    assert keeper.clear_quarantine("parts") == 16
    assert keeper.status()[0].quarantined == {}


def test_values_have_the_declared_types(keeper: Keeper, folder: Path) -> None:
    columns = {"op": "int", "day": "date", "price": "decimal(8,2)", "far": "array<double>"}
    keeper.create_table("typed", columns, ["op"])
    line = '{"_op":"insert","op":1,"day":"2026-01-02","price":1.10,"far":[0.1,2]}\n'
    (folder / "a.jsonl").write_text(line)
    assert keeper.ingest("typed", folder).rejected == 0
    assert rows(keeper, "typed") == [(1, date(2026, 1, 2), Decimal("1.10"), [0.1, 2.0])]


def test_what_cannot_be_taken_in_is_refused(keeper: Keeper, folder: Path) -> None:
    with pytest.raises(ViewkeepError, match='records="avro": expected one of changes'):
        keeper.ingest("parts", folder, records="avro")
    with pytest.raises(ViewkeepError, match=r"cannot read the folder .*nowhere"):
        keeper.ingest("parts", folder / "nowhere")
    with pytest.raises(ViewkeepError, match='"total" is a view'):
        keeper.ingest("total", folder)


def test_a_table_that_is_made_anew_has_taken_nothing_in(keeper: Keeper, folder: Path) -> None:
    keeper.create_table("t", {"id": "int"}, ["id"])
    (folder / "a.csv").write_text("op,id\ninsert,1\n")
    assert keeper.ingest("t", folder).files == 1
    keeper.drop_table("t")
    os.rename(f"{keeper._lake.uri}/t", f"{keeper._lake.uri}/old")
    keeper.create_table("t", {"id": "int"}, ["id"])
    assert keeper.ingest("t", folder).files == 1
    assert rows(keeper, "t") == [(1,)]


def test_vacuum_cleans_what_is_beside_a_table(keeper: Keeper, folder: Path) -> None:
    for number in range(18):  # small files of a table are put together
        (folder / f"{number:02}.csv").write_text(f"op,pid,price,name\nupsert,1,{number},x\n")
        keeper.ingest("parts", folder)
    assert keeper.vacuum(hours=0, force=True)["parts/files"] > 10
    (folder / "again.csv").write_text("op,pid,price,name\nupsert,1,1,x\n")
    assert keeper.ingest("parts", folder).files == 1
    assert keeper.ingest("parts", folder).files == 0


# --- deaths, others beside it ---------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True])
def test_whoever_dies_a_file_counts_once(
    keeper: Keeper, folder: Path, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "PATIENCE", 0)
    keeper.apply("parts", updates=[{"pid": 1, "price": 0}])
    at, deaths = 0, 0
    for number in range(40 if LONG else 14):
        line = f'{{"op":"insert","pid":{100 + number},"price":1,"name":"x"}}\n'
        (folder / f"{number:03}.jsonl").write_text(line + '{"op":"delete","pid":77}\n')
        at += 1
        with fault(at, after) as found:
            Keeper(keeper._lake.uri, durable=False).ingest("parts", folder)
        deaths += found.dead
        at = at if found.dead else 0
        Keeper(keeper._lake.uri, durable=False).ingest("parts", folder)
        assert keeper.read("parts").num_rows == 3 + number, found
        assert len(reasons(keeper)) == 1 + number, found
    assert deaths > 5
    keeper.refresh()
    check(keeper)
    check_replayed(keeper)


def test_several_processes_take_in_the_same_folder(keeper: Keeper, folder: Path) -> None:
    stop, failures = Event(), list[BaseException]()

    def work() -> None:
        own = Keeper(keeper._lake.uri, durable=False)
        try:
            while not stop.is_set():
                own.ingest("parts", folder)
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for number in range(20):
        draft = folder / f"{number}.tmp"
        draft.write_text(f"op,pid,price,name\ninsert,{100 + number},1,x\n")
        draft.rename(folder / f"{number:02}.csv")
        keeper.apply("parts", updates=[{"pid": 1, "price": number}])
    stop.set()
    for each in threads:
        each.join()
    assert not failures
    keeper.ingest("parts", folder)
    assert len(rows(keeper)) == 22
    assert rows(keeper)[0] == (1, 19, "a")
    assert reasons(keeper) == []


def test_random_changes_by_files_and_by_hand(keeper: Keeper, folder: Path) -> None:
    rng, model = Random(5), {1: (1, 10, "a"), 2: (2, 20, "b")}
    for number in range(100 if LONG else 8):
        lines = []
        for _ in range(rng.randrange(5)):
            key, price = rng.randrange(8), rng.randrange(50)
            if key in model and rng.random() < 0.4:
                lines.append(f'{{"op":"delete","pid":{key}}}\n')
                del model[key]
            else:
                values = f'"pid":{key},"price":{price},"name":"{price % 3}"'
                lines.append(f'{{"op":"upsert",{values}}}\n')
                model[key] = (key, price, str(price % 3))
        (folder / f"{number:03}.jsonl").write_text("".join(lines) + "\n")
        keeper.ingest("parts", folder)
        key = rng.randrange(8)
        if key in model:
            keeper.apply("parts", updates=[{"pid": key, "price": 7}])
            model[key] = (key, 7, model[key][2])
        assert rows(keeper) == sorted(model.values())
        keeper.refresh()
    check(keeper)
    check_replayed(keeper)


def test_a_watcher_takes_in_what_comes(keeper: Keeper, folder: Path) -> None:
    stop, told = Event(), list[Any]()
    (folder / "half.csv").write_text("op,pid,price,name\ninsert")
    about = {"stop": stop, "tell": told.append, "ingest": {"parts": folder}}
    watcher = Keeper(keeper._lake.uri, durable=False)
    thread = Thread(target=watcher.watch, kwargs=about)
    thread.start()
    try:
        wait_for(lambda: bool(told))
        with (folder / "half.csv").open("a") as file:
            file.write(",3,30,a\n")
        wait_for(lambda: ("a", 40) in rows(keeper, "total"))
    finally:
        stop.set()
        thread.join()
    first, *rest = told
    assert first.waiting == (WaitingFile("half.csv", "its last line has no end"),)
    assert [type(each).__name__ for each in rest] == ["IngestReport", "RefreshReport"]
    check(keeper)


def test_a_folder_that_fails_leaves_views_fresh(keeper: Keeper, folder: Path) -> None:
    stop, told = Event(), list[Any]()
    about = {"stop": stop, "tell": told.append, "ingest": {"parts": folder / "nowhere"}}
    thread = Thread(target=Keeper(keeper._lake.uri, durable=False).watch, kwargs=about)
    thread.start()
    try:
        keeper.apply("parts", inserts=[(3, 30, "a")])
        wait_for(lambda: ("a", 40) in rows(keeper, "total"))
    finally:
        stop.set()
        thread.join()
    assert "cannot read the folder" in told[0].error


def test_a_folder_that_fills_all_the_time_keeps_no_view_waiting(
    keeper: Keeper, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds are small, and a watcher refreshes between them."""
    monkeypatch.setattr("viewkeep.sources.folder.ROUND_BYTES", 1)
    monkeypatch.setattr("viewkeep.sources.folder_watch.LIMIT", 0.0)
    for number in range(3):
        line = f"op,pid,price,name\ninsert,{100 + number},1,x\n"
        (folder / f"{number}.csv").write_text(line)
    told, stop = list[Any](), Event()

    def tell(report: Any) -> None:
        told.append(report)
        if getattr(report, "files", 0) and keeper.read("parts").num_rows == 5:
            stop.set()

    keeper.watch(stop=stop, tell=tell, ingest={"parts": folder})
    kinds = [type(each).__name__ for each in told]
    assert kinds[:4] == ["IngestReport", "RefreshReport"] * 2
    assert rows(keeper)[-3:] == [(100, 1, "x"), (101, 1, "x"), (102, 1, "x")]
    keeper.refresh()
    check(keeper)


def test_a_capture_without_its_library_says_what_to_install(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("viewkeep.sources.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'viewkeep\[postgres\]'"):
        keeper.capture("postgresql://nobody@nowhere/none", ["parts"])
