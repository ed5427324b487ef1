"""`vacuum` removes old decisions about transactions and old definitions; none of them is missed."""

import shutil
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest
from deltalake import DeltaTable

from tests.keeper.faults import Died, fault
from tests.keeper.test_clean_logs import INTERVAL, _dying, check_tables, entries, many_checkpoints
from viewkeep import Keeper
from viewkeep.lake import transactions
from viewkeep.lake.settled_versions import settled_versions
from viewkeep.lake.transactions import Transactions, decisions_table

__all__ = ["many_checkpoints"]
OWN = Path("_viewkeep")
TOTAL = 1000


@pytest.fixture(autouse=True)
def without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions are read, and a process that died in these tests is not waited for."""
    monkeypatch.setattr(transactions, "PATIENCE", 0)
    monkeypatch.setattr(transactions, "REMEMBERED", 1)


def banks(place: Path) -> Keeper:
    """Two tables that change together, and one that changed with them once."""
    keeper = Keeper(place, durable=False)
    for name in ("giro", "savings", "idle"):
        keeper.create_table(name, {"id": "int", "amount": "int"}, ["id"], rows=[(1, TOTAL // 2)])
    keeper.create_view(
        "total", "SELECT g.amount + s.amount AS n FROM giro g JOIN savings s USING (id)"
    )
    one = {"updates": [{"id": 1, "amount": 7}]}
    half = {"updates": [{"id": 1, "amount": TOTAL // 2}]}
    keeper.transaction({"idle": one, "giro": half, "savings": half})
    return keeper


def move(keeper: Keeper, amount: int) -> None:
    keeper.transaction(
        {
            "giro": {"updates": [{"id": 1, "amount": amount}]},
            "savings": {"updates": [{"id": 1, "amount": TOTAL - amount}]},
        }
    )


def check_sum(place: Path) -> Keeper:
    transactions._DECIDED.clear()
    keeper = Keeper(place, durable=False)
    keeper.refresh()
    assert keeper.read("total").to_pylist() == [{"n": TOTAL}]
    assert keeper.verify("total").ok
    assert keeper.read("idle").to_pylist() == [{"id": 1, "amount": 7}]
    definition = keeper._lake.catalog.read().table("idle")
    visible = Transactions(keeper._lake).visible_version(definition)
    assert visible == DeltaTable(place / "idle").version()
    return keeper


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    keeper, sizes = banks(tmp_path), []
    for number in range(120):
        move(keeper, number)
        if number % 20 == 19:
            keeper.create_view("more", f"SELECT id + {number} AS id FROM giro", replace=number > 20)
            keeper.refresh()
            keeper.vacuum(0, force=True)
            files = [
                len(list((tmp_path / OWN / n).rglob("*"))) for n in ("transactions", "catalog")
            ]
            sizes.append(files)
            check_sum(tmp_path)
    check_tables(tmp_path)
    assert len(entries(tmp_path / OWN / "transactions")) <= 2 * INTERVAL
    assert max(map(max, sizes)) <= 40, sizes
    keeper.apply("idle", updates=[{"id": 1, "amount": 8}])
    assert keeper.read("idle").to_pylist() == [{"id": 1, "amount": 8}]


def test_an_idle_table_is_not_taken_back(tmp_path: Path) -> None:
    """Its transaction was decided in an entry that is gone."""
    keeper = banks(tmp_path)
    for number in range(30):
        move(keeper, number)
    keeper.vacuum(0, force=True)
    assert entries(tmp_path / OWN / "transactions")[0] > 10
    assert len(settled_versions(decisions_table(keeper._lake))) == 3
    transactions._DECIDED.clear()
    keeper.apply("idle", inserts=[(2, 2)])
    assert sorted(row["amount"] for row in keeper.read("idle").to_pylist()) == [2, 7]


def test_a_transaction_that_began_before_can_only_be_undone(tmp_path: Path) -> None:
    """Whether another process gave it up is not told any more."""
    keeper = banks(tmp_path)
    mine = Transactions(keeper._lake)
    mark = mine._begin_transaction()
    assert not mine._decide(mark, done=False)
    for number in range(30):
        move(keeper, number)
    keeper.vacuum(0, force=True)
    transactions._DECIDED.clear()
    assert not mine._decide(mark, done=True)
    check_sum(tmp_path)


def test_a_vacuum_dies_at_every_deletion(tmp_path: Path) -> None:
    keeper = banks(tmp_path / "lake")
    for number in range(20):
        move(keeper, number)
    keeper.refresh()
    with fault(4, after=True):
        move(keeper, 99)
    deaths = 0
    for at in range(1, 400):
        place = tmp_path / f"copy{at}"
        shutil.copytree(tmp_path / "lake", place)
        with pytest.MonkeyPatch.context() as patch:
            next(_dying(patch, at))
            try:
                Keeper(place, durable=False).vacuum(0, force=True)
            except Died:
                deaths += 1
            else:
                break
        check_tables(place)
        survivor = check_sum(place)
        move(survivor, 5)
        survivor.vacuum(0, force=True)
        check_sum(place)
        check_tables(place)
        shutil.rmtree(place)
    assert deaths > 20


@pytest.mark.parametrize("seed", range(3))
def test_random_deaths_and_vacuums(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    banks(tmp_path)
    for _ in range(40):
        with fault(rng.randint(1, 30), rng.random() < 0.5):
            keeper = Keeper(tmp_path, durable=False)
            move(keeper, rng.randrange(TOTAL))
            if rng.random() < 0.3:
                keeper.vacuum(0, force=True)
        if rng.random() < 0.5:
            check_sum(tmp_path)
    check_sum(tmp_path).vacuum(0, force=True)
    check_sum(tmp_path)
    check_tables(tmp_path)


def test_beside_a_writer_and_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "PATIENCE", 60)
    banks(tmp_path)
    over, problems = Event(), []

    def write() -> None:
        keeper = Keeper(tmp_path, durable=False)
        try:
            for number in range(60):
                move(keeper, number)
        except Exception as error:
            problems.append(error)
        over.set()

    writer = Thread(target=write)
    writer.start()
    keeper = Keeper(tmp_path, durable=False)
    while not over.is_set():
        keeper.refresh()
        assert keeper.read("total").to_pylist() == [{"n": TOTAL}]
        keeper.vacuum(0, force=True)
    writer.join()
    assert not problems
    assert check_sum(tmp_path).read("giro").to_pylist() == [{"id": 1, "amount": 59}]
