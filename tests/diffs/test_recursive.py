"""Recursive views: the view and every kept join equal their definitions after every step."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from random import Random
from typing import Any

import duckdb
import pytest
from tests.diffs.random_tables import (
    Database,
    apply_batches,
    as_arrow,
    diff_as_arrow,
    random_batch,
    random_database,
)

from viewkeep.changes import ChangeBatch, delete_columns, insert_columns, update_columns
from viewkeep.diffs.model import DELETE, INSERT
from viewkeep.diffs.recursive import MOST_VIEWS, generate_recursive
from viewkeep.diffs.script import BaseDiff, Script
from viewkeep.embedded import statements
from viewkeep.embedded.executor import create, read, run
from viewkeep.errors import ViewkeepError
from viewkeep.query.algebra import Scan, walk
from viewkeep.query.tables import Table
from viewkeep.sql import parse_view

Connection = duckdb.DuckDBPyConnection
Rows = Counter[tuple[Any, ...]]

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


def diff_rows(diff: BaseDiff, batch: ChangeBatch) -> Any:
    """What a batch says in the form of a base diff; updates that change none of its columns are
    left out."""
    table = batch.table
    if diff.schema.kind == INSERT:
        part = insert_columns(table, batch.inserts)
    elif diff.schema.kind == DELETE:
        part = delete_columns(table, batch.deletes)
    else:
        places = [table.names.index(column) for column in diff.schema.changed]
        updates = [u for u in batch.updates if any(u.old[i] != u.new[i] for i in places)]
        part = update_columns(table, updates)
    return diff_as_arrow(table, part, diff.schema.columns)


def load(connection: Connection, database: Database) -> None:
    for name, table in TABLES.items():
        rows = as_arrow(table, database[name].values())
        connection.register("rows", rows)
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM rows")
        connection.unregister("rows")


def refresh(connection: Connection, script: Script, table: str, batch: ChangeBatch) -> None:
    """The table changes, and then the script runs; all other tables are as they are."""
    connection.execute(f"CREATE OR REPLACE TABLE old AS FROM {table}")
    old = {row: row for row in connection.execute(f"FROM {table}").fetchall()}
    key = [batch.table.names.index(column) for column in batch.table.key]
    new = batch.apply({tuple(row[i] for i in key): row for row in old})
    connection.register("new_rows", as_arrow(batch.table, new.values()))
    connection.execute(f"CREATE OR REPLACE TABLE {table} AS FROM new_rows")
    for diff in script.diffs:
        connection.register("diff_rows", diff_rows(diff, batch))
        name = statements.quote(diff.name)
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM diff_rows")
    run(connection, script, {(table, "pre"): "old", (table, "post"): table})


def stored(connection: Connection, script: Script) -> dict[str, Rows]:
    return {
        kept.name: Counter(
            connection.execute(
                f"SELECT {', '.join(map(statements.quote, kept.definition.names))} "
                f"FROM {statements.quote(kept.name)}"
            ).fetchall()
        )
        for kept in script.materialized
    }


def recomputed(script: Script, database: Database) -> dict[str, Rows]:
    """Everything that is kept, made anew from the tables."""
    with duckdb.connect() as other:
        load(other, database)
        create(other, script, {})
        return stored(other, script)


def asked_for(view: str, database: Database) -> Rows:
    """The answer of the view's own query."""
    with duckdb.connect() as other:
        load(other, database)
        text = statements.query(parse_view(view, TABLES), lambda leaf: statements.quote(leaf.name))
        return Counter(other.execute(text).fetchall())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("which", ["fixed", "streams"])
@pytest.mark.parametrize("name", VIEWS)
def test_everything_kept_equals_its_definition_after_every_table(
    connection: Connection, name: str, which: str, seed: int
) -> None:
    rng, view = Random(seed), VIEWS[name]
    tables = tables_of(view)
    changing = tables if which == "streams" else [rng.choice(tables)]
    database = random_database(TABLES, rng, rows=12)
    load(connection, database)
    scripts = scripts_of(view, changing)
    create(connection, next(iter(scripts.values())), {})
    for _ in range(4):
        batches = random_batch(database, TABLES, rng, size=12)
        for table in rng.sample(changing, len(changing)):
            refresh(connection, scripts[table], table, batches[table])
            database = apply_batches(database, {table: batches[table]})
            assert stored(connection, scripts[table]) == recomputed(scripts[table], database)
            answer = Counter(read(connection, scripts[table]).fetchall())
            assert answer == asked_for(view, database)


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
