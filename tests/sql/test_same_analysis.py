"""A view in SQL and the same query in the notation get the same analysis."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.strategies import queries, static_relations
from viewkeep.query.conjunctive import ConjunctiveQuery

INT = "int not null"
EDGES = {name: vk.Table({"x": INT, "y": INT}) for name in ("R", "S", "T", "E")}
SHOP = {
    "customers": vk.Table({"cid": INT, "area": INT}, key=["cid"]),
    "orders": vk.Table(
        {"oid": INT, "cid": INT}, key=["oid"], foreign_keys=["cid -> customers.cid"]
    ),
    "items": vk.Table(
        {"oid": INT, "pid": INT, "price": INT},
        key=["oid", "pid"],
        foreign_keys=["oid -> orders.oid"],
    ),
}
UNKEYED = {name: vk.Table({f.name: f for f in table.columns}) for name, table in SHOP.items()}
KEYS = ["customers.cid", "orders.oid", "items.oid, items.pid"]
FOREIGN_KEYS = ["orders.cid -> customers.cid", "items.oid -> orders.oid"]


@dataclass(frozen=True)
class Pair:
    """One query twice, and what is declared of the tables but must be told to `analyze`."""

    name: str
    tables: Mapping[str, vk.Table]
    sql: str
    notation: str
    known: Mapping[str, Any] = field(default_factory=dict)


SPENT_SQL = """select c.area, sum(i.price) as spent, count(*) as n
    from customers c join orders o on o.cid = c.cid join items i on i.oid = o.oid group by c.area"""
SPENT = (
    "Q(area; sum(price), count()) "
    "= customers(cid, area) * orders(oid, cid) * items(oid, pid, price)"
)
PAIRS = (
    Pair(
        "a join, all columns selected",
        EDGES,
        "select R.x, R.y, S.y as z from R join S on R.y = S.x",
        "Q(a, b, c) = R(a, b) * S(b, c)",
    ),
    Pair(
        "a join, the join column summed away",
        EDGES,
        "select distinct R.x, S.y from R, S where R.y = S.x",
        "Q(a, c) = R(a, b) * S(b, c)",
    ),
    Pair(
        "the triangle count",
        EDGES,
        "select count(*) as n from R, S, T where R.y = S.x and S.y = T.x and T.y = R.x",
        "Q(; count()) = R(a, b) * S(b, c) * T(c, a)",
    ),
    Pair(
        "triangles of one table",
        EDGES,
        "select count(*) as n from E e, E f, E g where e.y = f.x and f.y = g.x and g.y = e.x",
        "Q(; count()) = E(a, b) * E(b, c) * E(c, a)",
    ),
    Pair(
        "a path over one table",
        EDGES,
        "select e.x, f.y from E e join E f on e.y = f.x",
        "Q(a, c) = E(a, b) * E(b, c)",
    ),
    Pair(
        "a column compared with itself",
        EDGES,
        "select R.x, S.y from R join S on R.x = S.x where R.x = R.y",
        "Q(a, b) = R(a, a) * S(a, b)",
    ),
    Pair(
        "a join column that is constant",
        EDGES,
        "select R.x, S.y as z from R join S on R.y = S.x where S.x = 7",
        "Q(a, c) = R(a, b) * S(b, c) * [b = 7]",
    ),
    Pair(
        "a constant elsewhere",
        EDGES,
        "select R.x from R join S on R.y = S.x where S.y > 7",
        "Q(a) = R(a, b) * S(b, c) * [c > 7]",
    ),
    Pair(
        "a product without a join",
        EDGES,
        "select R.x, S.y from R, S",
        "Q(a, d) = R(a, b) * S(c, d)",
    ),
    Pair("aggregates without keys", UNKEYED, SPENT_SQL, SPENT),
    Pair(
        "aggregates with keys and foreign keys",
        SHOP,
        SPENT_SQL,
        SPENT,
        {"keys": KEYS, "foreign_keys": FOREIGN_KEYS},
    ),
    Pair(
        "foreign keys decide",
        SHOP,
        "select i.pid, sum(i.price) as spent "
        "from orders o join items i on i.oid = o.oid group by i.pid",
        "Q(pid; sum(price)) = orders(oid, cid) * items(oid, pid, price)",
        {"keys": KEYS[1:], "foreign_keys": FOREIGN_KEYS[1:]},
    ),
    Pair(
        "a self-join on a key",
        SHOP,
        "select a.oid, b.oid as other, a.cid from orders a join orders b on a.cid = b.cid",
        "Q(o, p, c) = orders(o, c) * orders(p, c)",
        {"keys": ["orders.o"]},
    ),
    Pair(
        "a static table",
        {**EDGES, "S": vk.Table({"x": INT, "y": INT}, static=True)},
        "select R.x, T.y from R, S, T where R.y = S.x and S.y = T.x",
        "Q(a, d) = R(a, b) * S(b, c) * T(c, d)",
        {"static": ["S"]},
    ),
    Pair(
        "a dependency of a table",
        {**EDGES, "S": vk.Table({"x": INT, "y": INT}, fds=["x -> y"])},
        "select R.x, R.y, S.y as z, T.y as w from R, S, T where R.y = S.x and S.y = T.x",
        "Q(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)",
        {"fds": ["b -> c"]},
    ),
)


def facts(analysis: vk.Analysis) -> dict[str, object]:
    """What an analysis says, without the names it says it with."""
    verdicts = {name: (each.holds, each.value) for name, each in analysis.verdicts.items()}
    return {
        **verdicts,
        "bounds": analysis.bounds,
        "strategy": analysis.strategy,
        "lower bound": analysis.lower_bound,
        "optimal": analysis.optimal,
    }


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_sql_and_notation_agree(pair: Pair) -> None:
    in_sql = vk.analyze(vk.from_sql(pair.sql, pair.tables))
    in_notation = vk.analyze(pair.notation, **pair.known)
    assert facts(in_sql) == facts(in_notation)


def test_keys_may_be_declared_or_told() -> None:
    """The same SQL: with keys in the tables, and with them given to `analyze`."""
    declared = vk.analyze(vk.from_sql(SPENT_SQL, SHOP))
    unkeyed = vk.from_sql(SPENT_SQL, UNKEYED)
    told = vk.analyze(unkeyed, keys=KEYS[:2], foreign_keys=FOREIGN_KEYS)
    assert facts(declared) == facts(told)


def test_facts_tell_queries_apart() -> None:
    seen = [facts(vk.analyze(pair.notation, **pair.known)) for pair in PAIRS]
    assert sum(one not in seen[:place] for place, one in enumerate(seen)) > len(PAIRS) / 2


plain = queries(inputs=False, nullary=False, aggregates=False, conditions=False)


@settings(max_examples=200)
@given(st.data())
def test_any_query_written_as_sql_has_the_same_analysis(data: st.DataObject) -> None:
    query = with_columns(all_columns_used(data.draw(plain)))
    keys = {name: data.draw(some_of(columns)) for name, columns in query.columns}
    static = data.draw(static_relations(query))
    tables = {
        name: vk.Table(dict.fromkeys(columns, INT), key=keys[name], static=name in static)
        for name, columns in query.columns
    }
    told = [", ".join(f"{name}.{column}" for column in key) for name, key in keys.items() if key]
    in_sql = vk.analyze(vk.from_sql(as_sql(query), tables))
    assert facts(in_sql) == facts(vk.analyze(query, keys=told, static=static))


def all_columns_used(query: ConjunctiveQuery) -> ConjunctiveQuery:
    """The query that also selects what it does not join: SQL would not mention such columns, and
    a few verdicts look at columns that are mentioned only to be summed away."""
    uses = Counter([*query.outputs, *(v for atom in query.atoms for v in atom.variables)])
    return replace(query, outputs=query.outputs + tuple(v for v in uses if uses[v] == 1))


def with_columns(query: ConjunctiveQuery) -> ConjunctiveQuery:
    """The query over relations whose columns are named by position."""
    arities = {atom.relation: len(atom.variables) for atom in query.atoms}
    columns = {name: tuple(f"c{i}" for i in range(arity)) for name, arity in arities.items()}
    return replace(query, columns=tuple(columns.items()))


def some_of(columns: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    """A key, or none."""
    return st.lists(st.sampled_from(columns), unique=True, max_size=2).map(tuple)


def as_sql(query: ConjunctiveQuery) -> str:
    """The query as a SELECT: equal variables become equalities of columns."""
    places: dict[str, list[str]] = {}
    for number, atom in enumerate(query.atoms):
        for position, variable in enumerate(atom.variables):
            places.setdefault(variable, []).append(f"t{number}.c{position}")
    items = [f"{places[variable][0]} as {variable}" for variable in query.outputs]
    scans = [f"{atom.relation} t{number}" for number, atom in enumerate(query.atoms)]
    equalities = [f"{first} = {other}" for first, *others in places.values() for other in others]
    where = f" where {' and '.join(equalities)}" if equalities else ""
    return f"select {', '.join(items) or 'count(*) as n'} from {', '.join(scans)}{where}"
