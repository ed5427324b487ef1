"""Conjunctive queries: their parts, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.strategies import guarded_fds, queries, renamings, static_relations
from viewkeep.errors import ConstraintError, QueryError
from viewkeep.query.aggregates import Aggregate
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.constraints import Constraints
from viewkeep.query.expressions import Call, Column, literal
from viewkeep.query.notation.parse import parse

# Parts ---------------------------------------------------------------------------------------


def test_variables_are_in_order_of_first_appearance_in_the_atoms() -> None:
    assert parse("Q(c, a) = R(b, a) * S(a, c)").variables == ("b", "a", "c")


def test_free_variables_are_outputs_then_inputs_and_the_rest_is_bound() -> None:
    query = parse("Q(d | a) = R(a, b) * S(b, c) * T(c, d)")
    assert query.free == ("d", "a")
    assert query.bound == ("b", "c")


def test_atoms_of_a_variable_are_positions_so_that_self_joins_are_told_apart() -> None:
    query = parse("Q() = E(a, b) * E(b, c) * E(c, a)")
    assert query.atoms_of == {
        "a": frozenset({0, 2}),
        "b": frozenset({0, 1}),
        "c": frozenset({1, 2}),
    }


def test_a_variable_twice_in_one_atom_counts_once() -> None:
    query = parse("Q() = E(a, a) * S(a)")
    assert query.atoms_of["a"] == {0, 1}
    assert query.atoms[0].schema == {"a"}


def test_labels_are_relations_unless_the_relation_occurs_again() -> None:
    assert parse("Q() = E(a, b) * S(b, c) * E(c, a)").labels == ("E(a, b)", "S", "E(c, a)")


def test_relations_are_distinct_and_in_order_of_first_use() -> None:
    query = parse("Q() = S(a, b) * R(b, c) * S(c, d)")
    assert query.relations == ("S", "R")
    assert query.has_self_joins
    assert not parse("Q() = S(a, b) * R(b, c)").has_self_joins


def test_columns_are_those_of_the_first_atom_unless_declared() -> None:
    query = parse("Q() = E(a, b) * E(b, c)")
    assert query.columns_of("E") == ("a", "b")
    declared = ConjunctiveQuery("Q", (), query.atoms, columns=(("E", ("source", "target")),))
    assert declared.columns_of("E") == ("source", "target")


def test_columns_of_an_unknown_relation_are_refused_with_a_hint() -> None:
    with pytest.raises(QueryError, match=r'no relation "Order" \(Orders\); did you mean "Orders"'):
        parse("Q() = Orders(a, b)").columns_of("Order")


def test_more_constraints_are_added_to_those_that_are_there() -> None:
    query = parse("Q() = R(x, y) * S(y, z)").with_constraints(Constraints.parse(fds=["x -> y"]))
    both = query.with_constraints(Constraints.parse(static=["S"]))
    assert both.constraints == Constraints.parse(fds=["x -> y"], static=["S"])


def test_equal_queries_are_one_in_a_set() -> None:
    assert len({parse("Q(a) = R(a, b)"), parse("Q(a)=R(a,b)"), parse("Q(b) = R(a, b)")}) == 2


# What is refused -----------------------------------------------------------------------------

R_AB = Atom("R", ("a", "b"))
S_C = Atom("S", ("c",))


def test_a_query_without_atoms_is_refused() -> None:
    with pytest.raises(QueryError, match="query Q: needs at least one atom"):
        ConjunctiveQuery("Q", (), ())


def test_a_head_variable_in_no_atom_is_refused() -> None:
    with pytest.raises(QueryError, match=r'query Q: head variable "z" is in no atom'):
        ConjunctiveQuery("Q", ("z",), (R_AB,))


def test_a_variable_that_is_output_and_input_is_refused() -> None:
    with pytest.raises(QueryError, match='"a" stands 2 times in the head'):
        ConjunctiveQuery("Q", ("a",), (R_AB,), inputs=("a",))


def test_atoms_of_one_relation_with_different_arities_are_refused() -> None:
    with pytest.raises(QueryError, match=r"R\(a\) has 1 column, but R has 2"):
        ConjunctiveQuery("Q", (), (R_AB, Atom("R", ("a",))))


def test_an_atom_that_does_not_fit_the_declared_columns_is_refused() -> None:
    with pytest.raises(QueryError, match=r"R\(a, b\) has 2 columns, but R has 3"):
        ConjunctiveQuery("Q", (), (R_AB,), columns=(("R", ("x", "y", "z")),))


def test_an_aggregate_of_an_unknown_variable_is_refused() -> None:
    with pytest.raises(QueryError, match=r'query Q: sum\(z\): variable "z" is in no atom'):
        ConjunctiveQuery("Q", (), (R_AB,), aggregates=(Aggregate("sum", Column("z")),))


def test_a_condition_over_two_atoms_is_refused() -> None:
    condition = Call("<", (Column("a"), Column("c")))
    with pytest.raises(QueryError, match="a < c needs a, c together, but no single atom has them"):
        ConjunctiveQuery("Q", (), (R_AB, S_C), conditions=(condition,))


def test_a_function_over_two_atoms_is_refused_but_a_product_is_not() -> None:
    a, c = Column("a"), Column("c")
    product, quotient = Call("*", (a, c)), Call("/", (a, c))
    ConjunctiveQuery("Q", (), (R_AB, S_C), aggregates=(Aggregate("sum", product),))
    for aggregate in (Aggregate("sum", quotient), Aggregate("max", product)):
        with pytest.raises(QueryError, match="needs a, c together"):
            ConjunctiveQuery("Q", (), (R_AB, S_C), aggregates=(aggregate,))


def test_a_condition_over_no_variable_is_allowed() -> None:
    query = ConjunctiveQuery("Q", (), (R_AB,), conditions=(Call("=", (literal(1), literal(1))),))
    assert str(query) == "Q() = R(a, b) * [1 = 1]"


def test_constraints_are_checked_with_the_query() -> None:
    with pytest.raises(ConstraintError, match='no variable "z" in Q'):
        ConjunctiveQuery("Q", (), (R_AB,), constraints=Constraints.parse(fds=["a -> z"]))


# The random queries other tests stand on -----------------------------------------------------


@given(queries())
def test_every_variable_is_either_free_or_bound(query: ConjunctiveQuery) -> None:
    assert sorted(query.free + query.bound) == sorted(query.variables)


@given(st.data())
def test_a_renamed_query_has_the_same_shape(data: DataObject) -> None:
    query = data.draw(queries())
    fds = data.draw(guarded_fds(query))
    known = Constraints.parse(fds=fds, static=data.draw(static_relations(query)))
    query = query.with_constraints(known)
    renaming = data.draw(renamings(query))
    renamed = renaming.query(query)
    assert [len(a.variables) for a in renamed.atoms] == [
        len(query.atoms[i].variables) for i in renaming.order
    ]
    for old, new in renaming.variables.items():
        assert (old in query.free) == (new in renamed.free)
        assert query.atoms_of[old] == {renaming.order[i] for i in renamed.atoms_of[new]}
    assert tuple(map(str, renamed.constraints.fds)) == renaming.fds(fds)


@given(
    queries(
        self_joins=False,
        repeated_variables=False,
        nullary=False,
        inputs=False,
        aggregates=False,
        conditions=False,
    )
)
def test_features_that_are_switched_off_stay_away(query: ConjunctiveQuery) -> None:
    assert not query.has_self_joins
    assert all(atom.variables and len(atom.schema) == len(atom.variables) for atom in query.atoms)
    assert (query.inputs, query.aggregates, query.conditions) == ((), (), ())
