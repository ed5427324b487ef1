"""Columns of tables that come, go, get other names and wider types: only the views that read what
is gone stop, only those that read what is wider are computed anew, and all others go on."""

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.schema import Field, PrimitiveType

from tests.keeper.faults import fault
from tests.keeper.lakes import check_replayed, rows
from viewkeep import Keeper, RefreshError, ViewkeepError
from viewkeep.lake.apply import apply_changes, user_changes
from viewkeep.query.types.data_types import parse_type
from viewkeep.tables.arrow_rows import arrow_type

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
WIDER = {"smallint": "int", "int": "bigint", "float": "double", "decimal(5, 2)": "decimal(9, 3)"}
KINDS = ("smallint", "int", "bigint", "float", "string", "decimal(5, 2)")


@dataclass
class Model:
    """A table: its columns with their types, and its rows by their keys."""

    name: str
    columns: dict[str, str]
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)

    def arrow(self) -> pa.Table:
        kinds = {name: arrow_type(parse_type(kind)) for name, kind in self.columns.items()}
        return pa.Table.from_pylist(list(self.rows.values()), pa.schema(list(kinds.items())))


@dataclass
class Watched:
    """A view: its query, with all columns named, and what it reads: tables, columns and types."""

    sql: str
    reads: dict[tuple[str, str], str]
    lower: tuple[str, ...] = ()


def value(kind: str, rng: Random) -> Any:
    if rng.random() < 0.2:
        return None
    number = rng.randrange(-9, 10)
    match kind.partition("(")[0]:
        case "string":
            return rng.choice("abc")
        case "float" | "double":
            return number / 2
        case "decimal":
            return pa.scalar(number, pa.decimal128(38, 0)).cast(pa.decimal128(38, 2)).as_py()
    return number


class Owned:
    """A table of the lake."""

    def __init__(self, keeper: Keeper, model: Model) -> None:
        self.keeper, self.model = keeper, model
        keeper.create_table(model.name, model.columns, key=["id"], rows=model.arrow())

    def change(self, rng: Random) -> None:
        old, model = dict(self.model.rows), self.model
        changed = change_rows(model, rng)
        self.keeper.apply(
            model.name,
            inserts=[r for i, r in changed.items() if i not in old],
            updates=[r for i, r in changed.items() if i in old and len(r) > 1],
            deletes=[{"id": i} for i in old if i not in model.rows],
        )

    def add(self, name: str, kind: str) -> None:
        self.keeper.alter_table(self.model.name, add={name: kind})

    def drop(self, name: str) -> None:
        self.keeper.alter_table(self.model.name, drop=[name])

    def rename(self, name: str, new: str) -> None:
        self.keeper.alter_table(self.model.name, rename={name: new})

    def widen(self, name: str, kind: str) -> None:
        self.keeper.alter_table(self.model.name, widen={name: kind})


class Registered:
    """A table of another writer, written by deltalake."""

    def __init__(
        self, keeper: Keeper, model: Model, place: Path, key: list[str], feed: bool
    ) -> None:
        self.keeper, self.model, self.place = keeper, model, place
        settings = {"delta.enableChangeDataFeed": str(feed).lower()}
        write_deltalake(place, model.arrow(), configuration=settings)
        keeper.register_table(model.name, place, key=key)

    def overwrite(self, *names: str) -> None:
        write_deltalake(self.place, self.model.arrow(), mode="overwrite", schema_mode="overwrite")

    def change(self, rng: Random) -> None:
        old = dict(self.model.rows)
        changed = change_rows(self.model, rng)
        new = replace(self.model, rows=changed)
        if all(i not in old for i in changed) and len(self.model.rows) > len(old):
            write_deltalake(self.place, new.arrow(), mode="append")
        if self.model.rows != old | changed or any(i in old for i in changed):
            self.overwrite()

    def add(self, name: str, kind: str) -> None:
        if kind in ("int", "string"):
            type_ = PrimitiveType({"int": "integer"}.get(kind, kind))
            DeltaTable(self.place).alter.add_columns([Field(name, type_)])
        else:
            none = replace(self.model, columns={**self.model.columns, name: kind}, rows={})
            write_deltalake(self.place, none.arrow(), mode="append", schema_mode="merge")

    def rewrite(self, *_: str) -> None:
        self.overwrite()

    drop = rename = widen = rewrite


def change_rows(model: Model, rng: Random) -> dict[int, dict[str, Any]]:
    """Change rows of a model; the rows that are new or other ones now."""
    others = {name: kind for name, kind in model.columns.items() if name != "id"}
    changed: dict[int, dict[str, Any]] = {}
    for key in rng.sample(sorted(model.rows), k=min(len(model.rows), rng.randrange(3))):
        if rng.random() < 0.5:
            del model.rows[key]
        else:
            values = {name: value(kind, rng) for name, kind in others.items()}
            changed[key] = model.rows[key] = {"id": key, **values}
    for _ in range(rng.randrange(3)):
        key = max([99, *model.rows, *changed]) + 1 + rng.randrange(3)
        changed[key] = model.rows[key] = {
            "id": key,
            **{name: value(kind, rng) for name, kind in others.items()},
        }
    return changed


class Evolution:
    """A lake whose tables change in rows and columns, and what each view must be."""

    def __init__(self, place: Path, seed: int) -> None:
        self.rng, self.place = Random(seed), place
        self.keeper = Keeper(place / "lake", durable=False)
        columns = {"id": "int", "a": "int", "b": "string", "c": "smallint"}
        self.tables: list[Owned | Registered] = []
        for number, name in enumerate(("own", "other")):
            model = Model(name, dict(columns))
            change_rows(model, self.rng)
            change_rows(model, self.rng)
            if number == 0:
                self.tables.append(Owned(self.keeper, model))
            else:
                key = ["id"] if self.rng.random() < 0.6 else []
                about = (place / name, key, self.rng.random() < 0.5)
                self.tables.append(Registered(self.keeper, model, *about))
        self.views: dict[str, Watched] = {}
        for _ in range(5):
            self.create()

    @property
    def models(self) -> dict[str, Model]:
        return {each.model.name: each.model for each in self.tables}

    def create(self) -> None:
        rng, name = self.rng, f"v{len(self.views)}"
        model = rng.choice(list(self.models.values()))
        others = [each for each in model.columns if each != "id"]
        column = rng.choice(others) if others else "id"
        sound = [n for n in self.views if not self.lost(n)]
        match rng.randrange(5):
            case 0:
                sql = f"SELECT * FROM {model.name}"
                self.define(name, sql, self.all_named(model), [(model, list(model.columns))])
            case 1:
                sql = f"SELECT {column} AS k, count(*) AS n FROM {model.name} GROUP BY {column}"
                self.define(name, sql, sql, [(model, [column])])
            case 2:
                sql = f"SELECT count({column}) AS n, max({column}) AS m FROM {model.name}"
                self.define(name, sql, sql, [(model, [column])])
            case 3:
                left, right = self.models["own"], self.models["other"]
                sql = "SELECT own.id AS i, other.id AS j FROM own JOIN other ON own.id = other.id"
                self.define(name, sql, sql, [(left, ["id"]), (right, ["id"])])
            case 4 if sound:
                lower = rng.choice(sound)
                sql = f"SELECT * FROM {lower}"
                self.define(name, sql, sql, [], (lower,))

    def all_named(self, model: Model) -> str:
        return f"SELECT {', '.join(model.columns)} FROM {model.name}"

    def define(
        self,
        name: str,
        sql: str,
        named: str,
        reads: list[tuple[Model, list[str]]],
        lower: tuple[str, ...] = (),
    ) -> None:
        self.keeper.create_view(name, sql, policy="incremental")
        types = {(m.name, c): m.columns[c] for m, columns in reads for c in columns}
        self.views[name] = Watched(named, types, lower)

    def lost(self, name: str) -> bool:
        """Whether a view reads a column that is not what it was, or is only wider."""
        view = self.views[name]
        for (table, column), kind in view.reads.items():
            now = self.models[table].columns.get(column, "")
            while kind != now and kind in WIDER:
                kind = WIDER[kind]
            if kind != now:
                return True
        return any(map(self.lost, view.lower))

    def reads_of(self, name: str) -> set[tuple[str, str]]:
        view = self.views[name]
        return set(view.reads).union(*map(self.reads_of, view.lower))

    def step(self) -> set[tuple[str, str]]:
        """One change of rows or columns; the columns whose readers may be computed anew."""
        table = self.rng.choice(self.tables)
        model, rng = table.model, self.rng
        others = [each for each in model.columns if each != "id"]
        column = rng.choice(others) if others else ""
        free = [each for each in "abcdef" if each not in model.columns]
        match rng.randrange(8):
            case 0 if free:
                name, kind = rng.choice(free), rng.choice(KINDS)
                model.columns[name] = kind
                for row in model.rows.values():
                    row[name] = None
                table.add(name, kind)
                return {(model.name, name)}
            case 1 if column:
                del model.columns[column]
                for row in model.rows.values():
                    del row[column]
                table.drop(column)
                return {(model.name, column)}
            case 2 if column and free:
                new = rng.choice(free)
                model.columns = {new if n == column else n: k for n, k in model.columns.items()}
                for row in model.rows.values():
                    row[new] = row.pop(column)
                table.rename(column, new)
                return {(model.name, column), (model.name, new)}
            case 3 if column and model.columns[column] in WIDER:
                model.columns[column] = WIDER[model.columns[column]]
                table.widen(column, model.columns[column])
                return {(model.name, column)}
            case 4:
                self.create()
            case _:
                table.change(rng)
        return set()

    def refresh(self) -> dict[str, Any]:
        try:
            reports = self.keeper.refresh()
        except RefreshError as error:
            reports = error.reports
        return {each.view: each for each in reports}

    def check(self, changed: set[tuple[str, str]], is_plain: bool = True) -> None:
        """`is_plain`: no column was altered twice since, which tells a bit less."""
        reports = self.refresh()
        with duckdb.connect() as connection:
            for name, model in self.models.items():
                connection.register(name, model.arrow())
            for name, view in self.views.items():
                if self.lost(name):
                    assert reports[name].error, name
                    continue
                connection.execute(f"CREATE VIEW {name} AS {view.sql}")
                expected = Counter(connection.execute(f"FROM {name}").fetchall())
                assert not reports[name].error, reports[name].error
                assert rows(self.keeper, name) == expected, name
                if is_plain and not changed & self.reads_of(name):
                    assert not reports[name].from_scratch, (name, reports[name])
                for table, column in view.reads:  # wider from now on
                    view.reads[table, column] = self.models[table].columns[column]


def evolve(place: Path, seed: int, steps: int) -> None:
    evolution = Evolution(place, seed)
    changed, is_plain = set[tuple[str, str]](), True
    for _ in range(steps):
        altered = evolution.step()
        changed, is_plain = changed | altered, is_plain and not changed & altered
        if evolution.rng.random() < 0.7:
            evolution.check(changed, is_plain)
            changed, is_plain = set(), True
    evolution.check(changed, is_plain)
    for name in evolution.views:
        if not evolution.lost(name):
            assert evolution.keeper.verify(name).ok


@pytest.mark.parametrize("seed", range(6))
def test_views_over_tables_whose_columns_change(tmp_path: Path, seed: int) -> None:
    evolve(tmp_path, seed, 14)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160 if LONG else 104))
def test_many_changes_of_columns(tmp_path: Path, seed: int) -> None:
    evolve(tmp_path, seed, 30)


# --- case by case ---------------------------------------------------------------------------------

PARTS = {"pid": "int", "price": "int", "name": "string"}
VIEWS = {
    "star": "SELECT * FROM parts",
    "cost": "SELECT sum(price) AS cost, count(*) AS n FROM parts",
    "names": "SELECT name, count(*) AS n FROM parts GROUP BY name",
    "many": "SELECT name FROM names WHERE n > 1",
}


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", durable=False)
    keeper.create_table("parts", PARTS, key=["pid"], rows=[(1, 10, "a"), (2, 20, "a")])
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql, policy="incremental")
    return keeper


def errors(keeper: Keeper) -> dict[str, str]:
    """The views that a refresh does not bring up to date, and why."""
    try:
        keeper.refresh()
    except RefreshError as error:
        return {each.view: each.error for each in error.reports if each.error}
    return {}


def test_new_columns_change_no_view(keeper: Keeper) -> None:
    before = {name: keeper.version(name) for name in VIEWS}
    assert keeper.alter_table("parts", add={"size": "int"}) == []
    assert [each.from_scratch for each in keeper.refresh()] == [False] * 4
    keeper.apply("parts", updates=[{"pid": 1, "size": 7}])
    changed = {each.view: each.rows_changed for each in keeper.refresh()}
    assert changed == dict.fromkeys(VIEWS, 0), "no view sees the column"
    assert keeper.read("star").column_names == list(PARTS)
    assert "pid, price, name of parts, which has got other columns since" in keeper.explain("star")
    keeper.create_view("star", VIEWS["star"], replace=True)
    assert keeper.read("star").column_names == [*PARTS, "size"]
    assert keeper.verify("star").ok
    assert keeper.version("cost") - before["cost"] == 2
    check_replayed(keeper, ["parts", "cost", "names"])


def test_columns_that_are_gone_stop_their_readers_only(keeper: Keeper) -> None:
    assert keeper.alter_table("parts", rename={"name": "title"}) == ["star", "names"]
    keeper.apply("parts", inserts=[(3, 30, "c")])
    problems = errors(keeper)
    assert problems["names"] == (
        '"names" reads column "name" of table "parts", which is gone; its rows stay as they are: '
        "create the view again with replace=True, drop it, or bring the column back"
    )
    assert problems["many"] == "not refreshed, since it reads names"
    assert set(problems) == {"star", "names", "many"}
    assert rows(keeper, "cost") == {(60, 3): 1}
    assert rows(keeper, "names") == {("a", 2): 1}
    assert keeper.read("names").to_pylist() == [{"name": "a", "n": 2}]
    status = {each.name: each.problem for each in keeper.status()}
    assert "which is gone" in status["names"]
    assert not status["cost"]
    assert len(keeper.history("names")) == 1
    stages = {each.view: each.action for each in keeper.plan()}
    assert stages == {"star": "fails", "cost": "skip", "names": "fails", "many": "fails"}
    with pytest.raises(ViewkeepError, match="is gone"):
        keeper.repair("names")
    keeper.create_view(
        "names", "SELECT title AS name, count(*) AS n FROM parts GROUP BY title", replace=True
    )
    assert set(errors(keeper)) == {"star"}
    assert keeper.verify("many").ok
    keeper.drop_view("star")
    assert errors(keeper) == {}


def test_a_column_that_comes_back_with_other_values(keeper: Keeper) -> None:
    """Its readers are computed anew: no change tells that the values are gone."""
    keeper.alter_table("parts", drop=["name"])
    keeper.alter_table("parts", add={"name": "string"})
    assert errors(keeper) == {}
    assert rows(keeper, "names") == {(None, 2): 1}
    assert rows(keeper, "star") == {(1, 10, None): 1, (2, 20, None): 1}
    keeper.alter_table("parts", drop=["name"])
    assert set(errors(keeper)) == {"star", "names", "many"}
    keeper.alter_table("parts", add={"name": "int"})
    assert (
        '"names" reads column "name" of table "parts", which is int now, and was string'
        in (errors(keeper)["names"])
    )


def test_wider_columns_are_computed_anew_where_they_are_read(keeper: Keeper) -> None:
    assert keeper.alter_table("parts", widen={"price": "bigint"}) == []
    anew = {each.view: each.from_scratch for each in keeper.refresh()}
    assert anew == {"star": True, "cost": True, "names": False, "many": False}
    keeper.apply("parts", inserts=[(3, 1 << 40, "c")])
    keeper.refresh()
    assert rows(keeper, "cost") == {((1 << 40) + 30, 3): 1}
    assert keeper.describe_views("star")[0].columns["price"] == "bigint"
    assert all(keeper.verify(name).ok for name in VIEWS)


def test_several_alterations_in_one_commit(keeper: Keeper) -> None:
    before = keeper.version("parts")
    keeper.alter_table(
        "parts",
        add={"size": "int"},
        drop=["name"],
        rename={"pid": "id"},
        widen={"price": "double"},
    )
    assert keeper.version("parts") == before + 1
    assert keeper.table("parts").key == ("id",)
    assert rows(keeper, "parts") == {(1, 10.0, None): 1, (2, 20.0, None): 1}
    keeper.apply("parts", updates=[{"id": 1, "size": 4}], deletes=[(2,)])
    assert set(errors(keeper)) == {"star", "names", "many"}
    assert rows(keeper, "cost") == {(10.0, 1): 1}


def test_changes_of_a_table_are_told_back_to_where_columns_went(keeper: Keeper) -> None:
    keeper.apply("parts", inserts=[(3, 30, "c")])
    keeper.alter_table("parts", widen={"price": "bigint"}, add={"size": "int"})
    check_replayed(keeper, ["parts"])
    keeper.alter_table("parts", rename={"name": "title"})
    version = keeper.version("parts")
    with pytest.raises(ViewkeepError, match=rf"columns are gone.*since={version}\)"):
        keeper.changes("parts")
    keeper.apply("parts", deletes=[(3,)])
    [change] = keeper.changes("parts", since=version).to_pylist()
    assert change["before"] == {"pid": 3, "price": 30, "title": "c", "size": None}
    assert keeper.read("parts", version=0).column_names == list(PARTS)


def test_natural_joins_and_bare_names_mean_what_they_meant(keeper: Keeper) -> None:
    keeper.create_table("uses", {"did": "int", "pid": "int"}, key=["did"], rows=[(1, 1), (2, 2)])
    keeper.create_view("joined", "SELECT did, price FROM parts NATURAL JOIN uses")
    keeper.create_view("bare", "SELECT name FROM parts JOIN uses ON parts.pid = uses.pid")
    before = {name: rows(keeper, name) for name in ("joined", "bare")}
    keeper.alter_table("uses", add={"price": "int", "name": "string"})
    assert errors(keeper) == {}
    assert {name: rows(keeper, name) for name in before} == before
    keeper.alter_table("uses", drop=["price"])
    assert errors(keeper) == {}


def test_an_unread_column_of_a_subquery(keeper: Keeper) -> None:
    keeper.create_view("inner", "SELECT pid FROM (SELECT * FROM parts) AS p WHERE p.price > 5")
    assert "inner" not in keeper.alter_table("parts", drop=["name"])
    keeper.apply("parts", inserts=[(3, 30)])
    assert "inner" not in errors(keeper)
    assert rows(keeper, "inner") == {(1,): 1, (2,): 1, (3,): 1}


@pytest.mark.parametrize(
    ("alteration", "problem"),
    [
        ({}, "nothing to alter"),
        ({"add": {"price": "int"}}, 'has a column "price" already'),
        ({"add": {"PRICE": "int"}}, 'has a column "PRICE" already'),
        ({"add": {"size": "int not null"}}, "rows that are there have no value"),
        ({"add": {"size": "integral"}}, "integral"),
        ({"add": {"a b": "int"}}, "Delta tables allow no ' ' in names"),
        ({"add": {"#a": "int"}}, "names with #"),
        ({"drop": ["pid"]}, 'column "pid" is in the key'),
        ({"drop": ["prize"]}, 'no column "prize" .*did you mean "price"'),
        ({"drop": ["price"], "rename": {"price": "cost"}}, "is named twice"),
        ({"rename": {"price": "name"}}, "the same name"),
        ({"rename": {"price": ""}}, "no name"),
        ({"widen": {"price": "smallint"}}, "smallint does not hold all values of int"),
        ({"widen": {"price": "string"}}, "string does not hold all values of int"),
        ({"widen": {"name": "string"}}, "string does not hold all values of string"),
    ],
)
def test_alterations_that_are_refused_change_nothing(
    keeper: Keeper, alteration: dict[str, Any], problem: str
) -> None:
    before = keeper.version("parts"), keeper.table("parts"), keeper._lake.catalog.read()
    with pytest.raises(ViewkeepError, match=problem):
        keeper.alter_table("parts", **alteration)
    assert (keeper.version("parts"), keeper.table("parts"), keeper._lake.catalog.read()) == before


def test_what_cannot_be_altered(keeper: Keeper, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "orders", pa.table({"oid": [1]}))
    keeper.register_table("orders", tmp_path / "orders")
    keeper.create_table("uses", {"did": "int", "pid": "int"}, ["did"], ["pid -> parts.pid"])
    for name, problem in {
        "orders": "is registered: its own writers alter it",
        "names": "is a view",
        "part": 'did you mean "parts"',
    }.items():
        with pytest.raises(ViewkeepError, match=problem):
            keeper.alter_table(name, add={"size": "int"})
    with pytest.raises(ViewkeepError, match=r'foreign key "pid -> parts\.pid" of table "uses"'):
        keeper.alter_table("parts", rename={"pid": "id"})
    for name, problem in {"parts": "is not registered", "names": "there is a view"}.items():
        with pytest.raises(ViewkeepError, match=problem):
            keeper.register_table(name, tmp_path / "orders", replace=True)


# --- tables of others -----------------------------------------------------------------------------


def orders(keeper: Keeper, place: Path) -> Path:
    write_deltalake(place / "orders", pa.table({"oid": [1, 2], "n": [1, 2], "t": ["a", "b"]}))
    keeper.register_table("orders", place / "orders", key=["oid"])
    keeper.create_view("total", "SELECT sum(n) AS n FROM orders", policy="incremental")
    return place / "orders"


def test_new_columns_of_others_are_seen_at_once(keeper: Keeper, tmp_path: Path) -> None:
    place = orders(keeper, tmp_path)
    more = pa.table({"oid": [3], "n": [3], "t": ["c"], "size": [7]})
    write_deltalake(place, more, mode="append", schema_mode="merge")
    assert keeper.query("SELECT sum(size) AS n FROM orders").to_pylist() == [{"n": 7}]
    keeper.create_view("sizes", "SELECT size FROM orders WHERE size > 0")
    assert rows(keeper, "sizes") == {(7,): 1}
    assert keeper.table("orders").names == ("oid", "n", "t", "size")
    assert not any(each.from_scratch for each in keeper.refresh())
    assert rows(keeper, "total") == {(6,): 1}


def test_a_table_of_others_under_another_key_and_place(keeper: Keeper, tmp_path: Path) -> None:
    place = orders(keeper, tmp_path)
    other = tmp_path / "archive"
    write_deltalake(other, pa.table({"oid": [1, 1], "n": [5, 6], "line": [1, 2]}))
    with pytest.raises(ViewkeepError, match="two rows have this key"):
        keeper.register_table("orders", other, key=["oid"], replace=True)
    with pytest.raises(ViewkeepError, match='there is a table "orders" already'):
        keeper.register_table("orders", other, key=["oid", "line"])
    assert errors(keeper) == {}
    keeper.register_table("orders", other, key=["oid", "line"], replace=True)
    assert errors(keeper) == {}
    assert rows(keeper, "total") == {(11,): 1}
    keeper.register_table("orders", place, key=["oid"], replace=True)
    assert errors(keeper) == {}
    assert rows(keeper, "total") == {(3,): 1}
    keeper.register_table("new", place, key=["oid"], replace=True)
    assert "new" in keeper.tables


def test_a_table_of_others_that_loses_its_key(keeper: Keeper, tmp_path: Path) -> None:
    place = orders(keeper, tmp_path)
    without = pa.table({"n": [4, 5], "t": ["a", "b"]})
    write_deltalake(place, without, mode="overwrite", schema_mode="overwrite")
    assert 'column "oid" is gone' in errors(keeper)["total"]
    keeper.register_table("orders", place, replace=True)
    assert errors(keeper) == {}
    assert rows(keeper, "total") == {(9,): 1}


# --- crashes --------------------------------------------------------------------------------------

ALTERATIONS: tuple[dict[str, Any], ...] = (
    {"add": {"size": "int"}},
    {"widen": {"price": "bigint"}, "drop": ["name"]},
)


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_alterations_that_die_have_happened_or_not(
    tmp_path: Path, alteration: dict[str, Any]
) -> None:
    """At every write, before and after it, a process dies; the next one goes on."""
    at = 1
    while True:
        place = tmp_path / str(at)
        keeper = Keeper(place, durable=False)
        keeper.create_table("parts", PARTS, key=["pid"], rows=[(1, 10, "a")])
        keeper.create_view("cost", "SELECT sum(price) AS cost FROM parts", policy="incremental")
        with fault(at // 2, after=at % 2 == 1) as found:
            keeper.alter_table("parts", **alteration)
        if not found.dead and at > 1:
            break
        columns = DeltaTable(place / "parts").to_pyarrow_table().column_names
        is_altered = columns != list(PARTS)
        again = Keeper(place, durable=False)
        again.refresh()
        assert again.table("parts").names == tuple(columns)
        again.apply("parts", inserts=[dict.fromkeys(columns, 2)] if "name" not in columns else [])
        again.refresh()
        assert again.verify("cost").ok
        if not is_altered:
            again.alter_table("parts", **alteration)
        again.refresh()
        assert again.verify("cost").ok
        at += 1
    assert at > 4


def test_rows_applied_while_columns_change(keeper: Keeper) -> None:
    """A writer that has read the definition before an alteration does not write past it."""
    lake = keeper._lake
    definition = lake.catalog.read().table("parts")
    late = user_changes("parts", definition.table, inserts=[(3, 30, "c")])
    keeper.alter_table("parts", drop=["name"])
    with pytest.raises(ViewkeepError, match='dropped the column "name"; if that was alter_table'):
        apply_changes(lake.scans, definition, lake.at(definition.location), late)
    keeper.apply("parts", inserts=[(3, 30)])
    assert rows(keeper, "parts") == {(1, 10): 1, (2, 20): 1, (3, 30): 1}
