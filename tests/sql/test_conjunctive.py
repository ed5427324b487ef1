"""From SQL to conjunctive queries: which views are one, and that the query means the same."""

from collections import Counter
from itertools import product
from typing import Any

import pytest

from tests.sql.database import TABLES, Oracle, normalized, random_data
from tests.sql.evaluate import Row, value
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import DegreeBound, ForeignKey, FunctionalDependency, Key
from viewkeep.query.flatten import NotConjunctive
from viewkeep.query.tables import Table
from viewkeep.sql.conjunctive import from_sql

QUERIES = {
    "select a, s from r where b = 1": "Q(a, s) = r(a, b, s) * [b = 1]",
    "select r.a, t.c from r join t on r.b = t.b": ("Q(a, c) = r(a, b) * t(b, c) * [isnotnull(b)]"),
    "select r.a, t.c from r, t where r.b = t.b and r.b = 2 and t.c > 0": (
        "Q(a, c) = r(a, b) * t(b, c) * [b = 2] * [c > 0]"
    ),
    "select distinct e.source, f.target from edge e join edge f on e.target = f.source": (
        "Q(source, f_target) = edge(source, e_target) * edge(e_target, f_target)"
    ),
    "select count(*) as n from edge e, edge f, edge g where e.target = f.source "
    "and f.target = g.source and g.target = e.source": (
        "Q(; count()) = edge(source, e_target) * edge(e_target, f_target) * edge(f_target, source)"
    ),
    "select d.did, sum(p.price) as cost, count(*) as n from devices d "
    "join devices_parts dp on d.did = dp.did join parts p on dp.pid = p.pid "
    "where d.category = 'phone' group by d.did": (
        "Q(did; sum(price), count()) = devices(did, category) * devices_parts(did, pid) "
        "* parts(pid, price) * [category = 'phone']"
    ),
    "select c, count(c) as n, avg(c) as v from t group by c": "Q(c; count(), avg(c)) = t(c)",
    "select did from devices_parts group by did": "Q(did) = devices_parts(did, pid)",
    "select q.z, t.c from (select a as z, b from r where a > 1) q join t on q.b = t.b": (
        "Q(a, c) = r(a, b) * t(b, c) * [a > 1] * [isnotnull(b)]"
    ),
    "select b, a, c from r join t using (b)": "Q(b, a, c) = r(a, b) * t(b, c) * [isnotnull(b)]",
    "select a from r where a = b": "Q(a) = r(a, a) * [isnotnull(a)]",
    "select did, min(pid) as low, max(pid) as high from devices_parts group by did": (
        "Q(did; min(pid), max(pid)) = devices_parts(did, pid)"
    ),
    "select e.source from edge e, edge f where e.target = f.source and e.target < f.target": (
        "Q(source) = edge(source, e_target) * edge(e_target, f_target) * [e_target < f_target]"
    ),
}


@pytest.mark.parametrize("sql", QUERIES)
def test_query_reads_as_expected(sql: str) -> None:
    assert str(from_sql(sql, TABLES)) == QUERIES[sql]


def test_self_joins_are_atoms_of_one_relation() -> None:
    query = from_sql(
        "select e.source, f.target from edge e join edge f on e.target = f.source", TABLES
    )
    assert [atom.relation for atom in query.atoms] == ["edge", "edge"]
    assert query.atoms[0].variables[1] == query.atoms[1].variables[0]
    assert dict(query.columns) == {"edge": ("source", "target")}


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


@pytest.mark.parametrize("seed", range(6))
def test_query_means_what_the_sql_means(oracle: Oracle, seed: int) -> None:
    data = random_data(seed)
    oracle.load(data)
    for sql in QUERIES:
        query = from_sql(sql, TABLES)
        expected = oracle.answer(sql)
        found = _answer(query, data)
        if not query.outputs and not found:
            continue  # over no rows at all, SQL still has one row
        distinct = "distinct" in sql or "group by did" in sql
        if distinct and not query.aggregates:
            found = Counter(dict.fromkeys(found, 1))
        assert normalized(found) == expected, f"seed {seed}: {sql}\n{query}"


def _answer(query: ConjunctiveQuery, data: dict[str, list[Row]]) -> Counter[Row]:
    """The query by nested loops: outputs with their count, or with their aggregates."""
    groups: dict[Row, list[dict[str, Any]]] = {}
    for rows in product(*(_bound(query, atom.relation, data) for atom in query.atoms)):
        binding: dict[str, Any] = {}
        fits = True
        for atom, row in zip(query.atoms, rows, strict=True):
            for variable, item in zip(atom.variables, row, strict=True):
                fits = fits and binding.setdefault(variable, item) == item
        if fits and all(value(condition, binding) is True for condition in query.conditions):
            groups.setdefault(tuple(binding[v] for v in query.outputs), []).append(binding)
    if not query.aggregates:
        return Counter({row: len(bindings) for row, bindings in groups.items()})
    return Counter(
        row + tuple(_aggregate(a.function, a.argument, bindings) for a in query.aggregates)
        for row, bindings in groups.items()
    )


def _bound(query: ConjunctiveQuery, relation: str, data: dict[str, list[Row]]) -> list[Row]:
    positions = [TABLES[relation].names.index(c) for c in query.columns_of(relation)]
    return [tuple(row[i] for i in positions) for row in data[relation]]


def _aggregate(function: str, argument: Any, bindings: list[dict[str, Any]]) -> Any:
    if argument is None:
        return len(bindings)
    values = [value(argument, binding) for binding in bindings]
    total = {"sum": sum, "min": min, "max": max, "avg": lambda v: sum(v) / len(v)}
    return total[function](values)


def test_constraints_come_from_the_tables() -> None:
    tables = {
        "M": Table(
            {"movie": "int", "company_id": "int", "zip": "int", "locn": "int"},
            key=["movie"],
            foreign_keys=["company_id -> C.company_id"],
            fds=["zip -> locn"],
        ),
        "C": Table({"company_id": "int", "country": "string"}, key=["company_id"], static=True),
    }
    sql = "select zip, locn, country from M join C using (company_id)"
    constraints = from_sql(sql, tables).constraints
    assert constraints.keys == (Key("M", ("movie",)), Key("C", ("company_id",)))
    assert constraints.foreign_keys == (ForeignKey("M", ("company_id",), "C", ("company_id",)),)
    assert constraints.fds == (FunctionalDependency(("zip",), ("locn",)),)
    assert constraints.static == frozenset({"C"})


def test_constraints_on_columns_the_query_does_not_bind_are_left_out() -> None:
    tables = {"M": Table({"movie": "int", "zip": "int", "locn": "int"}, fds=["zip -> locn"])}
    assert from_sql("select movie from M", tables).constraints.fds == ()


def test_a_dependency_of_one_table_says_nothing_of_another() -> None:
    integer = "int not null"
    tables = {
        "R": Table({"a": integer, "b": integer}, fds=["a -> b"]),
        "S": Table({"a": integer, "b": integer, "c": integer}),
    }
    constraints = from_sql("select a, b, c from R natural join S", tables).constraints
    assert constraints.fds == ()
    assert constraints.degrees == (DegreeBound("R", ("a",), ("b",), 1),)


REASONS = {
    "select a, a as z from r": 'the output columns "r.a" and "r.a" are always equal; keep one',
    "select r.a, t.c from r left join t on r.b = t.b": "an outer join (rewritten as a union)",
    "select r.a, t.c from r full join t on r.b = t.b": "an outer join (rewritten as a union)",
    "select a from r union all select b from t": "a union",
    "select a from r union select b from t": "a union",
    "select a from r where a in (select b from t)": "IN, EXISTS or INTERSECT (a semijoin)",
    "select a from r where not exists (select 1 from t)": "(an antijoin)",
    "select a from r except select b from t": "(an antijoin)",
    "select a, count(*) as n from r group by a having count(*) > 1": "HAVING",
    "select n from (select a, count(*) as n from r group by a) q": "GROUP BY inside the query",
    "select q.a, t.c from (select distinct a, b from r) q join t on q.b = t.b": "DISTINCT inside",
    "select a + 1 as b from r": 'the computed output column "b"',
    "select a, sum(c) + 1 as n from r join t on r.b = t.b group by a": "the computed output column",
    "select a + 1 as k, count(*) as n from r group by a + 1": "the computed column",
    "select count(*) as n from r group by a": 'GROUP BY column "r.a" is not in the output',
    "select r.a from r join t on r.b < t.c": "the condition r.b < t.c between tables",
    "select r.a from r join t on r.b <=> t.b": "r.b <=> t.b, a null-safe equality",
    "select r.a from r join u on r.a = u.x": "an equality of int and double",
    "select r.b, t.b as tb from r join t on r.b = t.b": "are always equal; keep one",
    "select a, count(distinct b) as n, count(*) as k from r group by a": "GROUP BY inside",
    "select a, sum(case when t.c > r.a then 1 else 0 end) as n from r join t on r.b = t.b "
    "group by a": "an aggregate over several tables",
}


PLACES = {
    "select r.a, t.c from r\nleft join t on r.b = t.b": "line 2, column 1",
    "select a from r union all select b from t": "line 1, column 17",
    "select a, count(*) as n from r group by a having count(*) > 1": "line 1, column 43",
    "select 'not in' as x, a from r where a not in (select b from t)": "line 1, column 40",
    "select q.a, t.c from (select distinct a, b from r) q join t on q.b = t.b": "column 30",
    "select a from r union all select b from t union all select a from r": "line 1, column 43",
    "select a from r where a in (select b from t)": "line 1, column 25",
    "select a from r where not exists (select 1 from t)": "line 1, column 23",
    "select a from r except select b from t": "line 1, column 17",
    "select r.a from r left semi join t on r.b = t.b": "line 1, column 24",
    "select n from (select a, count(*) as n from r group by a) q": "line 1, column 47",
    "with q as (select a from r union all select b from t)\nselect a from q": "line 1, column 28",
    "select a from r where a > 1 -- left join\nunion all select b from t": "line 2, column 1",
}


@pytest.mark.parametrize("sql", PLACES)
def test_the_construct_is_pointed_at(sql: str) -> None:
    with pytest.raises(NotConjunctive, match=PLACES[sql]):
        from_sql(sql, TABLES)


@pytest.mark.parametrize("sql", REASONS)
def test_other_views_say_why_not(sql: str) -> None:
    with pytest.raises(NotConjunctive) as error:
        from_sql(sql, TABLES)
    assert REASONS[sql] in str(error.value)
