"""Rewritings over another query's output give the same result, payloads included."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.strategies import queries
from viewkeep.analysis import analyze
from viewkeep.analysis.cascade import rewritings_with
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.notation.parse import parse
from viewkeep.query.tables import Table
from viewkeep.rings import Relation
from viewkeep.sql import from_sql

Database = dict[str, Relation]


def evaluate(query: ConjunctiveQuery, database: Database) -> Relation:
    """Join everything, then sum the bound variables away."""
    result = Relation.from_mapping((), {(): 1})
    for atom in query.atoms:
        result = result * _bind(database[atom.relation], atom.variables)
    return result.marginalise(query.bound).project(query.outputs)


def _bind(relation: Relation, variables: tuple[str, ...]) -> Relation:
    """The relation over the atom's variables; repeated ones select equal values."""
    names = tuple(dict.fromkeys(variables))
    bound = Relation(names)
    for row, payload in relation.items():
        value = dict(zip(variables, row, strict=True))
        if all(value[v] == x for v, x in zip(variables, row, strict=True)):
            bound.add(tuple(value[v] for v in names), payload)
    return bound


@given(st.data())
@settings(max_examples=150)
def test_rewritings_are_equivalent(data):
    plain = queries(max_atoms=4, inputs=False, aggregates=False, conditions=False)
    rider = data.draw(plain)
    chosen = data.draw(st.lists(st.sampled_from(rider.atoms), min_size=1, max_size=2, unique=True))
    variables = list(dict.fromkeys(v for atom in chosen for v in atom.variables))
    outputs = [v for v in variables if data.draw(st.booleans())]
    carrier = ConjunctiveQuery("View", tuple(outputs), tuple(chosen))
    rewritings = list(rewritings_with(rider, carrier))
    assume(rewritings)
    database = {}
    for atom in rider.atoms:
        row = st.tuples(*[st.integers(0, 2)] * len(atom.variables))
        content = data.draw(st.dictionaries(row, st.integers(-2, 3).filter(bool), max_size=6))
        columns = tuple(f"c{i}" for i in range(len(atom.variables)))
        database.setdefault(atom.relation, Relation.from_mapping(columns, content))
    view = evaluate(carrier, database)
    for rewriting in rewritings:
        assert evaluate(rewriting, {**database, "View": view}) == evaluate(rider, database)


def test_a_variable_that_is_still_needed_must_not_be_summed_away():
    rider = parse("Q1(a) = R(a, b) * S(b, c) * T(b)")
    assert not list(rewritings_with(rider, parse("Q2(a) = R(a, b) * S(b, c)")))
    assert list(rewritings_with(rider, parse("Q2(a, b) = R(a, b) * S(b, c)")))


def test_one_carrier_may_need_another():
    """Q rides on P, which rides on V: each rewriting alone is q-hierarchical."""
    v = parse("V(a, b, c) = R(a, b) * S(b, c)")
    p = parse("P(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)")
    q = parse("Q(a, b, c, d, e) = R(a, b) * S(b, c) * T(c, d) * U(d, e)")
    cascades = analyze([q, p, v]).cascades
    assert [(c.rider, c.carriers) for c in cascades] == [("P", ("V",)), ("Q", ("P",))]


def test_aggregates_and_conditions_do_not_ride_on_what_lacks_them():
    plain = parse("V(a, b) = R(a, b)")
    filtered = parse("V(a, b) = R(a, b) * [b > 3]")
    rider = parse("Q(a, b, c) = R(a, b) * S(b, c) * [b > 3]")
    other = parse("Q(a, b, c) = R(a, b) * S(b, c)")
    assert list(rewritings_with(rider, filtered))
    assert list(rewritings_with(rider, plain))
    assert not list(rewritings_with(other, filtered))


def test_inputs_of_a_rider_must_stay_on_top():
    """Given b and c, Q would intersect sets, also over the enumerated V."""
    rider = parse("Q(a | b, c) = R(a, b) * S(a, c)")
    assert not analyze([rider, parse("V(a, b) = R(a, b)")]).cascades


def test_different_columns_of_one_table_do_not_match():
    integer = "int not null"
    tables = {
        "R": Table({"a": integer, "b": integer, "x": integer}),
        "S": Table({"b": integer, "c": integer}),
        "T": Table({"c": integer, "d": integer}),
    }
    rider = from_sql("select a, R.b, S.c, d from R join S using (b) join T using (c)", tables)
    on_b = from_sql("select a, R.b, S.c from R join S on R.b = S.b", tables)
    on_x = from_sql("select a, R.x, S.c from R join S on R.x = S.b", tables)
    assert list(rewritings_with(rider, on_b))
    assert not list(rewritings_with(rider, on_x))


def test_names_and_arities_that_clash_only_prevent_the_cascade():
    rider = parse("Q(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)")
    assert not analyze([rider, parse("V(a) = R(a)")]).cascades
    for name in ("R", "T"):
        assert not analyze([rider, parse(f"{name}(a, b, c) = R(a, b) * S(b, c)")]).cascades
