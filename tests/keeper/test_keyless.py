"""Views over tables without a key: bags, kept by the copies that come and go.

Random histories of appends, overwrites, deletes of single copies, updates and compaction, with
equal rows, NULL and NaN; after every refresh each view equals its query.
"""

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.diffs.harness import Bag, expect, plain
from tests.keeper.lakes import in_duckdb, location, rows
from viewkeep import Keeper
from viewkeep.execute import few_rows
from viewkeep.tables.feed import Feed

SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string()), ("x", pa.float64())])
VIEWS = {
    "everything": "SELECT a, b, x FROM log",
    "some": "SELECT b FROM log WHERE a > 1",
    "named": "SELECT n.name, l.b FROM log AS l JOIN names AS n ON l.a = n.id",
    "unnamed": "SELECT l.a, l.b, n.name FROM log AS l LEFT JOIN names AS n ON l.a = n.id",
    "pairs": "SELECT l.b AS one, r.b AS other FROM log AS l JOIN log AS r ON l.a = r.a",
    "other_pairs": "SELECT l.a, o.b FROM log AS l JOIN other AS o ON l.b = o.b",
    "counts": "SELECT b, count(*) AS n, sum(a) AS s, min(x) AS low, max(a) AS high "
    "FROM log GROUP BY b",
    "total": "SELECT count(*) AS n FROM log",
    "by_name": "SELECT n.name, count(*) AS c, avg(l.a) AS mean FROM log AS l "
    "JOIN names AS n ON l.a = n.id GROUP BY n.name",
    "once": "SELECT DISTINCT a, b FROM log",
    "both": "SELECT a, b FROM log UNION ALL SELECT a, b FROM other",
    "either": "SELECT a FROM log UNION SELECT a FROM other",
    "without": "SELECT a, b FROM log EXCEPT SELECT a, b FROM other",
    "shared": "SELECT a FROM log INTERSECT SELECT a FROM other",
    "seen": "SELECT name FROM names WHERE id IN (SELECT a FROM log)",
    "unseen": "SELECT name FROM names AS n WHERE NOT EXISTS "
    "(SELECT 1 FROM log AS l WHERE l.a = n.id)",
    "ranked": "SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS place FROM log",
    "over_some": "SELECT b, count(*) AS n FROM some GROUP BY b",
    "over_everything": "SELECT e.b, n.name FROM everything AS e JOIN names AS n ON e.a = n.id",
}
SHORT = ("everything", "pairs", "counts", "by_name", "once", "unseen", "over_everything")
SEEDS = range(40) if os.environ.get("VIEWKEEP_LONG") else (1, 2)
NAN = float("nan")


def bag(rng: random.Random, most: int) -> list[tuple[Any, ...]]:
    """Rows of few values, so that many are equal."""
    return [
        (rng.choice([None, 1, 2, 3]), rng.choice([None, "p", "q"]), rng.choice([0.5, NAN, None]))
        for _ in range(rng.randrange(most))
    ]


def frame(given: list[tuple[Any, ...]]) -> pa.Table:
    """Rows in Arrow."""
    columns = zip(*given, strict=True) if given else [(), (), ()]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def check(keeper: Keeper) -> None:
    """Every view is what DuckDB answers over the same files."""
    with in_duckdb(keeper) as connection:
        for name in keeper.views:
            expected = Counter(connection.execute(f'SELECT * FROM "{name}"').fetchall())
            expect(name, equal_to_itself(rows(keeper, name)), equal_to_itself(expected))


def equal_to_itself(given: Bag) -> Bag:
    """Rows in which NaN is a value as others are."""
    counts: Bag = Counter()
    for row, count in plain(given).items():
        counts[tuple("NaN" if value != value else value for value in row)] += count
    return counts


def lake(tmp_path: Path, names: tuple[str, ...], spark: Any = None, feed: bool = False) -> Keeper:
    """A lake with two tables without a key and one with a key."""
    keeper = Keeper(tmp_path / "lake", spark, durable=False)
    properties = {"delta.enableChangeDataFeed": "true"} if feed else None
    for name in ("log", "other"):
        place = tmp_path / name
        write_deltalake(
            place, frame([(1, "p", 0.5)] * 2 + [(2, None, NAN)]), configuration=properties
        )
        keeper.register_table(name, place)
    keeper.create_table("names", {"id": "int", "name": "string"}, ["id"], rows=[(1, "x"), (2, "y")])
    for name in names:
        keeper.create_view(name, VIEWS[name], policy="strict")
    return keeper


def change(rng: random.Random, place: Path) -> None:
    """One commit to a table, or several."""
    table = DeltaTable(place)
    match rng.choice(["append", "append", "copy", "delete", "update", "overwrite", "compact"]):
        case "append":
            write_deltalake(place, frame(bag(rng, 6)), mode="append")
        case "copy":  # one copy of a row less, all files anew
            there = [tuple(row.values()) for row in table.to_pyarrow_table().to_pylist()]
            rng.shuffle(there)
            write_deltalake(place, frame(there[1:]), mode="overwrite")
        case "delete":
            table.delete(rng.choice(["a = 1", "b = 'p'", "x IS NULL", "b IS NULL"]))
        case "update":
            table.update({"a": "a + 1"}, predicate=rng.choice(["a = 1", "b = 'q'"]))
        case "overwrite":
            write_deltalake(place, frame(bag(rng, 8)), mode="overwrite")
        case "compact":
            table.optimize.compact()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """By Python for a few rows, and by DuckDB; with a change data feed, and without."""
    rng = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(few_rows, "MOST_ROWS", -1)
    keeper = lake(tmp_path, tuple(VIEWS), feed=seed % 4 > 1)
    for step in range(3):
        for name in rng.sample(["log", "other"], rng.randint(1, 2)):
            change(rng, tmp_path / name)
        if step % 2:
            keeper.apply("names", updates=[{"id": 1, "name": f"x{step}"}])
        for report in keeper.refresh():
            assert report.strategy in ("id", "none"), (seed, report)
        check(keeper)
    assert all(keeper.verify(name).ok for name in VIEWS)


def test_random_history_on_spark(tmp_path: Path, spark: Any) -> None:
    rng = random.Random(7)
    keeper = lake(tmp_path, SHORT[: 5 if not os.environ.get("VIEWKEEP_LONG") else None], spark)
    for _ in range(2):
        change(rng, tmp_path / "log")
        write_deltalake(tmp_path / "log", frame(bag(rng, 6)), mode="append")
        for report in keeper.refresh(backend="spark"):
            assert report.strategy in ("id", "none"), report
        check(keeper)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values were looked up in old versions."""
    counts: list[int] = []
    look_up = Feed._copies_before

    def counted(self: Feed, since: int, rows: pa.Table) -> Any:
        counts.append(rows.num_rows)
        return look_up(self, since, rows)

    monkeypatch.setattr(Feed, "_copies_before", counted)
    return counts


def test_sums_of_a_table_that_grows_read_new_files_only(tmp_path: Path, reads: list[int]) -> None:
    """Old files may even be gone: nothing is looked up in them."""
    keeper = lake(tmp_path, ("total", "by_name"))
    keeper.create_view("sums", "SELECT b, sum(a) AS s, count(*) AS n FROM log GROUP BY b")
    before = {file: Path(file).read_bytes() for file in DeltaTable(tmp_path / "log").file_uris()}
    write_deltalake(tmp_path / "log", frame([(1, "p", 0.5)] * 3), mode="append")
    for file in before:
        Path(file).unlink()
    done = {each.view: each for each in keeper.refresh("total", "sums")}
    assert {each.strategy for each in done.values()} == {"id"}
    assert not reads
    for file, content in before.items():
        Path(file).write_bytes(content)
    assert rows(keeper, "sums") == {("p", 5, 5): 1, (None, 2, 1): 1}
    assert rows(keeper, "total") == {(6,): 1}


def test_copies_are_looked_up_where_rows_are_kept(tmp_path: Path, reads: list[int]) -> None:
    keeper = lake(tmp_path, ("everything",))
    write_deltalake(tmp_path / "log", frame([(1, "p", 0.5)] * 3 + [(9, "z", 1.0)]), mode="append")
    [report] = keeper.refresh()
    assert reads == [4]
    assert (report.changes, report.rows_changed) == ({"log": 4}, 4)
    stored = DeltaTable(location(keeper, "everything")).to_pyarrow_table().to_pylist()
    copies = sorted(row["#log.#copy"] for row in stored if row["b"] == "p")
    assert copies == [1, 2, 3, 4, 5]


def test_a_compacted_table_changes_nothing(tmp_path: Path) -> None:
    keeper = lake(tmp_path, ("everything", "counts"))
    write_deltalake(tmp_path / "log", frame([(1, "p", 0.5)]), mode="append")
    keeper.refresh()
    DeltaTable(tmp_path / "log").optimize.compact()
    assert [each.rows_changed for each in keeper.refresh()] == [0, 0]
    check(keeper)


def test_columns_that_a_view_does_not_read_tell_no_rows_apart(tmp_path: Path) -> None:
    """An update of another column is no change, and one that cannot be compared is in no way."""
    place = tmp_path / "tagged"
    tags = pa.array([[("k", 1)], [("k", 2)]], pa.map_(pa.string(), pa.int32()))
    write_deltalake(place, pa.table({"a": [1, 1], "n": [1, 2], "tags": tags}))
    keeper = Keeper(tmp_path / "lake")
    keeper.register_table("tagged", place)
    keeper.create_view("narrow", "SELECT a FROM tagged", policy="strict")
    DeltaTable(place).update({"n": "n + 1"})
    [report] = keeper.refresh()
    assert report.reason == "no change concerns the view"
    keeper.create_view("wide", "SELECT a, tags FROM tagged")
    assert 'values of "tags", map<string,int>, do not compare' in str(keeper.explain("wide"))
    DeltaTable(place).delete("n = 2")
    assert {each.view: each.strategy for each in keeper.refresh()} == {
        "narrow": "id",
        "wide": "recompute",
    }
    assert rows(keeper, "narrow") == {(1,): 1}


def test_recursive_strategies(tmp_path: Path) -> None:
    keeper = lake(tmp_path, ())
    keeper.create_view("sums", VIEWS["by_name"], strategy="recursive-streams")
    rng = random.Random(3)
    for _ in range(4):
        change(rng, tmp_path / "log")
        keeper.refresh()
        check(keeper)


def test_changes_of_copies_that_never_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers below 1 would delete nothing: the view is not left wrong in silence."""
    keeper = lake(tmp_path, ("everything",))
    monkeypatch.setattr(Feed, "_copies_before", lambda self, since, rows: [0] * rows.num_rows)
    DeltaTable(tmp_path / "log").delete("a = 2")
    with pytest.raises(Exception, match="more copies of a row are gone than there were"):
        keeper.refresh()
