"""Every worked example of the survey and the lecture is classified as printed there."""

from fractions import Fraction

import pytest

from viewkeep.analysis import analyze
from viewkeep.analysis.q_hierarchical import q_hierarchical
from viewkeep.analysis.static_dynamic import EXPONENTIAL, static_preprocessing
from viewkeep.query.constraints import Constraints
from viewkeep.query.notation.parse import parse

HALF = Fraction(1, 2)


def test_lecture_hierarchical():
    """ivm_lecture, part 3, "Hierarchical Queries"."""
    analysis = analyze("Q(b, d) = R(a, b, d) * S(a, b) * T(a, c, e) * U(a, c, f)")
    assert analysis.hierarchical
    assert not analysis.q_hierarchical  # bound a dominates free b


def test_lecture_not_hierarchical():
    """ivm_lecture, part 3, "Hierarchical Queries"."""
    analysis = analyze("Q(a, b) = R(a) * S(a, b) * T(b)")
    assert not analysis.hierarchical
    assert analysis.why["hierarchical"] == (
        "a and b: atoms {R, S} and {S, T} overlap, neither contains the other"
    )


def test_lecture_q_hierarchical():
    """ivm_lecture, part 3, "Q-Hierarchical Queries"."""
    analysis = analyze("Q(a, b, c) = R(a, b, d) * S(a, b) * T(a, c, e) * U(a, c, f)")
    assert analysis.q_hierarchical
    assert analysis.delta_rank == 0
    assert str(analysis.bounds) == ("preprocessing O(N), update O(1), delay O(1), space O(N)")


def test_lecture_hierarchical_but_not_q_hierarchical():
    """ivm_lecture, part 3; recent_increments_in_ivm, examples 4.3 and 5.1."""
    analysis = analyze("Q(a) = S(a, b) * T(b)")
    assert analysis.hierarchical
    assert not analysis.q_hierarchical
    assert analysis.delta_rank == 1
    assert analysis.strategy == "epsilon"
    # Figure 7: O(N) preprocessing, N^eps update, N^(1 - eps) delay, optimal at eps = 1/2.
    assert analysis.bounds.preprocessing == 1
    assert str(analysis.bounds.update) == "eps"
    assert str(analysis.bounds.delay) == "1 - eps"
    assert analysis.bounds.best_epsilon == HALF
    assert analysis.lower_bound is not None
    assert (analysis.lower_bound.update, analysis.lower_bound.delay) == (HALF, HALF)
    assert analysis.lower_bound.conjecture == "OuMv"
    assert analysis.optimal


def test_lecture_delta_1_hierarchical():
    """ivm_lecture, part 3, "delta_1-Hierarchical Queries"; preprocessing is O(N^(1 + eps))."""
    analysis = analyze("Q(a, d, e, g) = R(a, b, d) * S(a, b, e) * T(a, c, f) * U(a, c, g)")
    assert analysis.delta_rank == 1
    assert str(analysis.bounds.preprocessing) == "1 + eps"
    assert str(analysis.bounds.update) == "eps"
    assert str(analysis.bounds.delay) == "1 - eps"


def test_lecture_hierarchical_but_not_delta_1():
    """ivm_lecture, part 3, "delta_1-Hierarchical Queries"."""
    analysis = analyze("Q(d, g) = R(a, b, d) * S(a, b, e) * T(a, c, f) * U(a, c, g)")
    assert analysis.hierarchical
    assert analysis.delta_rank == 2
    assert analysis.bounds.best_epsilon == Fraction(1, 3)  # where 2 eps = 1 - eps


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_example_4_3_becomes_hierarchical_without_any_atom(left_out):
    """recent_increments_in_ivm, example 4.3."""
    atoms = ["R(x)", "S(x, y)", "T(y)"]
    assert not analyze(f"Q() = {' * '.join(atoms)}").hierarchical
    del atoms[left_out]
    assert analyze(f"Q() = {' * '.join(atoms)}").hierarchical


def test_example_4_4_q_hierarchical_join():
    """recent_increments_in_ivm, example 4.4 and figure 3: Y on top of X and Z."""
    analysis = analyze("Q(y, x, z) = R(y, x) * S(y, z)")
    assert analysis.q_hierarchical
    (root,) = analysis.variable_order
    assert root.variable == "y"
    assert [child.variable for child in root.children] == ["x", "z"]


def test_example_4_5_cascade():
    """recent_increments_in_ivm, example 4.5: Q1 rides on Q2."""
    q1 = parse("Q1(A, B, C, D) = R(A, B) * S(B, C) * T(C, D)")
    q2 = parse("Q2(A, B, C) = R(A, B) * S(B, C)")
    workload = analyze([q1, q2])
    assert [analysis.q_hierarchical for analysis in workload] == [False, True]
    (cascade,) = workload.cascades
    assert (cascade.rider, cascade.carriers) == ("Q1", ("Q2",))
    assert str(cascade.rewriting) == "Q1(A, B, C, D) = Q2(A, B, C) * T(C, D)"


def test_example_4_6_triangle_detection_given_three_nodes():
    """recent_increments_in_ivm, example 4.6: tractable, though cyclic."""
    analysis = analyze("Q(| a, b, c) = E(a, b) * E(b, c) * E(c, a)")
    assert not analysis.alpha_acyclic
    assert analysis.tractable_access_pattern
    assert analysis.bounds.constant
    assert str(analysis.fracture) == (
        "Q(| a_1, a_2, b_1, b_2, c_1, c_2) = E(a_1, b_1) * E(b_2, c_1) * E(c_2, a_2)"
    )


def test_example_4_6_edge_triangle_listing():
    """recent_increments_in_ivm, example 4.6: not tractable."""
    analysis = analyze("Q(c | a, b) = E(a, b) * E(b, c) * E(c, a)")
    assert not analysis.tractable_access_pattern
    assert "non-input c dominates input" in analysis.why["tractable_access_pattern"]
    assert str(analysis.fracture) == (
        "Q(c | a_1, a_2, b_1, b_2) = E(a_1, b_1) * E(b_2, c) * E(c, a_2)"
    )


def test_example_4_6_values_for_a_given_key():
    """recent_increments_in_ivm, example 4.6: Q(A | B) is tractable, Q(A) is not."""
    analysis = analyze("Q(a | b) = S(a, b) * T(b)")
    assert analysis.tractable_access_pattern
    assert str(analysis.fracture) == "Q(a | b_1, b_2) = S(a, b_1) * T(b_2)"
    assert not analyze("Q(a) = S(a, b) * T(b)").tractable_access_pattern


RETAILER = (
    "Q(locn, dateid, ksn, zip) = "
    "Inventory(locn, dateid, ksn) * Weather(locn, dateid) * Location(locn, zip) * Census(zip)"
)


def test_example_4_10_retailer():
    """recent_increments_in_ivm, example 4.10: hierarchical only with zip -> locn."""
    plain = analyze(RETAILER)
    assert not plain.hierarchical
    assert plain.why["hierarchical"] == (
        "locn and zip: atoms {Inventory, Weather, Location} and {Location, Census} overlap, "
        "neither contains the other"
    )
    known = analyze(RETAILER, fds=["zip -> locn"])
    assert str(known.reduct.atoms[-1]) == "Census'(zip, locn)"
    assert known.verdicts["reduct_q_hierarchical"].holds
    assert known.bounds.constant
    assert not known.bounds.amortized


def test_example_4_12_reduct():
    """recent_increments_in_ivm, example 4.12; ivm_lecture, part 3, "Query Rewriting"."""
    query = "Q(z, y, x, w) = R(x, w) * S(x, y) * T(y, z)"
    assert not analyze(query).bounds.constant
    analysis = analyze(query, fds=["x -> y", "y -> z"])
    assert str(analysis.reduct) == "Q(z, y, x, w) = R'(x, w, y, z) * S'(x, y, z) * T(y, z)"
    assert analysis.verdicts["reduct_q_hierarchical"].holds
    assert analysis.bounds.constant
    assert analysis.strategy == "viewtree"


def test_example_4_12_with_bounded_degrees():
    """recent_increments_in_ivm, section 4.4: degrees generalise dependencies."""
    query = "Q(z, y, x, w) = R(x, w) * S(x, y) * T(y, z)"
    analysis = analyze(query, degrees=["S: x -> y <= 5", "T: y -> z <= 2"])
    assert analysis.verdicts["bounded_degree"].holds
    assert analysis.bounds.constant


def test_a_degree_bound_does_not_make_a_bound_variable_free():
    """Two y for one x would repeat the output tuple x, so y may not be enumerated above it."""
    query = "Q(x) = R(x, y) * S(y)"
    assert analyze(query, fds=["x -> y"]).bounds.constant
    assert not analyze(query, degrees=["R: x -> y <= 2"]).bounds.constant


def test_example_4_13_primary_and_foreign_keys():
    """recent_increments_in_ivm, example 4.13: amortized constant, and only by foreign keys."""
    query = "Q(m, t, c, n) = Title(m, t) * MovieCompanies(m, c) * CompanyName(c, n)"
    keys = ["Title.m", "CompanyName.c"]
    assert not analyze(query, keys=keys).verdicts["reduct_q_hierarchical"].holds
    assert not analyze(query, keys=keys).bounds.constant
    analysis = analyze(
        query,
        foreign_keys=["MovieCompanies.m -> Title.m", "MovieCompanies.c -> CompanyName.c"],
    )
    assert analysis.verdicts["foreign_key_join"].holds
    assert analysis.bounds.constant
    assert analysis.bounds.amortized
    half = analyze(query, foreign_keys=["MovieCompanies.m -> Title.m"])
    assert "{CompanyName} cannot be reached" in half.why["foreign_key_join"]


STATIC_EXAMPLES = [
    ("Q(a, b, c) = R(a, d) * S(a, b) * T(b, c)", ["T"], Fraction(1)),
    ("Q(a, c, d) = R(a, d) * S(a, b) * T(b, c) * U(d)", ["S", "T"], Fraction(2)),
    ("Q(a, b) = R(a) * S(a, b) * T(b)", ["S"], EXPONENTIAL),
]


@pytest.mark.parametrize(("text", "static", "preprocessing"), STATIC_EXAMPLES)
def test_example_4_14_static_and_dynamic(text, static, preprocessing):
    """recent_increments_in_ivm, example 4.14: linear, quadratic, exponential preprocessing."""
    assert not analyze(text).tractable_with_static
    analysis = analyze(text, static=static)
    assert analysis.tractable_with_static
    query = parse(text).with_constraints(Constraints.parse(static=static))
    assert static_preprocessing(query) == preprocessing
    if preprocessing == EXPONENTIAL:
        assert not analysis.bounds.constant  # declined, so the bounds are those of the fall-back
        assert "exponential preprocessing, declined" in analysis.why["tractable_with_static"]
    else:
        assert analysis.bounds.constant
        assert analysis.bounds.preprocessing == preprocessing


def test_example_4_14_updates_to_the_static_relation_would_be_linear():
    """recent_increments_in_ivm, example 4.14, after the first view tree."""
    analysis = analyze("Q(a, b, c) = R(a, d) * S(a, b) * T(b, c)")
    assert analysis.bounds.update == 1


def test_insert_only_acyclic_join():
    """recent_increments_in_ivm, section 4.6."""
    path = "Q(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)"
    assert not analyze(path).bounds.constant
    analysis = analyze(path, insert_only=True)
    assert analysis.bounds.constant
    assert analysis.bounds.amortized
    triangle = "Q(a, b, c) = R(a, b) * S(b, c) * T(c, a)"
    assert not analyze(triangle, insert_only=True).bounds.constant


def test_insert_only_does_not_promise_counts():
    """A count over R(a) S(a, b) T(b, c) U(c) changes all along the path with every insert."""
    analysis = analyze("Q() = R(a) * S(a, b) * T(b, c) * U(c)", insert_only=True)
    assert not analysis.verdicts["insert_only"].holds
    assert not analysis.bounds.constant


def test_triangle_count():
    """triangle_ivm_epsilon, theorem 3 and proposition 4."""
    analysis = analyze("Q() = R(a, b) * S(b, c) * T(c, a)")
    assert analysis.strategy == "epsilon"
    assert analysis.bounds.preprocessing == Fraction(3, 2)
    assert str(analysis.bounds.update) == "max(eps, 1 - eps)"
    assert analysis.bounds.at(HALF).space == Fraction(3, 2)
    assert analysis.bounds.at(Fraction(1, 4)).space == Fraction(5, 4)
    assert analysis.bounds.amortized
    assert analysis.lower_bound is not None
    assert (analysis.lower_bound.update, analysis.lower_bound.delay) == (HALF, 1)


def test_self_joins_are_classified_but_have_no_proved_lower_bound():
    analysis = analyze("Q() = E(a, b) * E(b, c) * E(c, a)")
    assert analysis.strategy == "epsilon"
    assert analysis.lower_bound is None
    assert "self-joins" in analysis.describe_lower_bound()


ADAPTIVE_SHAPES = {
    "Q() = R(x, y) * S(y, z) * T(x, z)": "triangle count",
    "Q(x, y, z) = R(x, y) * S(y, z) * T(x, z)": "triangle enumeration",
    "Q() = A(b, c, d) * B(a, c, d) * C(a, b, d) * D(a, b, c)": "Loomis-Whitney count",
    "Q() = A(p, q) * B(q, r) * C(r, s)": "count over three relations",
    "Q() = A(p, q) * D(s, t) * B(q, r) * C(r, s)": "4-path count",
    "Q() = A(p, q) * C(r, s) * B(q, r) * D(s, p)": "4-cycle count",
}


@pytest.mark.parametrize(("text", "shape"), ADAPTIVE_SHAPES.items())
def test_adaptive_shapes(text, shape):
    """triangle_ivm_epsilon, conclusion: queries that minor variants of IVM^eps maintain."""
    analysis = analyze(text)
    assert analysis.why["adaptive"].startswith(shape)
    assert analysis.strategy == "epsilon"
    assert analysis.bounds.worst(HALF) < 1


NEAR_SHAPES = [
    "Q(x) = R(x, y) * S(y, z) * T(x, z)",
    "Q(x, y, z) = R(x, y, w) * S(y, z) * T(x, z)",
    "Q() = A(p, q) * B(q, r) * C(r, s) * D(s, t) * E(t, u)",
    "Q() = A(p, q) * B(q, r) * C(q, s) * D(s, t)",
    "Q() = A(p, q) * B(p, q) * C(r, s) * D(r, s)",
    "Q() = A(b, c, d) * B(a, c, d) * C(a, b, d) * D(a, b)",
]


@pytest.mark.parametrize("text", NEAR_SHAPES)
def test_what_only_looks_like_an_adaptive_shape_is_not(text):
    assert not analyze(text).verdicts["adaptive"].holds


def test_constants_count_as_dependencies():
    """With y = 3, R(x) S(x, y) T(y) is hierarchical: y has one value."""
    assert not analyze("Q() = R(x) * S(x, y) * T(y)").bounds.constant
    assert analyze("Q() = R(x) * S(x, y) * T(y) * [y = 3]").bounds.constant


@pytest.mark.parametrize(
    ("text", "known", "witness"),
    [
        (
            "Q(a, b, c) = R(a, b) * S(a, b, c) * T(a, c)",
            {"keys": ["R.a"]},
            "T does not determine b in the view of c",
        ),
        ("Q(x, y, z, w) = R(x, y) * S(y, z) * T(x, z, w)", {"fds": ["x -> y", "y -> z"]}, ""),
        ("Q() = R(a, c) * S(f, a) * V(c, f)", {"fds": ["a -> c", "c -> a"]}, ""),
    ],
)
def test_a_q_hierarchical_reduct_is_not_enough_where_the_guard_changes(text, known, witness):
    """One update to the guard R pairs many tuples of the others anew: with all other variables
    fixed, each of these multiplies a matrix by the vectors that OMv gives one by one."""
    analysis = analyze(text, **known)
    assert q_hierarchical(analysis.reduct)
    assert not analysis.verdicts["reduct_q_hierarchical"].holds
    assert witness in analysis.why["reduct_q_hierarchical"]
    assert not analysis.bounds.constant


def test_bounded_degrees_must_hold_where_they_are_used():
    text = "Q(a, b, c) = R(a, b) * S(a, b, c) * T(a, c)"
    one = analyze(text, degrees=["R: a -> b <= 3"])
    both = analyze(text, degrees=["R: a -> b <= 3", "S: a -> b <= 3"])
    assert [one.verdicts["bounded_degree"].holds, one.bounds.constant] == [False, False]
    assert [both.verdicts["bounded_degree"].holds, both.bounds.constant] == [True, True]


def test_insert_only_with_inputs_does_not_intersect_sets():
    """Given a and c, the values b are a set intersection; given a alone they are a list."""
    intersection = analyze("Q(b | a, c) = R(a, b) * S(b, c)", insert_only=True)
    assert "inputs cannot come first" in intersection.why["insert_only"]
    assert not intersection.bounds.constant
    assert analyze("Q(b, c | a) = R(a, b) * S(b, c)", insert_only=True).bounds.constant


@pytest.mark.parametrize(
    ("text", "known", "proved"),
    [
        ("Q() = R(x) * S(x, y) * T(y)", {}, True),
        # Every x of S is in R, so R only counts: S(x, y) * T(y) alone is hierarchical.
        ("Q() = R(x) * S(x, y) * T(y)", {"foreign_keys": ["S.x -> R.x"]}, False),
        ("Q() = R(x) * S(x, y) * T(y) * [x = y]", {}, False),
        ("Q() = R(x) * S(x, y) * T(y) * [x = 1 or x = 2]", {}, False),
        ("Q() = R(x) * S(x, y) * T(y) * [x > 3] * [x < 7]", {}, False),
        ("Q() = R(x) * S(x, y) * T(y) * [x > 3] * [isnotnull(y)]", {}, True),
        ("Q() = R(x) * S(x, y, d) * T(y) * [d = 1 or d = 2]", {}, True),
    ],
)
def test_lower_bounds_are_claimed_only_where_the_reduction_works(text, known, proved):
    assert (analyze(text, **known).lower_bound is not None) == proved


def test_extrema_are_no_ring_for_heavy_and_light_parts():
    text = "Q(; {}(x)) = R(x, y) * S(y, z) * T(x, z)"
    assert analyze(text.format("sum")).strategy == "epsilon"
    assert analyze(text.format("min")).strategy != "epsilon"


def test_bound_variables_of_one_atom_change_no_verdict():
    """They are summed away where they stand: SQL leaves them out, the notation may keep them."""
    lean = analyze("Q() = R(a, b) * S(b, c) * T(c, a)")
    wide = analyze("Q() = R(a, b, d) * S(b, c) * T(c, a)")
    assert wide.bounds == lean.bounds
    assert wide.lower_bound == lean.lower_bound
    lean = analyze("Q(b) = R(a, b) * S(a) * T(a, b)", static=["T"])
    wide = analyze("Q(b) = R(a, b) * S(a, c) * T(a, b)", static=["T"])
    assert wide.tractable_with_static == lean.tractable_with_static


def test_the_best_known_strategy_is_the_one_that_runs():
    analysis = analyze("Q() = R(a, b) * S(b, c) * T(c, a)")
    assert analysis.strategy == "epsilon"
    assert analysis.available == analysis.route


def test_a_list_of_triangles_may_hold_all_of_them_whatever_epsilon_is():
    bounds = analyze("Q(a, b, c) = R(a, b) * S(b, c) * T(c, a)").bounds
    assert (bounds.preprocessing, bounds.space) == (Fraction(3, 2), Fraction(3, 2))
    assert str(bounds.update) == "max(eps, 1 - eps)"


def test_views_over_the_middle_of_a_path_grow_as_epsilon_falls():
    bounds = analyze("Q() = R(a, b) * S(b, c) * T(c, d) * U(d, e)").bounds
    assert (str(bounds.update), str(bounds.space)) == ("max(eps, 1 - eps)", "2 - eps")
    assert bounds.at(HALF).preprocessing == Fraction(3, 2)
    assert bounds.best_epsilon == HALF


def test_the_views_of_the_four_cycle_are_smaller_than_loading_is_long():
    bounds = analyze("Q() = R(a, b) * S(b, c) * T(c, d) * U(d, a)").bounds
    assert (bounds.update, bounds.space) == (Fraction(2, 3), Fraction(4, 3))
    assert bounds.preprocessing == Fraction(5, 3)
