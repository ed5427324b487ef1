"""Pass 1: the IDs of every operator (id_based_ivm, table 1), and base diffs (section 5)."""

from random import Random

import pytest

from tests.diffs.harness import states
from tests.diffs.interpret import evaluate
from tests.diffs.random_tables import random_database
from tests.diffs.views import TABLES, VIEWS
from viewkeep.diffs.model import DELETE, INSERT, UPDATE
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.identify import IdPlan, identify
from viewkeep.diffs.schemas import base_diffs, conditional_sets, every_change, update_sets
from viewkeep.errors import QueryError
from viewkeep.query.algebra import Scan, Stored
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk
from viewkeep.query.types.data_types import INT, Field
from viewkeep.sql.parse import parse_view

R = {
    "r": Table({"a": "int", "b": "int", "c": "string", "z": "int"}, key=["a"]),
    "s": Table({"a": "int", "d": "int", "e": "int"}, key=["a", "d"]),
    "w": Table({"k": "string", "b": "int"}, key=["k"]),
    "heap": Table({"a": "int"}),
}

IDS = {
    "select * from r": ("a",),
    "select b, c from r": ("r.a",),
    "select a + 1 as a from r": ("r.a",),
    "select a as x, a as y from r": ("x",),
    "select b from r where b > 1": ("r.a",),
    "select r.b, s.e from r, s": ("r.a", "s.a", "s.d"),
    "select r.b, s.e from r join s on r.b = s.e": ("r.a", "s.a", "s.d"),
    "select r.b, s.e from r join s on r.a = s.a": ("r.a", "s.d"),
    "select r.b, s.e from s join r on r.a = s.a": ("s.a", "s.d"),
    "select r.b, s.e from r join s on r.a = s.a and r.a = s.d": ("r.a", "s.d"),
    "select s.a, s.d, r.b from r join s on r.a = s.a": ("a", "d"),
    "select s.d, r.b from r join s on r.a = s.d": ("d", "s.a"),
    "select s.e, r.b from r join s on r.b = s.e": ("r.a", "s.a", "s.d"),
    "select s.a, r.b from r join s on r.a = s.a where r.a = s.d": ("a", "s.d"),
    "select x.k, w.b from w join (select k from w) x on w.k = x.k": ("k",),
    "select r.b, s.e from r join s on r.a <=> s.a": ("r.a", "s.a", "s.d"),
    "select x.b, y.c from r x join r y on x.a = y.a": ("x.a",),
    "select b from r where a in (select d from s)": ("r.a",),
    "select b from r where not exists (select 1 from s where s.a = r.a)": ("r.a",),
    "select b from r union all select e from s": ("#branch", "#id0.0", "#id1.0", "#id1.1"),
    "select b from r union all select z from r": ("#branch", "#id0"),
    "select b from r union all select b from w": ("#branch", "#id0.0", "#id1.0"),
    "select b from r union select e from s": ("b",),
    "select distinct c, b from r": ("c", "b"),
    "select c, sum(b) as n from r group by c": ("c",),
    "select sum(b) as n from r group by c": ("r.c",),
    "select sum(b) as n from r": ("#all",),
}


def planned(sql: str) -> IdPlan:
    return identify(optimize(parse_view(sql, R)))


@pytest.mark.parametrize("sql", IDS)
def test_ids_of_the_view(sql: str) -> None:
    plan = identify(parse_view(sql, R))
    assert plan.ids[plan.root] == IDS[sql]


@pytest.mark.parametrize("name", VIEWS)
def test_ids_are_a_key_of_every_operator(name: str) -> None:
    view = parse_view(VIEWS[name], TABLES)
    plans = {identify(view).root: identify(view), (plan := identify(optimize(view))).root: plan}
    cases = [(plan, node) for plan in plans.values() for node in plan.nodes]
    for seed in range(3):
        tables = states(random_database(TABLES, Random(seed), rows=6), "post")
        for plan, node in cases:
            places = [node.names.index(column) for column in plan.ids[node]]
            keys = [tuple(row[i] for i in places) for row in evaluate(node, tables)]
            assert len(set(keys)) == len(keys), f"seed {seed}: {plan.ids[node]} of\n{node}"


@pytest.mark.parametrize("name", VIEWS)
def test_a_plan_without_its_ids_is_the_view(name: str) -> None:
    """Section 4: IDs make rows wider, not more or fewer."""
    view = parse_view(VIEWS[name], TABLES)
    plan = identify(view)
    tables = states(random_database(TABLES, Random(7), rows=6), "post")
    places = [plan.root.names.index(stored) for _, stored in plan.visible]
    found = [tuple(row[i] for i in places) for row in evaluate(plan.root, tables)]
    assert sorted(found, key=repr) == sorted(evaluate(view, tables), key=repr)


def test_a_table_without_a_key_is_refused() -> None:
    with pytest.raises(QueryError, match='table "heap" has no key: declare one'):
        identify(parse_view("select r.b from r join heap h on r.a = h.a", R))


def test_a_stored_relation_is_refused() -> None:
    with pytest.raises(QueryError, match="cache is no table"):
        identify(Stored("cache", (Field("i", INT),)))


def test_a_group_keeps_what_its_averages_are_made_of() -> None:
    plan = planned("select c, avg(b) as m, sum(z) as s from r group by c")
    assert plan.root.names == ("c", "m", "s", "m#count", "m#sum", "s#count", "#rows")
    assert plan.visible == (("c", "c"), ("m", "m"), ("s", "s"))


# --- diffs of base tables -------------------------------------------------------------------------

SETS = {
    # A selection, then columns that only the view shows.
    "select * from r where b > 1": [{"b"}, {"c", "z"}],
    "select a, c from r where b > z": [{"b", "z"}, {"c"}],
    # Keys never change.
    "select * from r where a > 1": [{"b", "c", "z"}],
    # Nor do columns that the view does not read.
    "select r.c, s.e from r join s on r.a = s.a": [{"c"}],
    "select r.c, s.e from r join s on r.b = s.e": [{"b"}, {"c"}],
    # One set for each operator, also when they overlap.
    "select r.c from r join s on r.b = s.e where r.b > r.z": [{"b"}, {"b", "z"}, {"c"}],
    "select c, sum(b) as n from r group by c": [{"c"}, {"b"}],
    "select b, c from r where z not in (select e from s)": [{"z"}, {"b", "c"}],
    # Through computed columns, and through a sum that a condition reads.
    "select x from (select b + z as x, c from r) q where x > 1": [{"b", "z"}],
    "select c from r group by c having sum(b) > 2": [{"b"}, {"c"}],
    "select x.c from r x join r y on x.b = y.z": [{"b"}, {"z"}, {"c"}],
    "select distinct b, c, z from r": [{"b", "c", "z"}],
}


@pytest.mark.parametrize("sql", SETS)
def test_sets_of_columns_that_change_together(sql: str) -> None:
    plan = planned(sql)
    found = update_sets(plan, "r")
    assert sorted(map(sorted, found)) == sorted(map(sorted, SETS[sql]))
    rest = [each for each in found if each not in conditional_sets(plan, "r")]
    assert all(each.isdisjoint(other) for each in rest for other in found if other != each)


def test_schemas_of_base_diffs() -> None:
    plan = planned("select b, c from r where b > 1")
    found = {(d.name, str(d.schema)) for d in base_diffs(plan, every_change(plan))}
    assert found == {
        ("d+(r)", "+(a, b_post, c_post, z_post)"),
        ("d-(r)", "-(a, b_pre, c_pre, z_pre)"),
        ("du(r)", "u(a, b_pre, c_pre, z_pre, b_post)"),
        ("du2(r)", "u(a, b_pre, c_pre, z_pre, c_post)"),
    }


def test_every_change_is_of_a_table_of_the_view() -> None:
    plan = identify(parse_view("select r.c, y.c as d from r join r y on r.b = y.z", R))
    changes = every_change(plan)
    assert list(changes) == ["r"]
    assert [kind for kind, _ in changes["r"]][:2] == [INSERT, DELETE]
    assert {kind for kind, _ in changes["r"][2:]} == {UPDATE}
    assert len([n for n in plan.nodes if isinstance(n, Scan)]) == 2


def test_ids_of_both_sides_with_the_same_primes_stay_apart() -> None:
    """Two global aggregates on either side of an outer join: four IDs called #all."""
    side = "SELECT a.x AS v{0} FROM t AS s CROSS JOIN (SELECT sum(v) AS x FROM t) AS a {1}"
    other = "CROSS JOIN (SELECT max(v) AS x FROM t) AS b"
    first, second = side.format(1, other), side.format(2, other)
    sql = f"SELECT sum(v2) AS n FROM ({first}) AS p RIGHT JOIN ({second}) AS q ON p.v1 = q.v2"
    table = Table({"k": "int", "v": "int"}, ["k"])
    plan = identify(parse_view(sql, {"t": table}))
    assert all(len(set(plan.ids[node])) == len(plan.ids[node]) for node in walk(plan.root))
