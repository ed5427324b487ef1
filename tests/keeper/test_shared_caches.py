"""Caches that several views keep alike are one table, and every view is right all the same."""

import os
import random
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from threading import Thread

import pytest
from deltalake import DeltaTable

from tests.keeper.faults import fault
from tests.keeper.lakes import check
from viewkeep import Keeper, Table
from viewkeep.diffs.script import Materialized
from viewkeep.lake import vacuum
from viewkeep.lake.lake import OWN
from viewkeep.lake.views.shared_caches import shared_form
from viewkeep.query.algebra import AggregateColumn, GroupBy, Scan
from viewkeep.query.expressions import Column, OpaqueCall
from viewkeep.query.types.data_types import BIGINT

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
COST = "SELECT did, sum(price) AS cost FROM uses u JOIN parts p ON u.pid = p.pid GROUP BY did"
DEAREST = "SELECT did, max(price) AS most FROM uses x JOIN parts y ON x.pid = y.pid GROUP BY did"


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    """Two views that keep the same join under other names."""
    keeper = Keeper(tmp_path, durable=False)
    parts = {"pid": "int", "price": "int", "name": "string", "weight": "double", "day": "date"}
    rows = [(n, 10 * n, "ab"[n % 2], n / 3, date(2999, 1, 1)) for n in range(6)]
    keeper.create_table("parts", parts, ["pid"], rows=rows)
    uses = [(n % 4, n % 6) for n in range(12)]
    keeper.create_table("uses", {"did": "int", "pid": "int"}, ["did", "pid"], rows=uses)
    keeper.create_view("cost", COST, policy="incremental")
    keeper.create_view("dearest", DEAREST, policy="incremental")
    return keeper


def _places(keeper: Keeper) -> list[Path]:
    folder = Path(keeper._lake.uri) / OWN / "shared_caches"
    return sorted(folder.iterdir()) if folder.exists() else []


def _versions(keeper: Keeper, *names: str) -> list[dict[str, int]]:
    return [dict(keeper._view(name).stored().state.caches) for name in names]


def _change(keeper: Keeper, choice: random.Random) -> None:
    part = choice.randrange(6)
    match choice.randrange(4):
        case 0:
            keeper.apply("parts", updates=[{"pid": part, "price": choice.randrange(100)}])
        case 1:
            keeper.apply("parts", updates=[{"pid": part, "name": choice.choice("abc")}])
        case _:
            use = {"did": choice.randrange(4), "pid": part}
            there = use in keeper.read("uses").to_pylist()
            keeper.apply("uses", **{"deletes" if there else "inserts": [use]})


def test_two_views_keep_one_table(keeper: Keeper) -> None:
    [place] = _places(keeper)
    assert DeltaTable(place).version() == 0, "the second view found it"
    assert "shared with dearest" in keeper.explain("cost", script=False)
    assert "shared with cost" in keeper.explain("dearest", script=False)
    for price in (7, 8):
        keeper.apply("parts", updates=[{"pid": 3, "price": price}])
        assert {report.strategy for report in keeper.refresh()} == {"id"}
        cost, dearest = _versions(keeper, "cost", "dearest")
        assert cost == dearest == {"cache_3": DeltaTable(place).version()}
        check(keeper)
    assert DeltaTable(place).version() == 2, "one version a change, for both"
    files = [path for path in place.rglob("*.parquet") if "_delta_log" not in path.parts]
    assert len(files) == 3, "what the second view wrote for nothing is gone"


@pytest.mark.parametrize("strategy", ["viewtree", "recursive"])
def test_maps_are_shared_whatever_views_call_their_tables(tmp_path: Path, strategy: str) -> None:
    """Those over several tables too; of equal ones of a view, the first."""
    keeper, rows = Keeper(tmp_path, durable=False), [(n, n % 3, n % 4, n) for n in range(20)]
    for name in "rst":
        columns = dict.fromkeys(("id", "y", "z", "a"), "int")
        keeper.create_table(name, columns, ["id"], rows=rows)
    sums = "count(*) AS n, sum({0}.a * {2}.a) AS x"
    joins = "r {0} JOIN s {1} ON {0}.y = {1}.y JOIN t {2} ON {1}.z = {2}.z"
    sql = f"SELECT {sums} FROM {joins}"
    twice = "SELECT count(*) AS n FROM r a JOIN r b ON a.y = b.y JOIN r c ON b.z = c.y"
    for name, text in {"p": sql.format(*"rst"), "q": sql.format(*"uvw"), "twice": twice}.items():
        keeper.create_view(name, text, strategy=strategy, policy="incremental")
    told = [keeper.explain(name, script=False) for name in "pq"]
    assert [text.count("shared with q") + text.count("shared with p") for text in told] == [
        len(keeper.script("p").caches)
    ] * 2
    for table in "rs":
        keeper.apply(table, inserts=[(50, 1, 2, 3)], updates=[{"id": 4, "y": 0}], deletes=[(7,)])
        keeper.refresh()
        keeper.vacuum(0, force=True)
        check(keeper)


def test_a_cache_that_another_view_has_written_is_not_computed_again(keeper: Keeper) -> None:
    keeper.apply("parts", updates=[{"pid": 3, "price": 7}])
    keeper.refresh("cost")
    keeper.refresh("dearest")
    targets = [
        {each.target for each in script.applies()}
        for name in ("cost", "dearest")
        for key, script in keeper._view(name).scripts.items()
        if "price" in key
    ]
    assert targets == [{"cache_3", "view"}, {"cache_3", "view"}, {"view"}]
    check(keeper)


@pytest.mark.parametrize("seed", range(12 if LONG else 1))
def test_views_that_are_refreshed_apart_are_right(keeper: Keeper, seed: int) -> None:
    choice = random.Random(seed)
    for _ in range(25):
        _change(keeper, choice)
        names = choice.sample(["cost", "dearest"], choice.randrange(3))
        for name in names:
            keeper.refresh(name)
        if choice.random() < 0.2:
            keeper.vacuum(0, force=True)
        if names:
            check(keeper, names)
    keeper.refresh()
    check(keeper)
    assert len(_places(keeper)) == 1


def test_views_that_are_refreshed_at_the_same_time_are_right(keeper: Keeper) -> None:
    failures = list[BaseException]()

    def work(name: str) -> None:
        own = Keeper(keeper._lake.uri, durable=False)
        try:
            for _ in range(6):
                own.refresh(name)
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=work, args=(name,)) for name in ("cost", "dearest")]
    for each in threads:
        each.start()
    for number in range(6):
        keeper.apply("parts", updates=[{"pid": number % 6, "price": number}])
    for each in threads:
        each.join()
    assert not failures
    keeper.refresh()
    check(keeper)


def test_a_refresh_that_dies_leaves_the_other_view_right(keeper: Keeper) -> None:
    choice = random.Random(1)
    for at, after in _deaths(keeper):
        _change(keeper, choice)
        with fault(at, after) as found:
            Keeper(keeper._lake.uri, durable=False).refresh()
        assert found.dead or found.calls < at
        own = Keeper(keeper._lake.uri, durable=False)
        own.refresh("dearest")
        check(own, ["dearest"])
        own.refresh()
        check(own)


def _deaths(keeper: Keeper) -> Iterator[tuple[int, bool]]:
    keeper.apply("parts", updates=[{"pid": 0, "price": 1}])
    with fault(0) as counted:
        Keeper(keeper._lake.uri, durable=False).refresh()
    assert counted.calls >= 4, "two views and a cache, with files"
    yield from ((at, after) for at in range(1, counted.calls + 1) for after in (False, True))


def test_the_last_view_that_is_dropped_takes_its_caches_along(keeper: Keeper) -> None:
    keeper.drop_view("cost")
    assert len(_places(keeper)) == 1
    keeper.apply("parts", updates=[{"pid": 3, "price": 99}])
    assert keeper.refresh()[0].strategy == "id"
    check(keeper)
    keeper.drop_view("dearest")
    assert _places(keeper) == []


def test_caches_that_no_definition_needs_any_more_are_cleaned(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cost", "dearest"):
        keeper.create_view(name, "SELECT did, pid FROM uses", replace=True)
    keeper.vacuum(0, force=True)
    assert len(_places(keeper)) == 1, "it is young: somebody may be about to use it"
    monkeypatch.setattr(vacuum, "UNCOMMITTED_HOURS", 0)
    counts = keeper.vacuum(0, dry_run=True, force=True)
    assert [counts[name] for name in counts if name.startswith("shared")] == [1]
    assert len(_places(keeper)) == 1
    keeper.vacuum(0, force=True)
    assert _places(keeper) == []


def test_a_repaired_view_computes_its_caches_itself(keeper: Keeper) -> None:
    [place] = _places(keeper)
    before = DeltaTable(place).version()
    keeper.repair("cost")
    assert DeltaTable(place).version() == before + 1
    keeper.apply("parts", updates=[{"pid": 3, "price": 99}])
    keeper.refresh()
    check(keeper)


@pytest.mark.parametrize(
    "sql",
    [
        COST.replace("did, sum", "did, sum(weight) AS w, sum"),
        COST.replace(" GROUP", " WHERE name <> 'p.pid' GROUP"),
        COST.replace("u.pid = p.pid", "u.pid = p.pid AND p.price > 10"),
        COST.replace("uses u", "uses p").replace("parts p", "parts u"),
    ],
    ids=["other columns", "a literal", "another condition", "aliases the other way round"],
)
def test_what_is_not_alike_is_not_shared(keeper: Keeper, sql: str) -> None:
    keeper.create_view("other", sql, policy="incremental")
    keys = [set(keeper._view(name).stored().state.shared_caches.values()) for name in keeper.views]
    assert len(keys) == 3
    assert keys[0] == keys[1]
    assert not keys[2] & keys[0]
    keeper.apply("parts", updates=[{"pid": n, "price": 99 + n, "name": "x"} for n in (3, 4)])
    keeper.refresh()
    check(keeper)


def test_literals_are_no_names(keeper: Keeper) -> None:
    """`'u.a'` over the alias u and `'x.a'` over the alias x are two literals."""
    base = "SELECT did, sum(price) AS s FROM uses {0} JOIN parts ON {0}.pid = parts.pid"
    where = " WHERE concat(name, '.a') <> '{0}.a' GROUP BY did"
    for alias in ("a", "b"):
        keeper.create_view(f"v_{alias}", (base + where).format(alias), policy="incremental")
    keys = [keeper._view(f"v_{each}").stored().state.shared_caches for each in ("a", "b")]
    assert set(keys[0].values()).isdisjoint(keys[1].values())
    keeper.apply("parts", updates=[{"pid": 3, "name": "a"}, {"pid": 2, "name": "b"}])
    keeper.refresh()
    check(keeper)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT did, max(s) AS m FROM (SELECT did, u.pid, sum(weight) AS s FROM uses u JOIN parts p"
        " ON u.pid = p.pid GROUP BY did, u.pid) AS t GROUP BY did",
        "SELECT pid, price FROM parts ORDER BY price DESC LIMIT 2",
        "SELECT max(n) AS m FROM (SELECT did, count(*) AS n FROM uses u JOIN parts p"
        " ON u.pid = p.pid WHERE p.day > current_date() GROUP BY did) AS t",
    ],
    ids=["sums of floats", "a reserve", "the clock"],
)
def test_what_depends_on_more_than_its_inputs_is_not_shared(keeper: Keeper, sql: str) -> None:
    keeper.create_view("other", sql)
    view = keeper._view("other")
    own = {kept.name for kept in view.script.caches} - set(view.shared_forms)
    assert own, "one of its caches is its own"
    keeper.apply("parts", updates=[{"pid": 3, "price": 99, "weight": 0.1}])
    keeper.refresh()
    assert keeper.verify("other").ok


def test_functions_of_a_session_are_not_shared() -> None:
    """Another session may have another function of that name, wherever a query calls it."""
    parts = Scan("parts", Table({"pid": "int", "price": "int"}, ["pid"]), "p")
    call = OpaqueCall(("tax(", ")"), (Column("p.price"),), BIGINT)
    for argument, is_shared in ((Column("p.price"), True), (call, False)):
        total = AggregateColumn("s", "sum", argument)
        grouped = GroupBy(parts, ("p.pid",), (total,))
        kept = Materialized("cache_1", grouped, ("p.pid",))
        assert (shared_form(kept, ("p.pid",), [kept]) is not None) == is_shared
