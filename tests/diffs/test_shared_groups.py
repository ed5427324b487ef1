"""Groups that a view computes twice are kept once, and changes of both uses meet."""

import os
from dataclasses import fields
from random import Random
from typing import get_args

import pytest

from tests.diffs.harness import PlayedView, keep_through_batches
from tests.diffs.random_tables import random_database
from viewkeep.diffs.generate import generate
from viewkeep.query import algebra
from viewkeep.query.tables import Table
from viewkeep.query.windows import WindowColumn
from viewkeep.sql import parse_view

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
TABLES = {
    "r": Table({"k": "int", "a": "int", "b": "int"}, key=["k"]),
    "s": Table({"a": "int", "d": "int"}, key=["a"]),
}
WITH_Q = "with q as (select a, sum(b) s, count(*) n from r group by a) "
VIEWS = {
    "joined with itself": (WITH_Q + "select x.a, x.s, y.s t from q x join q y on x.n = y.n", 1),
    "summed": (
        WITH_Q + "select x.n, sum(x.s * y.s) t, count(*) c from q x join q y on x.n = y.n "
        "group by x.n",
        2,
    ),
    "different columns": (WITH_Q + "select a from q union all select s from q", 1),
    "compared with all": (
        WITH_Q + "select a, s from q where s > (select avg(s) from q)",
        2,
    ),
    "three times": (
        WITH_Q + "select x.a, y.a b, z.a c from q x, q y, q z where x.n = y.n and y.s = z.s",
        1,
    ),
    "over a join": (
        "with q as (select s.d, sum(r.b) s from r join s on r.a = s.a group by s.d) "
        "select x.d, count(*) n, sum(y.s) t from q x left join q y on x.d < y.d group by x.d",
        2,
    ),
    "distinct": (
        "select x.a, y.a b from (select distinct a from r) x, (select distinct a from r) y "
        "where x.a < y.a",
        1,
    ),
    "other arguments": (
        "select x.s, y.s t from (select a, max_by(b, k) s from r group by a) x join "
        "(select a, max_by(b, -k) s from r group by a) y on x.a = y.a",
        2,
    ),
    "not the same": (
        "select x.s, y.s t from (select a, sum(b) s from r group by a) x join "
        "(select a, sum(b + 1) s from r group by a) y on x.a = y.a",
        2,
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_follows_its_tables(name: str) -> None:
    node = parse_view(VIEWS[name][0], TABLES)
    for seed in range(20 if LONG else 3):
        for tuple_based in (False, True):
            database = random_database(TABLES, Random(seed), rows=9)
            keep_through_batches(PlayedView(node, TABLES, database, tuple_based), seed, 4)


@pytest.mark.parametrize("name", VIEWS)
def test_equal_groups_are_kept_once(name: str) -> None:
    sql, groups = VIEWS[name]
    caches = generate(parse_view(sql, TABLES)).script.materialized
    kept = [each.definition for each in caches if type(each.definition).__name__ == "GroupBy"]
    assert len(kept) == groups, [str(each) for each in kept]


def test_a_shape_tells_of_every_part_of_an_operator() -> None:
    """Whoever adds a field to an operator must make `share_groups` compare it."""
    known = {
        algebra.Scan: "name table alias state",
        algebra.Stored: "name columns",
        algebra.Values: "columns rows",
        algebra.Unnest: "child column elements outer",
        algebra.Select: "child condition",
        algebra.Project: "child outputs",
        algebra.Join: "left right condition",
        algebra.SemiJoin: "left right condition",
        algebra.AntiJoin: "left right condition",
        algebra.UnionAll: "inputs",
        algebra.GroupBy: "child keys aggregates",
        algebra.Distinct: "child",
        algebra.Window: "child columns partition_by order_by ties limit reserve",
        algebra.AggregateColumn: "name function argument others order type",
        WindowColumn: "name function arguments frame ignore_nulls",
    }
    assert set(known) >= set(get_args(algebra.Node))
    for kind, names in known.items():
        assert [each.name for each in fields(kind) if each.init] == names.split(), kind
