"""Constraints: reading them, and what they say of a query."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.strategies import guarded_fds, queries
from viewkeep.errors import ConstraintError, QueryError
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.constraints import (
    NO_CONSTRAINTS,
    Constraints,
    DegreeBound,
    Dependency,
    ForeignKey,
    FunctionalDependency,
    Key,
    closure,
    dependencies,
)
from viewkeep.query.notation.parse import parse


def resolved(text: str, **constraints: list[str]) -> set[tuple[str, str, int, int]]:
    """The dependencies of a query as (determinant, dependent, guard, bound)."""
    query = parse(text).with_constraints(Constraints.parse(**constraints))  # type: ignore[arg-type]
    return {
        ("".join(sorted(d.determinant)), d.dependent, d.guard, d.bound) for d in dependencies(query)
    }


# Reading -------------------------------------------------------------------------------------


def test_every_form_is_read() -> None:
    assert Constraints.parse(
        fds=["x, y -> z"],
        keys=["PS.part, PS.supplier"],
        foreign_keys=["M.company -> C.id"],
        degrees=["S: x -> y <= 3"],
        static=["T"],
        insert_only=True,
    ) == Constraints(
        (FunctionalDependency(("x", "y"), ("z",)),),
        (Key("PS", ("part", "supplier")),),
        (ForeignKey("M", ("company",), "C", ("id",)),),
        (DegreeBound("S", ("x",), ("y",), 3),),
        frozenset({"T"}),
        True,
    )


@pytest.mark.parametrize("text", ["x -> y", "x, y -> z, w", "-> x"])
def test_a_functional_dependency_prints_as_it_is_read(text: str) -> None:
    assert str(FunctionalDependency.parse(text)) == text


@pytest.mark.parametrize("text", ["C.id", "db.C.id", "PS.part, PS.supplier"])
def test_a_key_prints_as_it_is_read(text: str) -> None:
    assert str(Key.parse(text)) == text


@pytest.mark.parametrize("text", ["M.company -> C.id", "L.p, L.s -> PS.p, PS.s"])
def test_a_foreign_key_prints_as_it_is_read(text: str) -> None:
    assert str(ForeignKey.parse(text)) == text


@pytest.mark.parametrize("text", ["S: x -> y <= 3", "S: x, y -> z, w <= 10"])
def test_a_degree_bound_prints_as_it_is_read(text: str) -> None:
    assert str(DegreeBound.parse(text)) == text


@pytest.mark.parametrize(
    ("given_as", "message"),
    [
        ({"fds": ["x, y"]}, '"x, y": a functional dependency is written x, y -> z'),
        ({"fds": ["x ->"]}, '"x ->": a functional dependency is written x, y -> z'),
        ({"fds": ["x -> y -> z"]}, "a functional dependency is written"),
        ({"fds": ["x,, y -> z"]}, '"x,, y": a name is missing between the commas'),
        ({"fds": "x -> y"}, 'fds="x -> y": give a list, as in fds=["x -> y"]'),
        ({"static": "T"}, 'static="T": give a list, as in static=["T"]'),
        ({"keys": ["id"]}, '"id": a key is written R.a or R.a, R.b'),
        ({"keys": ["R.a, S.b"]}, '"R.a, S.b": a key is written R.a or R.a, R.b'),
        ({"keys": [""]}, "a key is written"),
        ({"foreign_keys": ["M.company"]}, "a foreign key is written M.company -> C.id"),
        ({"foreign_keys": ["company -> C.id"]}, "a foreign key is written M.company -> C.id"),
        ({"foreign_keys": ["M.a, M.b -> C.id"]}, "the sides have different lengths"),
        ({"degrees": ["S: x -> y"]}, '"S: x -> y": a degree bound is written S: x -> y <= 3'),
        ({"degrees": ["x -> y <= 3"]}, "a degree bound is written S: x -> y <= 3"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_right_form(
    given_as: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(ConstraintError, match=re.escape(message)):
        Constraints.parse(**given_as)  # type: ignore[arg-type]


# Closure -------------------------------------------------------------------------------------


def test_the_closure_of_the_survey() -> None:
    """recent_increments_in_ivm, section 4.4: under {A -> C; BC -> D}, AB determines ABCD."""
    known = dependencies(
        parse("Q() = R(A, C) * S(B, C, D)").with_constraints(
            Constraints.parse(fds=["A -> C", "B, C -> D"])
        )
    )
    assert closure("AB", known) == set("ABCD")
    assert closure("A", known) == set("AC")
    assert closure("BC", known) == set("BCD")
    assert closure("BD", known) == set("BD")


def test_a_chain_against_the_order_of_the_rules_is_followed_to_its_end() -> None:
    chain = [Dependency(frozenset({f"v{i}"}), f"v{i + 1}", 0) for i in reversed(range(6))]
    assert closure(["v0"], chain) == {f"v{i}" for i in range(7)}


@given(st.data())
def test_a_closure_is_closed_and_grows_with_its_variables(data: DataObject) -> None:
    query = data.draw(queries(nullary=False))
    query = query.with_constraints(Constraints.parse(fds=data.draw(guarded_fds(query))))
    known = dependencies(query)
    few = data.draw(st.sets(st.sampled_from(query.variables)))
    more = few | data.draw(st.sets(st.sampled_from(query.variables)))
    closed = closure(few, known)
    assert few <= closed <= closure(more, known)
    assert closure(closed, known) == closed


# On a query ----------------------------------------------------------------------------------


def test_a_dependency_is_guarded_by_every_atom_that_has_its_variables() -> None:
    assert resolved("Q() = R(x, y) * S(x, y, z) * T(y, z)", fds=["x -> y"]) == {
        ("x", "y", 0, 1),
        ("x", "y", 1, 1),
    }


def test_each_dependent_finds_its_own_guard() -> None:
    assert resolved("Q() = R(x, y) * S(x, z)", fds=["x -> y, z"]) == {
        ("x", "y", 0, 1),
        ("x", "z", 1, 1),
    }


def test_a_variable_does_not_depend_on_itself() -> None:
    assert resolved("Q() = R(x, y)", fds=["x -> x, y"]) == {("x", "y", 0, 1)}


def test_a_key_determines_the_other_columns() -> None:
    assert resolved("Q() = PS(p, s, c) * P(p)", keys=["PS.p, PS.s"]) == {("ps", "c", 0, 1)}


def test_a_key_holds_in_every_atom_of_its_relation() -> None:
    """The columns have the names of the first atom; the second has other variables there."""
    assert resolved("Q() = E(a, b) * E(b, c)", keys=["E.a"]) == {
        ("a", "b", 0, 1),
        ("b", "c", 1, 1),
    }


def test_a_key_over_a_repeated_variable_determines_nothing_new() -> None:
    assert resolved("Q() = E(a, b) * E(c, c)", keys=["E.a"]) == {("a", "b", 0, 1)}


def test_a_key_on_declared_columns_is_found_by_position() -> None:
    query = ConjunctiveQuery(
        "Q",
        (),
        (Atom("C", ("x", "y")),),
        constraints=Constraints.parse(keys=["C.id"]),
        columns=(("C", ("name", "id")),),
    )
    assert dependencies(query) == (Dependency(frozenset({"y"}), "x", 0),)


def test_a_foreign_key_makes_what_it_refers_to_a_key() -> None:
    found = resolved("Q() = M(m, c) * C(c, n)", foreign_keys=["M.c -> C.c"])
    assert found == {("c", "n", 1, 1)}


def test_a_degree_bound_is_a_dependency_with_its_bound() -> None:
    assert resolved("Q() = S(x, y, z)", degrees=["S: x -> y <= 3"]) == {("x", "y", 0, 3)}


@pytest.mark.parametrize("condition", ["y = 3", "3 = y", "y = 3 and x > 0"])
def test_a_condition_can_make_a_variable_constant(condition: str) -> None:
    found = resolved(f"Q() = R(x, y) * S(y) * [{condition}]")
    assert found == {("", "y", 0, 1), ("", "y", 1, 1)}


@pytest.mark.parametrize("condition", ["y > 3", "y = x", "y = null", "y = 3 or x = 1"])
def test_other_conditions_make_nothing_constant(condition: str) -> None:
    assert resolved(f"Q() = R(x, y) * [{condition}]") == set()


def test_a_dependency_that_no_atom_guards_is_refused() -> None:
    message = 'functional dependency "x -> z": no atom of Q has x, z together'
    with pytest.raises(ConstraintError, match=message):
        resolved("Q() = R(x, y) * S(y, z)", fds=["x -> z"])


def test_a_dependency_that_no_atom_guards_is_accepted_when_others_imply_it() -> None:
    found = resolved("Q() = R(x, y) * S(y, z)", fds=["x -> z", "x -> y", "y -> z"])
    assert found == {("x", "y", 0, 1), ("y", "z", 1, 1)}


@pytest.mark.parametrize(
    ("given_as", "message"),
    [
        ({"fds": ["prize -> id"]}, 'no variable "prize" in Q (id, price, x); did you mean "price"'),
        ({"keys": ["Part.idd"]}, 'column "idd" is not in Part (id, price); did you mean "id"?'),
        ({"keys": ["Prt.id"]}, 'query Q has no relation "Prt" (Part, S); did you mean "Part"?'),
        ({"degrees": ["Part: id -> cost <= 2"]}, 'column "cost" is not in Part (id, price)'),
        ({"foreign_keys": ["S.y -> Part.id"]}, 'column "y" is not in S (id, x)'),
        ({"foreign_keys": ["S.id -> Part.key"]}, 'column "key" is not in Part (id, price)'),
        ({"static": ["Parts"]}, 'query Q has no relation "Parts" (Part, S); did you mean "Part"?'),
    ],
)
def test_a_constraint_on_what_the_query_does_not_have_is_refused(
    given_as: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(QueryError, match=re.escape(message)):
        resolved("Q() = Part(id, price) * S(id, x)", **given_as)


def test_a_column_of_the_table_that_the_query_does_not_bind_is_told_from_a_misspelt_one() -> None:
    query = replace(parse("Q(oid) = items(oid, price)"), columns=(("items", ("oid", "price")),))
    message = (
        'column "pid" is not in items (oid, price): the query binds only these columns of items'
    )
    with pytest.raises(ConstraintError, match=re.escape(message)):
        query.with_constraints(Constraints.parse(keys=["items.oid, items.pid"]))


# Together ------------------------------------------------------------------------------------


def test_merging_keeps_everything_once() -> None:
    first = Constraints.parse(fds=["x -> y"], keys=["R.x"], static=["S"])
    second = Constraints.parse(fds=["x -> y", "y -> z"], degrees=["S: y -> z <= 2"], static=["T"])
    assert first.merge(second) == Constraints.parse(
        fds=["x -> y", "y -> z"], keys=["R.x"], degrees=["S: y -> z <= 2"], static=["S", "T"]
    )
    assert first.merge(Constraints(insert_only=True)).insert_only


def test_no_constraints_are_false_and_change_nothing() -> None:
    some = Constraints.parse(foreign_keys=["M.c -> C.c"])
    assert not NO_CONSTRAINTS
    assert all([some, Constraints(insert_only=True), Constraints.parse(static=["T"])])
    assert some.merge(NO_CONSTRAINTS) == NO_CONSTRAINTS.merge(some) == some
