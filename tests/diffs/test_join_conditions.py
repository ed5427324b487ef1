"""Joins of every kind on conditions as people write them: of one side, of both, or constant."""

import os
from collections.abc import Iterator
from random import Random

import duckdb
import pytest

from tests.changes.memory_table import difference
from tests.diffs.harness import PlayedView, keep_through_batches
from tests.diffs.in_duckdb import KeptInDuckdb, tables_of
from tests.diffs.random_tables import random_database
from tests.transpile import to_duckdb
from viewkeep.query.tables import Table
from viewkeep.sql.parse import parse_view

TABLES = {
    "a": Table({"id": "int not null", "i": "int", "j": "int"}, key=["id"]),
    "b": Table({"id": "int not null", "i": "int", "k": "int"}, key=["id"]),
}
SHAPES = (
    "select a.id as x, a.i, b.id as y, b.k from a join b on {}",
    "select a.id as x, a.i, b.id as y, b.k from a left join b on {}",
    "select a.id as x, a.i, b.id as y, b.k from a right join b on {}",
    "select a.id as x, a.i, b.id as y, b.k from a full join b on {}",
    "select a.id, a.j from a left semi join b on {}",
    "select a.id, a.j from a left anti join b on {}",
    "select a.id from a where exists (select 1 from b where {})",
    "select a.id from a where not exists (select 1 from b where {})",
    "select a.id from a where a.j in (select k from b where {})",
    "select a.id from a where a.j not in (select k from b where {})",
    "select a.id from a where a.i in (select a.j from b where {})",
    "select a.i, count(*) as n, sum(b.k) as s from a left join b on {} group by a.i",
)
PARTS = (
    *(
        "a.i = b.i",
        "b.i = a.i",
        "a.i = b.k",
        "a.id = b.id",
        "a.i <=> b.k",
        "a.j = b.k",
        "a.i < b.i",
    ),
    *("a.i = a.j", "a.i <=> a.j", "a.i = a.i", "a.id = a.i", "a.i = 1", "a.i is null"),
    *("b.i = b.k", "b.k <=> b.i", "b.k = b.k", "b.id = b.k", "b.i = 1", "b.i is not null"),
    *("true", "false", "1 = 0", "null", "not (a.i = a.j)", "(a.i = a.j or b.i is null)"),
)
LONG = bool(os.environ.get("VIEWKEEP_LONG"))


def _conditions(rng: Random) -> Iterator[str]:
    """Every part alone, then conjunctions of two and three."""
    yield from PARTS
    while True:
        yield " and ".join(rng.sample(PARTS, rng.choice((2, 2, 3))))


def _views(count: int) -> list[str]:
    """So many conditions, each in as many shapes as all of them need to be met often."""
    rng = Random(7)
    conditions = [condition for condition, _ in zip(_conditions(rng), range(count), strict=False)]
    return [
        shape.format(condition)
        for condition in conditions
        for shape in (SHAPES if LONG else rng.sample(SHAPES, 3))
    ]


@pytest.mark.parametrize("part", range(5))
def test_every_condition_in_every_kind_of_join(part: int) -> None:
    """Played in Python; small tables, so that conditions of one side often hold for no row."""
    for seed, sql in list(enumerate(_views(200 if LONG else 30)))[part::5]:
        node = parse_view(sql, TABLES)
        tables = tables_of(node, TABLES)
        database = random_database(tables, Random(seed), rows=5)
        view = PlayedView(node, tables, database, tuple_based=seed % 4 == 0)
        try:
            keep_through_batches(view, seed, batches=4)
        except Exception as error:
            error.add_note(sql)
            raise


# A column compared with two of the other side, and conditions that the other side is no part of.
CHOSEN = (
    "select a.id from a where exists (select 1 from b where a.i = b.i and a.i = b.k)",
    "select a.id from a where exists (select 1 from b where a.i = b.i and a.i <=> b.k)",
    "select a.id from a where not exists (select 1 from b where a.i = a.j)",
    "select a.id, a.i, b.k from a left join b on a.i = b.i and a.i = a.j",
    "select a.id, b.k from a full join b on b.i = b.k",
    "select a.id from a where a.i not in (select a.j from b where a.i = a.i)",
)


@pytest.mark.parametrize("sql", CHOSEN)
def test_in_duckdb(sql: str) -> None:
    """The seeds are those that showed rows too many, or none at all."""
    node = parse_view(sql, TABLES)
    for seed in (0, 1):
        database = random_database(TABLES, Random(seed), rows=8)
        with duckdb.connect() as connection:
            view = KeptInDuckdb(node, TABLES, database, connection, to_duckdb(sql), exact=6)
            keep_through_batches(view, seed, batches=10)


MOVING = (
    "select a.id as x, b.id as y, a.i, b.k from a join b on a.i < b.i",
    "select a.id as x, b.id as y from a join b on a.i <= b.k and a.j > b.i",
    "select a.j, count(*) as n, sum(b.k) as s from a join b on a.i >= b.i group by a.j",
    "select a.id, c.id as other from a cross join a as c where c.i >= a.i",
    "select a.id from a where exists (select 1 from b where b.i > a.i)",
    "select a.id, b.id as y from a left join b on b.i between a.i and a.j",
)


@pytest.mark.parametrize("sql", MOVING)
def test_both_sides_of_an_inequality_move(sql: str) -> None:
    """All rows of both sides get other values at once: a pair may come or go though it would not
    with the old or the new values of only one side."""
    node = parse_view(sql, TABLES)
    tables, rng = tables_of(node, TABLES), Random(3)
    for seed in range(60 if LONG else 12):
        view = PlayedView(node, tables, random_database(tables, Random(seed), rows=3))
        before = {name: list(view.database[name].values()) for name in tables}
        after = {
            name: [(row[0], *(rng.randrange(-2, 4) for _ in row[1:])) for row in rows]
            for name, rows in before.items()
        }
        changes = {n: difference(n, tables[n], before[n], after[n]) for n in tables}
        view.refresh(changes, minimized=seed % 2 == 0)
        view.check()
