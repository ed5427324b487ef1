"""What the analysis promises of heavy and light parts is what the planned programs do."""

from fractions import Fraction
from itertools import product

import pytest

from viewkeep.analysis import analyze_query
from viewkeep.analysis.adaptive import SHAPES, find_shape
from viewkeep.analysis.edge_cover import edge_cover
from viewkeep.analysis.exponents import value_at
from viewkeep.plan.choose import plan
from viewkeep.plan.program import INPUT, Map, Program
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.notation.parse import parse

EPSILONS = (Fraction(3, 10), Fraction(1, 2), Fraction(7, 10))

INSTANCES = {
    "triangle count": [
        "Q() = R(a, b) * S(b, c) * T(c, a)",
        "Q() = One(x, y) * Two(x, z) * Three(z, y)",
        "Q() = E(a, b) * E(b, c) * E(c, a)",
        "Q() = R(a, b, local) * S(b, c) * T(c, other, a)",
    ],
    "triangle enumeration": [
        "Q(a, b, c) = R(a, b) * S(b, c) * T(c, a)",
        "Q(z, x, y) = One(x, y) * Two(x, z) * Three(z, y)",
        "Q(a, b, c) = E(a, b) * E(b, c) * E(c, a)",
    ],
    "Loomis-Whitney count": [
        "Q() = R(a, b, c) * S(b, c, d) * T(c, d, a) * U(d, a, b)",
        "Q() = A(z, x, y) * B(w, z, y) * C(y, w, x) * D(x, w, z)",
        "Q() = P(b, c, d, e) * R(a, c, d, e) * S(a, b, d, e) * T(a, b, c, e) * U(a, b, c, d)",
        "Q() = R(a, b, c) * S(b, c, d, local) * T(c, d, a) * U(other, d, a, b)",
    ],
    "count over three relations": [
        "Q() = R(a) * S(a, b) * T(b)",
        "Q() = R(a, b) * S(b, c) * T(c, d)",
        "Q() = A(q, p) * C(r) * B(q, r)",
        "Q() = R(a, aa, x) * S(a, aa, b, bb, y) * T(b, bb)",
        "Q() = R(a, k) * S(a, b, k) * T(b, k)",
        "Q() = R(a, b, k) * S(b, c, k) * T(c, a, k)",
        "Q() = R(a, aa, b) * S(b, c, cc) * T(c, cc, a, aa)",
        "Q() = E(a, b) * E(b, c) * E(c, d)",
    ],
    "4-path count": [
        "Q() = R(a, b) * S(b, c) * T(c, d) * U(d, e)",
        "Q() = A(p, q) * D(s, t) * B(q, r) * C(r, s)",
        "Q() = E(a, b) * E(b, c) * E(c, d) * E(d, e)",
    ],
    "4-cycle count": [
        "Q() = R(a, b) * S(b, c) * T(c, d) * U(d, a)",
        "Q() = A(p, q) * C(r, s) * B(q, r) * D(s, p)",
        "Q() = R(a, b, local) * S(b, c) * T(c, d) * U(d, a)",
    ],
}
"""Renamed, turned, with composite variables, variables of one atom, and variables of all."""

QUERIES = [(shape, text) for shape, texts in INSTANCES.items() for text in texts]


def dearest_update(program: Program, epsilon: Fraction) -> Fraction:
    costs = [block.cost for trigger in program.triggers for block in trigger.blocks]
    return max(value_at(cost, epsilon) for cost in costs if cost is not None)


def largest_view(query: ConjunctiveQuery, program: Program, epsilon: Fraction) -> Fraction:
    views = [each for each in program.maps if each.definition != INPUT]
    return max(size_of(query, view, epsilon) for view in views)


def size_of(query: ConjunctiveQuery, view: Map, epsilon: Fraction) -> Fraction:
    """By degrees, as the planner says, or as any join of these atoms: both bounds hold."""
    assert view.size is not None
    any_join = edge_cover(frozenset(view.key), [query.atoms[i].schema for i in sorted(view.atoms)])
    return min(value_at(view.size, epsilon), any_join)


def check(query: ConjunctiveQuery) -> None:
    """The program has the strategy, the update time and the space that were promised."""
    analysis, program = analyze_query(query), plan(query)
    assert program.strategy == analysis.strategy == analysis.available.strategy == "epsilon"
    assert all(block.cost is not None for each in program.triggers for block in each.blocks)
    for epsilon in EPSILONS:
        promised = analysis.bounds.at(epsilon)
        assert dearest_update(program, epsilon) == promised.update
        assert largest_view(query, program, epsilon) <= value_at(promised.space, epsilon)


def test_every_shape_has_instances() -> None:
    assert list(INSTANCES) == [shape.name for shape in SHAPES]


@pytest.mark.parametrize(("shape", "text"), QUERIES)
def test_programs_keep_what_the_analysis_promises(shape: str, text: str) -> None:
    query = parse(text)
    assert getattr(find_shape(query), "name", None) == shape
    check(query)


def three_relation_counts() -> list[str]:
    """All counts over three relations that are not hierarchical, up to renaming.

    What matters of a variable is its atoms. Two variables cross if both are in a pair of atoms;
    the others may be in one atom, in two or in all, and each may be there or not.
    """
    kinds = ["RS", "ST", "RT", "R", "S", "T", "RST"]
    texts = []
    for present in product((False, True), repeat=len(kinds)):
        if sum(present[:3]) < 2:
            continue
        schemas: dict[str, list[str]] = {"R": [], "S": [], "T": []}
        for atoms, _ in (each for each in zip(kinds, present, strict=True) if each[1]):
            for atom in atoms:
                schemas[atom].append(f"v{atoms}")
        atoms_text = [f"{atom}({', '.join(names)})" for atom, names in schemas.items()]
        texts.append(f"Q() = {' * '.join(atoms_text)}")
    return texts


def test_every_count_over_three_relations_keeps_its_promise() -> None:
    texts = three_relation_counts()
    assert len(texts) == 64
    for text in texts:
        check(parse(text))


def test_a_list_of_triangles_with_a_variable_to_sum_away_is_not_promised() -> None:
    query = parse("Q(a, b, c) = R(a, b, x) * S(b, c) * T(c, a)")
    assert find_shape(query) is None
    assert plan(query).strategy == analyze_query(query).strategy != "epsilon"


def test_asked_for_it_also_runs_where_nothing_is_promised() -> None:
    path = parse("Q() = R(a, b) * S(b, c) * T(c, d) * U(d, e) * W(e, f)")
    assert plan(path).strategy == analyze_query(path).strategy == "viewtree"
    program = plan(path, "epsilon")
    assert dearest_update(program, Fraction(1, 2)) == Fraction(2, 3)
