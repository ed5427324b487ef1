"""Refreshes of a watcher as events of OpenLineage, where its client is there and has a place."""

import json
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from viewkeep import Keeper
from viewkeep.refresh import lineage


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=[(1, 10)])
    keeper.create_view("total", "SELECT sum(price) AS total FROM parts")
    keeper.apply("parts", inserts=[(2, 20)])
    return keeper


def watch_once(keeper: Keeper) -> None:
    stop = Event()
    keeper.watch(stop=stop, tell=lambda report: stop.set())


def test_without_a_place_or_a_client_nothing_is_made(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_events(*_: Any) -> None:
        raise AssertionError("nobody has asked for events")

    monkeypatch.setattr(lineage.LineageEmitter, "emit", no_events)
    watch_once(keeper)
    monkeypatch.setenv("OPENLINEAGE_URL", "http://localhost:1")
    monkeypatch.setattr(lineage, "CLIENT", "no_such_client")
    keeper.apply("parts", inserts=[(3, 30)])
    watch_once(keeper)
    assert keeper.read("total").to_pylist() == [{"total": 60}]


def test_events_that_do_not_arrive_stop_no_refresh(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lineage, "is_lineage_wanted", lambda: True)
    monkeypatch.setattr(lineage, "lineage_events", lambda *_: 1 / 0)
    watch_once(keeper)
    assert keeper.read("total").to_pylist() == [{"total": 30}]
    assert "no events of OpenLineage for view total" in caplog.text


def test_the_events_of_a_refresh(
    keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openlineage.client", reason="the client of OpenLineage is not installed")
    file = tmp_path / "events.jsonl"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(file))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    watch_once(keeper)
    start, end = (json.loads(line) for line in file.read_text().splitlines())
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert start["eventTime"] <= end["eventTime"]
    assert end["job"]["name"] == "total"
    assert end["job"]["facets"]["sql"]["query"] == "SELECT sum(price) AS total FROM parts"
    [source], [target] = end["inputs"], end["outputs"]
    assert source["name"].endswith("/lake/parts")
    assert source["facets"]["version"]["datasetVersion"] == "1"
    assert target["name"].endswith("/lake/total")
    assert target["outputFacets"]["outputStatistics"]["rowCount"] == 1
