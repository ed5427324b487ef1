"""The change data feed of views: other engines see exactly the rows that a refresh changed."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.diffs.random_tables import apply_batches, random_batch, random_database
from tests.diffs.views import TABLES, VIEWS
from tests.keeper.faults import apply
from tests.keeper.lakes import check_replayed, rows
from viewkeep import Keeper, ViewkeepError
from viewkeep.tables.log import write_entry

CHOSEN = [
    "select * from customers",
    "select cid, count(*) as n, avg(discount) as mean from orders group by cid",
    "select c.cid, o.oid, l.price from customers c left join orders o on c.cid = o.cid "
    "left join lines l on o.oid = l.oid",
    "select distinct region from customers",
    "select weight, count(*) as n from items group by weight",  # a float is the ID
    "select kind from items",
]
FEED = "delta.enableChangeDataFeed"


def told(place: Path, since: int = 0) -> list[dict[str, Any]]:
    """What deltalake reads of a feed."""
    reader = DeltaTable(place).load_cdf(starting_version=since)
    return list(pa.RecordBatchReader.from_stream(reader).read_all().to_pylist())


def bag_of(place: Path, since: int = 0) -> Counter[tuple[Any, ...]]:
    """The rows that a feed leads to, from an empty table on, with hidden columns."""
    bag: Counter[tuple[Any, ...]] = Counter()
    for change in sorted(told(place, since), key=lambda each: each["_commit_version"]):
        sign = -1 if change["_change_type"] in ("delete", "update_preimage") else 1
        bag[tuple(v for name, v in change.items() if not name.startswith("_c"))] += sign
    assert min(bag.values(), default=0) >= 0
    return +bag


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path, durable=False)
    given = [(n, n % 3) for n in range(12)]
    keeper.create_table("t", {"id": "int", "g": "int"}, ["id"], rows=given)
    sql = "SELECT g, count(*) AS n FROM t GROUP BY g"
    keeper.create_view("groups", sql, policy="incremental")
    keeper.create_view("large", "SELECT g FROM groups WHERE n > 3", policy="incremental")
    return keeper


def test_an_unchanged_row_of_a_rewritten_file_is_not_told(keeper: Keeper, tmp_path: Path) -> None:
    keeper.apply("t", updates=[{"id": 0, "g": 1}])
    keeper.refresh()
    found = [(each["_change_type"], each["g"], each["n"]) for each in told(tmp_path / "groups", 1)]
    assert sorted(found) == [
        ("update_postimage", 0, 3),
        ("update_postimage", 1, 5),
        ("update_preimage", 0, 4),
        ("update_preimage", 1, 4),
    ]
    keeper.apply("t", inserts=[(100, 9)])
    keeper.refresh("groups")
    assert [(e["_change_type"], e["g"]) for e in told(tmp_path / "groups", 2)] == [("insert", 9)]


def test_a_feed_leads_to_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For random changes, views with and without keys, floats as IDs, and recomputations; views
    above read the feed."""
    monkeypatch.setattr(write_entry, "CHECKPOINTS", 3)
    rng = Random(7)
    model = random_database(TABLES, rng, 12)
    keeper = Keeper(tmp_path, durable=False)
    for name, table in TABLES.items():
        keeper.create_table(name, table, rows=list(model[name].values()))
    for number, sql in enumerate([*CHOSEN, *rng.sample(list(VIEWS.values()), 4)]):
        try:
            keeper.create_view(f"v{number}", sql, policy="incremental")
        except ViewkeepError as error:
            assert "needs Spark" in str(error)  # noqa: PT017 - the others must be created
    keeper.create_view("anew", CHOSEN[1], policy="full")
    keeper.create_view("above", "SELECT n, count(*) AS m FROM v1 GROUP BY n", policy="incremental")
    for _ in range(7):
        for batch in random_batch(model, TABLES, rng, 3).values():
            apply(keeper, batch)
            model = apply_batches(model, {batch.name: batch})
        keeper.refresh()
    for name in keeper.views:
        table = DeltaTable(tmp_path / name)
        stored = table.to_pyarrow_table()
        expected = Counter(zip(*(each.to_pylist() for each in stored.columns), strict=True))
        found = bag_of(tmp_path / name)
        assert Counter(map(repr, found.elements())) == Counter(map(repr, expected.elements())), name
        assert table.metadata().configuration[FEED] == "true"
        assert keeper.verify(name).ok
    check_replayed(keeper, keeper.views)
    assert list((tmp_path / "v1" / "_delta_log").glob("*.checkpoint.parquet"))
    assert not (tmp_path / "v1" / "_changes").exists(), "the feed tells them"


def test_a_feed_is_switched_off_and_on(keeper: Keeper, tmp_path: Path) -> None:
    sql = "SELECT id FROM t WHERE g = 1"
    keeper.create_view("v", sql, feed=False, policy="incremental")
    assert FEED not in DeltaTable(tmp_path / "v").metadata().configuration
    with pytest.raises(Exception, match=r"(?i)change data"):
        told(tmp_path / "v")
    for is_on, state in ((True, "true"), (False, "false"), (True, "true")):
        keeper.create_view("v", sql, replace=True, policy="incremental", feed=is_on)
        assert DeltaTable(tmp_path / "v").metadata().configuration[FEED] == state
        start = keeper.version("v")
        keeper.apply("t", deletes=[(1,)])
        keeper.refresh()
        if is_on:
            assert [each["_change_type"] for each in told(tmp_path / "v", start + 1)] == ["delete"]
        keeper.apply("t", inserts=[(1, 1)])
        keeper.refresh()
        assert rows(keeper, "v") == Counter({(n,): 1 for n in (1, 4, 7, 10)})


def test_vacuum_keeps_what_a_view_that_is_behind_reads(keeper: Keeper, tmp_path: Path) -> None:
    for n in (0, 3, 6):
        keeper.apply("t", updates=[{"id": n, "g": 1}])
        keeper.refresh("groups")
    files = tmp_path / "groups" / "_change_data"
    assert len(list(files.iterdir())) == 3
    keeper.vacuum(0, force=True)
    assert len(list(files.iterdir())) == 3, "the view above has seen none of them"
    keeper.refresh()
    assert keeper.vacuum(0, force=True)["groups"] >= 3
    assert not list(files.iterdir())
    keeper.apply("t", updates=[{"id": 9, "g": 1}])
    keeper.refresh("groups")
    for file in files.iterdir():
        file.unlink()  # as another engine would after a while
    [_, report] = Keeper(tmp_path).refresh()
    assert (report.strategy, report.error) == ("id", ""), "told by the difference of versions"
    assert keeper.verify("large").ok
