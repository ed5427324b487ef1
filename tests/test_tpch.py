"""The TPC-H study: its page, its totals, and verdicts checked by hand."""

from dataclasses import replace
from itertools import chain, product

import duckdb
import pytest

from docs import make_tpch
from docs.make_tpch import (
    SURVEY,
    TPCH,
    Totals,
    Versions,
    bounds,
    by_definition,
    by_study,
    classes,
    totals,
    versions,
)
from viewkeep.analysis import analyze_query
from viewkeep.analysis.reduct import reduct
from viewkeep.query.notation.parse import parse
from viewkeep.sql.conjunctive import from_sql

TABLES = make_tpch.read_tables()
QUERIES = {q.name: q for q in make_tpch.read_queries(TABLES)}
ALL = list(QUERIES.values())


def with_atom(q: Versions, text: str) -> Versions:
    """The query with one more atom."""
    extra = parse(f"Q() = {text}").atoms
    return versions(replace(q.query, atoms=q.query.atoms + extra, columns=()), TABLES)


def test_the_page_is_what_the_command_makes() -> None:
    assert make_tpch.PAGE.read_text() == make_tpch.page(), "run `make docs`"


def test_every_query_and_its_account_are_there() -> None:
    names = [f"Q{i}" for i in range(1, 23)]
    assert list(QUERIES) == list(make_tpch.read_accounts()) == names


def test_the_schema_has_all_keys() -> None:
    assert len(TABLES) == 8
    assert TABLES["lineitem"].key == ("l_orderkey", "l_linenumber")
    assert TABLES["partsupp"].key == ("ps_partkey", "ps_suppkey")
    assert sum(len(table.foreign_keys) for table in TABLES.values()) == 10


def test_the_sql_is_valid() -> None:
    """Another engine runs schema and queries, on empty tables."""
    connection = duckdb.connect()
    connection.execute((TPCH / "schema.sql").read_text())
    for path in sorted(TPCH.glob("q*.sql")):
        columns = connection.execute(path.read_text()).description
        assert columns, path.name


def test_totals() -> None:
    second = make_tpch.second_reading(ALL, TABLES)
    assert totals(ALL, by_definition) == Totals(11, 4, 11, 4)
    assert totals(ALL, by_study) == Totals(11, 4, 14, 2)
    assert totals(ALL, by_study, names=True) == Totals(11, 4, 14, 4)
    assert totals(second, by_study, names=True) == Totals(8, 4, 12, 4)


def test_which_queries_gain() -> None:
    """The queries that the page names."""
    boolean = [q.boolean for q in ALL if not by_study(q.boolean.query)]
    other = [q for q in ALL if not by_study(q.query)]
    with_keys = [q.name for q in other if by_study(reduct(q.with_keys))]
    with_names = [q.name for q in other if by_study(reduct(q.with_names))]
    gained = [q.name for q in boolean if by_study(reduct(q.with_keys))]
    assert gained == ["Q3", "Q10", "Q11", "Q18"]
    assert with_keys == ["Q2", "Q11"]
    assert with_names == ["Q2", "Q11", "Q20", "Q21"]
    assert make_tpch.only_with_head(ALL) == ["Q3", "Q10", "Q18"]


def test_no_choice_among_the_readings_gives_the_totals_of_the_survey() -> None:
    """Q13 and Q22 counted or not; Q16 as it is, joined, joined and ps_suppkey selected, or not."""
    joined = versions(parse(make_tpch.Q16_JOINED), TABLES)
    narrow = replace(joined, query=replace(joined.query, outputs=joined.query.outputs[:3]))
    rest = [q for q in ALL if q.name not in ("Q13", "Q16", "Q22")]
    choices = product(
        ([], [QUERIES["Q13"]]),
        ([], [QUERIES["Q22"]]),
        ([], [QUERIES["Q16"]], [narrow], [joined]),
    )
    readings = [[*rest, *chain(*chosen)] for chosen in choices]
    with_names = [totals(reading, by_study, names=True) for reading in readings]
    assert len(readings) == 16
    assert SURVEY not in with_names
    assert SURVEY not in [totals(reading, by_study) for reading in readings]
    # What the page says of its fourth reading.
    assert sorted(t.other for t in with_names if t.boolean == SURVEY.boolean) == [11, 11, 12]


def test_join_columns_are_selected_by_six_queries_only() -> None:
    selecting = [q.name for q in ALL if any(len(q.query.atoms_of[v]) > 1 for v in q.query.outputs)]
    assert selecting == ["Q2", "Q3", "Q10", "Q13", "Q15", "Q18"]


def test_what_a_query_selects_makes_no_difference_to_definition_4_2() -> None:
    for q in ALL:
        assert by_definition(q.query) == by_definition(q.boolean.query)
        assert by_definition(reduct(q.with_keys)) == by_definition(reduct(q.boolean.with_keys))


@pytest.mark.parametrize(
    ("name", "verdicts"),
    [
        # customer(c) orders(o, c) lineitem(o): c in {customer, orders}, o in {orders, lineitem}
        # overlap. o is selected: c alone is left. Under o -> c lineitem gets c, so c contains o;
        # the head gets c with o, so no bound variable is above a free one.
        ("Q3", "- yes - yes yes yes yes - yes"),
        # orders(o, priority) lineitem(o): nested. Bound o is above the selected priority, until
        # o -> priority puts both into the same atoms.
        ("Q4", "yes yes yes yes yes yes yes - yes"),
        # orders(o) lineitem(o, mode): nested, but o, in both atoms, is bound and above mode, which
        # no key determines.
        ("Q12", "yes yes yes yes yes yes yes - -"),
        # partsupp(p, s) supplier(s, n) nation(n): s and n overlap; s -> n puts n into partsupp.
        # p is selected, s and n are above it and stay bound.
        ("Q11", "- yes - yes - yes yes - -"),
        # part(p) partsupp(p, s) supplier(s, n) nation(n, r) region(r): s and n overlap in any case.
        # Under s -> n -> r only p and s overlap, and p is selected.
        ("Q2", "- - - - - yes yes - -"),
        # lineitem(o, s) supplier(s, ...) orders(o, ...): o and s overlap, are not selected, and
        # neither key reaches the other's table.
        ("Q7", "- - - - - - - - -"),
        # lineitem(o, s) supplier(s, name, n) orders(o) nation(n): as Q7, but the selected name, if
        # unique, determines s and n, and o alone is left.
        ("Q21", "- - - - - - yes - -"),
    ],
)
def test_by_hand(name: str, verdicts: str) -> None:
    assert ["yes" if holds else "-" for holds in classes(QUERIES[name])] == verdicts.split()


@pytest.mark.parametrize(
    ("name", "atom"),
    [
        ("Q17", "lineitem(partkey)"),
        ("Q18", "lineitem(orderkey)"),
        ("Q20", "lineitem(partkey, suppkey)"),
        ("Q21", "lineitem(orderkey, l2_suppkey)"),
    ],
)
def test_atoms_for_dropped_subqueries_change_no_verdict(name: str, atom: str) -> None:
    extended = with_atom(QUERIES[name], atom)
    assert len(extended.query.atoms) == len(QUERIES[name].query.atoms) + 1
    assert classes(extended) == classes(QUERIES[name])


def test_constants_change_no_verdict() -> None:
    selecting = [q for q in ALL if q.query.conditions]
    assert [q.name for q in selecting] == ["Q2", "Q5", "Q8", "Q11", "Q20", "Q21"]
    for q in selecting:
        assert classes(replace(q, query=replace(q.query, conditions=()))) == classes(q)


def test_bounds_under_keys() -> None:
    plain, keys, foreign_keys = zip(*(bounds(q) for q in ALL), strict=True)
    counts = [sum(each.constant for each in column) for column in (plain, keys, foreign_keys)]
    assert counts == [8, 13, 22]
    # Q5 under foreign keys: a row of lineitem has one order, customer and supplier, so one nation
    # each, and one region; its own updates look these up, theirs are paid by rows that wait.
    assert bounds(QUERIES["Q5"])[2].amortized


@pytest.mark.parametrize("name", ["Q1", "Q3", "Q5", "Q6", "Q10", "Q12"])
def test_sql_as_it_stands_has_the_verdicts_of_the_flattened_query(name: str) -> None:
    query = from_sql((TPCH / f"q{int(name[1:]):02}.sql").read_text(), TABLES)
    q = QUERIES[name]
    assert make_tpch.sql_verdict(name, TABLES) == "conjunctive"
    assert by_definition(query) == by_definition(q.query)
    assert by_definition(reduct(query)) == by_definition(reduct(q.with_keys))
    assert by_study(query) == by_study(q.query)
    assert by_study(reduct(query)) == by_study(reduct(q.with_keys))
    assert analyze_query(query).bounds == bounds(q)[2]
