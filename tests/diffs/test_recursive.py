"""Recursive views: the view and every kept join equal their definitions after every step."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import duckdb
import pytest

from tests.diffs.diff_columns import delete_columns, insert_columns, update_columns
from tests.diffs.random_tables import (
    Database,
    apply_batches,
    as_arrow,
    diff_as_arrow,
    random_batch,
    random_database,
)
from viewkeep.changes import ChangeBatch
from viewkeep.diffs.model import DELETE, INSERT, UPDATE
from viewkeep.diffs.recursive import MOST_VIEWS, generate_recursive
from viewkeep.diffs.script import Script
from viewkeep.errors import ViewkeepError
from viewkeep.execute.duckdb import statements
from viewkeep.execute.duckdb.run_in_connection import create, read, run_in_connection
from viewkeep.query.algebra import Node, Scan
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk
from viewkeep.sql import parse_view

Connection = duckdb.DuckDBPyConnection
Rows = Counter[tuple[Any, ...]]
Kind = tuple[str, frozenset[str]]

TABLES = {
    "parts": Table({"pid": "int", "price": "int", "maker": "int"}, key=["pid"]),
    "devices": Table({"did": "int", "category": "string", "base": "int"}, key=["did"]),
    "uses": Table({"did": "int", "pid": "int", "n": "int"}, key=["did", "pid"]),
    "makers": Table({"mid": "int", "country": "string", "rate": "int"}, key=["mid"]),
}
JOINED = "parts p join uses u on p.pid = u.pid join devices d on u.did = d.did"

VIEWS = {
    "devices and parts": f"select d.did, p.pid, p.price from {JOINED} where d.category = 'a'",
    "keys not shown": f"select p.price + u.n as x, d.category from {JOINED}",
    "sum per device": f"select u.did, sum(p.price) as cost, count(*) as n from {JOINED} "
    "where d.category <> 'b' group by u.did",
    "average by what changes": f"select d.category, avg(p.price) as mean, count(u.n) as n "
    f"from {JOINED} group by d.category",
    "computed from groups": f"select d.category, sum(p.price) / count(*) + 1 as x from {JOINED} "
    "group by d.category",
    "no groups": f"select sum(p.price * u.n) as total from {JOINED} where p.price > 0",
    "four tables": "select m.country, sum(p.price * m.rate) as paid from makers m "
    "join parts p on p.maker = m.mid join uses u on u.pid = p.pid "
    "join devices d on d.did = u.did group by m.country",
    "a table twice": "select a.pid, b.pid as other, a.price, u.did from parts a "
    "join parts b on a.maker = b.maker join uses u on u.pid = b.pid",
    "a table twice, sum": "select u.did, sum(p.price * v.n) as x from uses u "
    "join uses v on u.pid = v.pid join parts p on p.pid = v.pid group by u.did",
    "any condition": "select p.pid, d.did, m.mid from parts p join devices d on p.price < d.base "
    "cross join makers m where m.rate > p.price",
    "inner projections": "select x.k, sum(x.y) as y from (select u.did as k, u.n + p.price as y, "
    "p.maker as m from parts p join uses u on p.pid = u.pid) x join makers m on x.m = m.mid "
    "where x.y > 1 group by x.k",
    "one table": "select p.maker, sum(p.price) as x from parts p group by p.maker",
}


@pytest.fixture
def connection() -> Iterator[Connection]:
    with duckdb.connect() as connection:
        yield connection


def tables_of(view: str) -> list[str]:
    nodes = walk(parse_view(view, TABLES))
    return sorted({node.name for node in nodes if isinstance(node, Scan)})


def scripts_of(view: str, changing: Collection[str]) -> dict[str, Script]:
    parsed = parse_view(view, TABLES)
    return {table: generate_recursive(parsed, table, changing) for table in changing}


def diff_columns(script: Script, batch: ChangeBatch) -> dict[Kind, dict[str, list[Any]]]:
    """The kinds of changes in a batch, each with its rows; every update is of one kind."""
    found: dict[Kind, dict[str, list[Any]]] = {}
    if batch.inserts:
        found[INSERT, frozenset()] = insert_columns(batch.table, batch.inserts)
    if batch.deletes:
        found[DELETE, frozenset()] = delete_columns(batch.table, batch.deletes)
    sets = [frozenset(d.schema.changed) for d in script.diffs if d.schema.kind == UPDATE]
    for changed, updates in batch.by_changed(sets).items():
        found[UPDATE, changed] = update_columns(batch.table, updates)
    return found


def load(connection: Connection, database: Database) -> None:
    for name, table in TABLES.items():
        rows = as_arrow(table, database[name].values())
        connection.register("rows", rows)
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM rows")
        connection.unregister("rows")


@dataclass
class Kept:
    """A view by recursive views, refreshed table by table."""

    connection: Connection
    sql: str
    changing: Collection[str]
    database: Database

    def __post_init__(self) -> None:
        self.connection.execute("SET threads = 1")
        load(self.connection, self.database)
        self.view = parse_view(self.sql, TABLES)
        self.scripts = scripts_of(self.sql, self.changing)
        create(self.connection, next(iter(self.scripts.values())), {})

    def refresh(self, table: str, batch: ChangeBatch) -> None:
        """The table changes, and then its script runs; all other tables are as they are."""
        columns = diff_columns(self.scripts[table], batch)
        script = generate_recursive(self.view, table, self.changing, columns)
        self.connection.execute(f"CREATE OR REPLACE TABLE old AS FROM {table}")
        self.database = apply_batches(self.database, {table: batch})
        load(self.connection, self.database)
        for diff, part in zip(script.diffs, columns.values(), strict=True):
            self.connection.register(diff.name, diff_as_arrow(batch.table, part))
        run_in_connection(self.connection, script, {(table, "pre"): "old"})

    def check(self, table: str) -> None:
        """What is kept equals its definition, and the view the answer of its own query."""
        for kept in self.scripts[table].materialized:
            columns = ", ".join(map(statements.quote_name, kept.definition.names))
            found = self.rows(f"SELECT {columns} FROM {statements.quote_name(kept.name)}")
            assert found == self.rows(text(kept.definition)), kept.name
        answer = Counter(read(self.connection, self.scripts[table]).fetchall())
        assert answer == self.rows(text(self.view))

    def rows(self, query: str) -> Rows:
        return Counter(self.connection.execute(query).fetchall())


@cache
def text(node: Node) -> str:
    return statements.query(node, lambda leaf: statements.quote_name(leaf.name))


@pytest.mark.parametrize("which", ["fixed", "streams"])
@pytest.mark.parametrize("name", VIEWS)
def test_everything_kept_equals_its_definition_after_every_table(
    connection: Connection, name: str, which: str
) -> None:
    rng = Random(f"{name} {which}")
    tables = tables_of(VIEWS[name])
    changing = tables if which == "streams" else [rng.choice(tables)]
    kept = Kept(connection, VIEWS[name], changing, random_database(TABLES, rng, rows=12))
    for _ in range(2 if which == "streams" else 4):
        batches = random_batch(kept.database, TABLES, rng, size=12)
        for table in rng.sample(changing, len(changing)):
            kept.refresh(table, batches[table])
            kept.check(table)


def kept_joins(view: str, changing: Collection[str]) -> Mapping[str, str]:
    [script, *others] = scripts_of(view, changing).values()
    for other in others:
        assert other.caches[: len(script.caches)] == script.caches
    return {cache.name: cache.why for cache in script.caches}


def test_fixed_keeps_the_join_of_the_other_tables() -> None:
    assert kept_joins(VIEWS["devices and parts"], ["parts"]) == {"cache_1_2": "the join of u, d"}
    assert kept_joins(VIEWS["devices and parts"], ["uses"]) == {}  # parts and devices do not meet


def test_streams_keep_such_joins_for_every_table_and_for_each_other() -> None:
    every = ["parts", "devices", "uses"]
    assert list(kept_joins(VIEWS["devices and parts"], every)) == ["cache_0_1", "cache_1_2"]
    four = kept_joins(VIEWS["four tables"], ["makers", "parts", "uses", "devices"])
    assert list(four) == ["cache_0_1", "cache_1_2", "cache_2_3", "cache_0_1_2", "cache_1_2_3"]


def test_a_tuple_diff_reads_one_view() -> None:
    """Beside its own diff, the script of prices reads only the join of the others, and the view."""
    view = parse_view(VIEWS["devices and parts"], TABLES)
    script = generate_recursive(view, "parts", ["parts"], [("update", frozenset({"price"}))])
    leaves = {leaf for each in script.computes() for leaf in walk(each.query)}
    assert not [leaf for leaf in leaves if isinstance(leaf, Scan)]


@pytest.mark.parametrize(
    ("view", "changing", "why"),
    [
        ("select max(p.price) as m from parts p", ["parts"], "max is none of sum, count, avg"),
        ("select distinct p.maker from parts p", ["parts"], "Distinct stands below its joins"),
        (
            "select p.pid from parts p left join uses u on p.pid = u.pid",
            ["parts"],
            "UnionAll stands below its joins",
        ),
        (
            "select p.maker from parts p group by p.maker having count(*) > 1",
            ["parts"],
            "GroupBy stands below its joins",
        ),
        (VIEWS["devices and parts"], ["makers"], 'does not read "makers", only devices, parts'),
    ],
)
def test_other_views_are_refused(view: str, changing: list[str], why: str) -> None:
    with pytest.raises(ViewkeepError, match=f"not for this view: .*{why}"):
        generate_recursive(parse_view(view, TABLES), changing[0], changing)


def test_too_many_joins_are_refused() -> None:
    star = "".join(f" join uses u{i} on u{i}.pid = p.pid" for i in range(8))
    view = parse_view(f"select p.pid from parts p{star}", TABLES)
    with pytest.raises(ViewkeepError, match=f"more than {MOST_VIEWS} joins"):
        generate_recursive(view, "parts", ["parts", "uses"])
