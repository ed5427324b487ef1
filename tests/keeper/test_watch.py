"""Views that are kept fresh by a watcher: soon, not too often, whatever fails or dies."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median
from threading import Event, Thread

import pytest

from tests.keeper.lakes import check
from viewkeep import Keeper, ViewkeepError
from viewkeep.lake import RefreshReport, retry
from viewkeep.lake.catalog import Catalog, ViewDefinition
from viewkeep.lake.views.view import View
from viewkeep.refresh import watch
from viewkeep.refresh.lag import seconds_of

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
KILLS = 30 if LONG else 2


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Parts, and views over them and over each other."""
    keeper = Keeper(tmp_path, durable=False)
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=[(1, 10), (2, 20)])
    keeper.create_view("total", "SELECT sum(price) AS total FROM parts")
    keeper.create_view("dear", "SELECT pid FROM parts WHERE price > 15")
    keeper.create_view("count_dear", "SELECT count(*) AS n FROM dear")
    return tmp_path


@contextmanager
def watching(place: Path, lag: float | str = 0.0) -> Iterator[list[RefreshReport]]:
    """A block beside which a watcher works; what it tells."""
    stop, told = Event(), list[RefreshReport]()
    keeper = Keeper(place, durable=False)
    thread = Thread(target=keeper.watch, args=(lag, stop, told.append))
    thread.start()
    try:
        yield told
    finally:
        stop.set()
        thread.join()


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> float:
    """Wait until something holds; how long that took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, "it never came"
        time.sleep(0.005)
    return time.monotonic() - begun


def is_fresh(keeper: Keeper) -> bool:
    return all(each.is_fresh for each in keeper.status())


def test_a_change_is_soon_in_all_views(place: Path) -> None:
    keeper, seconds = Keeper(place, durable=False), []
    with watching(place) as told:
        for n in range(10):
            keeper.apply("parts", updates=[{"pid": 1, "price": 100 + n}])
            seconds.append(wait_for(lambda: is_fresh(keeper)))
    assert {each.view for each in told} == {"total", "dear", "count_dear"}
    assert all(each.changed and not each.error for each in told)
    assert median(seconds) < 2, "0.2 s and less by `make bench-watch`; tests may have company"
    check(keeper)


def test_one_look_is_enough_for_all_views_and_none_reads_what_is_fresh(place: Path) -> None:
    keeper, planned, rounds = Keeper(place, durable=False), list[str](), list[list[str]]()

    def plan(definition: ViewDefinition, catalog: Catalog) -> View:
        planned.append(definition.name)
        return keeper._plans.view(definition, catalog)

    def refresh(names: Sequence[str]) -> list[RefreshReport]:
        rounds.append(list(names))
        return keeper.refresh(*names)

    watcher = watch.Watcher(keeper._lake, plan, refresh)
    for price in (100, 200):
        keeper.apply("parts", updates=[{"pid": 1, "price": price}])
        watcher._refresh_due_views(lambda report: None)
        assert is_fresh(keeper)
        watcher._refresh_due_views(lambda report: None)  # notes that nothing is behind
        planned.clear()
        watcher._refresh_due_views(lambda report: None)
        assert planned == []
    assert [sorted(each) for each in rounds] == [["count_dear", "dear", "total"]] * 2
    assert watch.SHORTEST <= 0.05, "with a refresh of a small lake, far less than 0.2 s"


def test_a_lag_puts_changes_together(place: Path) -> None:
    keeper = Keeper(place, durable=False)
    begun = time.monotonic()
    with watching(place, "4s") as told:
        while time.monotonic() < begun + 1:
            keeper.apply("parts", updates=[{"pid": 1, "price": int(time.monotonic() * 1000) % 997}])
            time.sleep(0.05)
        assert not told, "nothing is due yet"
        wait_for(lambda: is_fresh(keeper))
    assert len([each for each in told if each.view == "total"]) <= 2
    assert time.monotonic() - begun > 3


def test_views_have_lags_of_their_own(place: Path) -> None:
    keeper = Keeper(place, durable=False)
    keeper.create_view("slow", "SELECT count(*) AS n FROM parts", lag="1h")
    keeper.create_view("below", "SELECT pid FROM parts", lag="downstream")
    keeper.create_view("above", "SELECT count(*) AS n FROM below")
    with watching(place) as told:
        keeper.apply("parts", inserts=[(3, 30)])
        wait_for(lambda: {"above", "below", "total"} <= {each.view for each in told})
        keeper.drop_view("above")
        keeper.apply("parts", inserts=[(4, 30)])
        wait_for(lambda: keeper.status("total")[0].is_fresh)
        time.sleep(3 * watch.SHORTEST)
    assert "slow" not in {each.view for each in told}
    assert [each.is_fresh for each in keeper.status("slow", "below")] == [False, False]
    with pytest.raises(ViewkeepError, match="expected a time such as"):
        keeper.create_view("v", "SELECT pid FROM parts", lag="soon")


@pytest.mark.parametrize("lag", ["", "-1s", "1 year", "x", -1.0])
def test_lags_that_are_none(lag: float | str) -> None:
    with pytest.raises(ViewkeepError, match="lag="):
        seconds_of(lag)


def test_a_view_that_fails_is_tried_again_later(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others stay fresh, and it is not tried all the time."""
    monkeypatch.setattr(retry, "FIRST_SECONDS", 0.2)
    keeper = Keeper(place, durable=False)
    keeper.create_view("ratio", "SELECT pid, 100 / price AS r FROM parts", policy="incremental")
    with watching(place) as told:
        keeper.apply("parts", updates=[{"pid": 1, "price": 0}])
        wait_for(lambda: len([each for each in told if each.error]) >= 2)
        wait_for(lambda: keeper.status("total")[0].is_fresh)
        keeper.apply("parts", updates=[{"pid": 1, "price": 5}])
        wait_for(lambda: is_fresh(keeper))
    errors = [each for each in told if each.error]
    assert {each.view for each in errors} == {"ratio"}
    assert len(errors) < 12
    check(keeper)


def test_two_watchers_do_no_work_twice(place: Path) -> None:
    keeper = Keeper(place, durable=False)
    with watching(place) as first, watching(place) as second:
        for n in range(5):
            keeper.apply("parts", updates=[{"pid": 1, "price": n}])
            wait_for(lambda: is_fresh(keeper))
        [worked] = [each for each in (first, second) if each]  # the other one waits
        versions = [each.version for each in worked if each.view == "total"]
        assert versions == sorted(set(versions))


def command(place: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "viewkeep", "watch", "--lake", str(place), *options]


def test_a_watcher_that_is_killed_again_and_again(place: Path) -> None:
    """Nothing is lost or doubled, and the next watcher takes over at once."""
    keeper, rng = Keeper(place, durable=False), Random(3)
    keeper.create_view("groups", "SELECT price % 7 AS g, count(*) AS n FROM parts GROUP BY 1")
    number = 10
    for _ in range(KILLS):
        begun = keeper.version("total")
        with subprocess.Popen(command(place, "--lag", "0s"), stdout=subprocess.DEVNULL) as victim:
            end = time.monotonic() + 60
            while keeper.version("total") < begun + 3 and time.monotonic() < end:
                keeper.apply("parts", inserts=[(number, rng.randrange(100))])
                number += 1
                time.sleep(rng.random() * 0.1)
            victim.kill()
        assert keeper.version("total") > begun
    keeper.refresh()
    check(keeper)


def test_the_command_stops_cleanly_and_serves_figures(place: Path) -> None:
    keeper, port = Keeper(place, durable=False), 20000 + os.getpid() % 20000
    options = ("--lag", "0s", "--json", "--serve", str(port))
    with subprocess.Popen(command(place, *options), stdout=subprocess.PIPE, text=True) as process:
        keeper.apply("parts", inserts=[(3, 30)])
        wait_for(lambda: is_fresh(keeper))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert {line.partition('"view": "')[2].partition('"')[0] for line in out.splitlines()} == {
        "total",
        "dear",
        "count_dear",
    }
    assert 'viewkeep_view_refreshes_total{view="total"} ' in text
    assert "# TYPE viewkeep_view_lag_seconds gauge" in text
