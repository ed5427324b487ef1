"""Changes of several tables at once: views see all of them or none, whoever dies in between."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.keeper.faults import fault
from tests.keeper.lakes import check, check_replayed
from viewkeep import Keeper, ViewkeepError
from viewkeep.lake import transactions
from viewkeep.lake.transactions import Newest, Transactions
from viewkeep.tables.log.delta import ConflictError, LakeTable

ACCOUNTS = 4
TOTAL = 2 * ACCOUNTS * 100
VIEWS = {
    "total": """SELECT sum(amount) AS total FROM
        (SELECT id, amount FROM giro UNION ALL SELECT id, amount FROM savings) AS both""",
    "rich": "SELECT g.id, g.amount + s.amount AS both FROM giro g JOIN savings s ON g.id = s.id",
    "large": "SELECT id FROM rich WHERE both > 150",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two tables of accounts, and views over both."""
    keeper, columns = Keeper(tmp_path, durable=False), {"id": "int", "amount": "int"}
    for name in ("giro", "savings"):
        rows = [(number, 100) for number in range(ACCOUNTS)]
        keeper.create_table(name, columns, ["id"], rows=rows)
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql, policy="incremental")
    return tmp_path


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that died in these tests has the number of one that lives."""
    monkeypatch.setattr(transactions, "PATIENCE", 0)


def move(keeper: Keeper, account: int, amount: int) -> dict[str, int]:
    """From one table to the other, of what both hold now."""
    giro, savings = (balances(keeper, name) for name in ("giro", "savings"))
    return keeper.transaction(
        {
            "giro": {"updates": [{"id": account, "amount": giro[account] - amount}]},
            "savings": {"updates": [{"id": account, "amount": savings[account] + amount}]},
        }
    )


def balances(keeper: Keeper, name: str) -> dict[int, int]:
    return {row["id"]: row["amount"] for row in keeper.read(name).to_pylist()}


def total(keeper: Keeper) -> int:
    [row] = keeper.read("total").to_pylist()
    return int(row["total"])


def test_views_see_all_of_it(place: Path) -> None:
    keeper = Keeper(place)
    assert move(keeper, 1, 30) == {"giro": 1, "savings": 1}
    assert [dict(each.changes) for each in keeper.refresh("total")] == [{"giro": 1, "savings": 1}]
    keeper.transaction({"giro": {"inserts": [(9, 5)], "deletes": [(1,)]}, "savings": {}})
    assert keeper.transaction({}) == {}
    keeper.refresh()
    check(keeper)
    check_replayed(keeper)


def test_a_change_that_does_not_fit_takes_all_back(place: Path) -> None:
    keeper = Keeper(place)
    with pytest.raises(ViewkeepError, match=r'table "savings", key \(id = 0\): insert'):
        keeper.transaction({"giro": {"deletes": [(0,)]}, "savings": {"inserts": [(0, 1)]}})
    assert balances(keeper, "giro") == balances(keeper, "savings")
    keeper.refresh()
    assert total(keeper) == TOTAL
    check(keeper)
    check_replayed(keeper)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"giros": {}}, 'did you mean "giro"'),
        ({"total": {}}, "is a view"),
        ({"giro": {"insert": []}}, 'did you mean "inserts"'),
        ({"giro": {"inserts": [(1, "x")]}}, 'column "amount"'),
        ({"giro": [(1, 2)]}, "changes"),
    ],
)
def test_mistakes_are_found_before_anything_changes(
    place: Path, changes: dict[str, object], problem: str
) -> None:
    keeper = Keeper(place)
    with pytest.raises(ViewkeepError, match=problem):
        keeper.transaction({"savings": {"deletes": [(1,)]}, **changes})  # type: ignore[dict-item]
    assert keeper.version("savings") == DeltaTable(place / "savings").version() == 0


def deaths(place: Path) -> Iterator[tuple[int, bool]]:
    """All places where a transaction writes, and whether the process dies before or after it; the
    first one makes the table of decisions as well."""
    yield from ((1, False), (1, True))
    with fault(0) as counted:
        move(Keeper(place), 0, 1)
    assert counted.calls >= 5, "two tables, with a file each, and a decision"
    yield from ((at, after) for at in range(1, counted.calls + 1) for after in (False, True))


def test_it_dies_at_every_write(place: Path) -> None:
    """The next refresh sees all or nothing, and so does the next writer."""
    outcomes = set()
    for at, after in deaths(place):
        before = balances(Keeper(place), "giro")[1]
        with fault(at, after) as found:
            move(Keeper(place), 1, 1)
        assert found.dead, (at, after)
        keeper = Keeper(place)
        keeper.refresh()
        assert total(keeper) == TOTAL, (at, after)
        seen = balances(keeper, "giro")[1]
        keeper.apply("giro", updates=[{"id": 2, "amount": at}])
        keeper.apply("savings", updates=[{"id": 2, "amount": 200 - at}])
        keeper.refresh()
        assert balances(keeper, "giro")[1] == seen, (at, after)
        assert seen in (before, before - 1)
        outcomes.add(before - seen)
        assert total(keeper) == TOTAL, (at, after)
        check(keeper)
    assert outcomes == {0, 1}
    check_replayed(Keeper(place))


@pytest.mark.parametrize("at", [2, 3])
def test_old_files_are_put_together_or_removed_after_a_death(place: Path, at: int) -> None:
    """Neither hides what is left of a transaction, nor makes it stay."""
    tables = ("giro", "savings")
    with fault(_first_commit(place), after=True):
        move(Keeper(place), 1, 50)
    raw = [DeltaTable(place / name).version() for name in tables]
    DeltaTable(place / "giro").optimize.compact()
    keeper = Keeper(place)
    keeper.refresh()
    assert total(keeper) == TOTAL
    if at == 3:
        keeper.vacuum(0, force=True)
        assert DeltaTable(place / "giro").version() > raw[0], "taken back, which needs old files"
    move(keeper, 1, 10)
    keeper.refresh()
    assert total(keeper) == TOTAL
    check(keeper)


def test_two_processes_take_the_same_back(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one, which looked before the first was done, finds rows written since."""
    with fault(_first_commit(place), after=True):
        move(Keeper(place), 1, 50)
    slow, quick, take_back = Keeper(place), Keeper(place), Transactions._undo_transaction

    def interrupted(*about: Any) -> None:
        monkeypatch.setattr(Transactions, "_undo_transaction", take_back)
        quick.apply("giro", updates=[{"id": 2, "amount": 7}])
        take_back(*about)

    monkeypatch.setattr(Transactions, "_undo_transaction", interrupted)
    definition = slow._lake.catalog.read().table("giro")
    Transactions(slow._lake).settle(definition, slow._lake.at(definition.location))
    assert Transactions._undo_transaction is take_back, "the test interrupted it"
    assert balances(slow, "giro")[2] == 7
    slow.refresh()
    check(slow)
    check_replayed(slow)


def test_versions_that_views_see_are_decided(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that begins while another process looks at the table is not seen."""
    keeper = Keeper(place)
    definition, seen = keeper._lake.catalog.read().table("giro"), keeper.version("giro")
    look = transactions.newest_of

    def interrupted(table: LakeTable) -> Newest:
        monkeypatch.setattr(transactions, "newest_of", look)
        found = look(table)
        with fault(_first_commit(place), after=True):
            move(Keeper(place), 1, 50)
        return found

    monkeypatch.setattr(transactions, "newest_of", interrupted)
    assert Transactions(keeper._lake).visible_version(definition) == seen
    assert DeltaTable(place / "giro").version() > seen


def _first_commit(place: Path) -> int:
    """The place of the first table's commit among the writes of a transaction."""
    for at in range(1, 20):
        before = DeltaTable(place / "giro").version()
        with fault(at, after=True):
            move(Keeper(place), 0, 1)
        if DeltaTable(place / "giro").version() > before:
            Keeper(place).apply("giro", updates=[{"id": 0, "amount": 100}])
            return at
    raise AssertionError("a transaction commits to its tables")


def test_a_killed_process_is_not_waited_for(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "PATIENCE", 600)
    code = f"""
import os, signal
from viewkeep import Keeper
from viewkeep.lake.transactions import Transactions
Transactions._decide = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
Keeper({str(place)!r}).transaction({{n: {{"deletes": [(1,)]}} for n in ("giro", "savings")}})
"""
    killed = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert DeltaTable(place / "giro").version() == 1
    keeper = Keeper(place)
    assert keeper.version("giro") == 0
    assert len(balances(keeper, "giro")) == ACCOUNTS
    begun = time.monotonic()
    assert keeper.apply("giro", updates=[{"id": 1, "amount": 7}]) == 3
    assert time.monotonic() - begun < 60


def test_writers_refreshes_and_transactions_at_the_same_time(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No refresh sees half of a transaction, and no writer overwrites one."""
    monkeypatch.setattr(transactions, "PATIENCE", 60)
    stop, moved = Event(), [0, 0]

    def work(account: int) -> None:
        keeper = Keeper(place, durable=False)
        while not stop.is_set():
            try:
                move(keeper, account, 1)
                moved[account] += 1
            except ConflictError:
                continue

    workers = [Thread(target=work, args=(account,)) for account in range(2)]
    for each in workers:
        each.start()
    keeper, totals, rounds = Keeper(place, durable=False), set(), 0
    end = time.monotonic() + 60
    while time.monotonic() < end and not (rounds >= 10 and min(moved) >= 5):
        keeper.refresh()
        totals.add(total(keeper))
        keeper.apply("giro", updates=[{"id": 3, "amount": 100}])  # changes nothing, but looks
        rounds += 1
    stop.set()
    for each in workers:
        each.join()
    keeper.refresh()
    assert totals == {TOTAL}
    assert min(moved) >= 5, "both have come to something"
    assert [100 - balances(keeper, "giro")[account] for account in range(2)] == moved
    check(keeper)
