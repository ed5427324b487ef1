"""The worked examples of the lecture (ivm_lecture), with what its slides print."""

import random
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import viewkeep as vk
from bench._cases import TRIANGLE, Case
from bench._paper_page import (
    NOT,
    PARTLY,
    REPRODUCED,
    Claim,
    Section,
    Show,
    exact_claim,
    graded_claim,
)
from bench.bounds import MARGIN, Measurement, measure
from viewkeep.analysis import Analysis, analyze
from viewkeep.rings import BOOLEAN, INTEGERS, REALS, Relation, value_lift

TITLE = "The lecture: Introduction to Incremental View Maintenance (2023)"
TEXT = (
    "`ivm_lecture`. Its examples are small and exact: what a slide prints is compared with what "
    "the same data gives here. Update times are exponents of N, fitted to step counts on growing "
    "data that is as bad as can be ([how](bounds.md)); they do not depend on the machine."
)

Payloads = Mapping[tuple[Any, ...], Any]


def factor(schema: str, payloads: Payloads, ring: Any = INTEGERS) -> Relation[Any]:
    """A relation over variables of one letter."""
    return Relation.from_mapping(tuple(schema), payloads, ring)


# --- part 1: relations over rings -----------------------------------------------------------------


def factor_claims() -> Iterator[Claim]:
    """Updates as factors, and the three operations."""
    columns = ("employee", "age")
    staff = Relation.from_mapping(columns, {("Elise", 35): 2, ("Steve", 40): 1, ("Joe", 30): 2})
    update = {("Steve", 40): -1, ("Steve", 38): 1, ("Joe", 30): -2, ("Mary", 33): 2}
    found = dict((staff + Relation.from_mapping(columns, update)).items())
    printed = {("Elise", 35): 2, ("Steve", 38): 1, ("Mary", 33): 2}
    yield exact_claim("part 1, uniform representation", "factor + update", printed, found)

    r1, r2, s1, s2, t1, t2 = 2, 3, 5, 7, 11, 13
    values = "r1, r2, s1, s2, t1, t2 = 2, 3, 5, 7, 11, 13"
    r = factor("ab", {("a1", "b1"): r1, ("a2", "b1"): r2})
    s = factor("ab", {("a2", "b1"): s1, ("a3", "b2"): s2})
    t = factor("bc", {("b1", "c1"): t1, ("b2", "c2"): t2})
    place, v = "part 1, operations on factors", r + s
    union = {("a1", "b1"): r1, ("a2", "b1"): r2 + s1, ("a3", "b2"): s2}
    yield exact_claim(place, f"V = R + S, with {values}", union, dict(v.items()))
    join = {
        ("a1", "b1", "c1"): r1 * t1,
        ("a2", "b1", "c1"): (r2 + s1) * t1,
        ("a3", "b2", "c2"): s2 * t2,
    }
    yield exact_claim(place, "W = V * T", join, dict((v * t).items()))
    rest = {("b1", "c1"): r1 * t1 + (r2 + s1) * t1, ("b2", "c2"): s2 * t2}
    yield exact_claim(place, "U = sum over a of W", rest, dict((v * t).marginalise("a").items()))


def evaluation_claims() -> Iterator[Claim]:
    """COUNT and SUM(C * D) pushed past joins, against the whole join."""
    choose = random.Random(7)
    rows = [[tuple(choose.choices(range(6), k=n)) for _ in range(30)] for n in (2, 3, 2)]
    joined = [
        (c, d) for (a, _), (other, c, _), (end, d) in product(*rows) if (a, c) == (other, end)
    ]
    for title, ring, lifted, naive in (
        ("COUNT", INTEGERS, "", len(joined)),
        ("SUM(C * D)", REALS, "cd", float(sum(c * d for c, d in joined))),
    ):
        r, s, t = (
            Relation.from_rows(tuple(schema), each, ring)
            for schema, each in zip(("ab", "ace", "cd"), rows, strict=True)
        )
        lifts = {variable: value_lift(REALS) for variable in lifted}
        v4 = (s.marginalise("e", lifts) * t.marginalise("d", lifts)).marginalise("c", lifts)
        found = (r.marginalise("b", lifts) * v4).marginalise("a", lifts).lookup(())
        place = "part 1, query evaluation" if not lifted else "part 1, factor payloads"
        statement = f"{title} over R(a, b) S(a, c, e) T(c, d) by V1 to V4 is that of the join"
        yield exact_claim(place, f"{statement} (30 random rows each)", naive, found)


# --- part 2: the triangle count ----------------------------------------------------------------

TRIANGLES: dict[str, Payloads] = {
    "R": {("a1", "b1"): 2, ("a2", "b1"): 3},
    "S": {("b1", "c1"): 2, ("b1", "c2"): 1},
    "T": {("c1", "a1"): 1, ("c2", "a1"): 3, ("c2", "a2"): 3},
}
"""The database of the update example, which is figure 2 of the survey as well."""


def triangle_claims(place: str) -> Iterator[Claim]:
    """The join, the count, and the count after deleting (a2, b1) twice, by every strategy."""
    r, s, t = (factor(n, TRIANGLES[r]) for n, r in (("ab", "R"), ("bc", "S"), ("ca", "T")))
    joined = {("a1", "b1", "c1"): 4, ("a1", "b1", "c2"): 6, ("a2", "b1", "c2"): 9}
    yield exact_claim(place, "R * S * T", joined, dict((r * s * t).items()))
    change = factor("ab", {("a2", "b1"): -2})
    after = {("a2", "b1", "c2"): -6}
    yield exact_claim(place, "its delta for (a2, b1): -2", after, dict((change * s * t).items()))
    for strategy in ("delta", "recursive", "viewtree", "epsilon"):
        live = vk.maintain(TRIANGLE, strategy=strategy)
        for relation, rows in TRIANGLES.items():
            for row, count in rows.items():
                live.update(relation, row, count)
        before = live.value()
        live.update("R", ("a2", "b1"), -2)
        counts = (before, live.value())
        yield exact_claim(place, f"the count before and after, {strategy}", (19, 13), counts)


def delta_claims() -> Iterator[Claim]:
    """The delta of a symmetric self-join has three terms: 3 dE E E + 3 E dE dE + dE dE dE."""
    choose = random.Random(3)
    edges = Relation.from_rows(tuple("ab"), [choose.choices(range(8), k=2) for _ in range(40)])
    change = factor("ab", {tuple(choose.choices(range(8), k=2)): -1, (1, 2): 1})

    def count(*factors: Relation[Any]) -> int:
        first, second, third = (
            factor(schema, dict(each.items()))
            for schema, each in zip(("ab", "bc", "ca"), factors, strict=True)
        )
        return int((first * second * third).marginalise(tuple("abc")).lookup(()))

    new = edges + change
    difference = count(new, new, new) - count(edges, edges, edges)
    terms = 3 * count(change, edges, edges) + 3 * count(edges, change, change)
    terms += count(change, change, change)
    statement = "triangles gained are 3 dE E E + 3 E dE dE + dE dE dE (40 random edges)"
    yield exact_claim("part 2, delta for the triangle join", statement, difference, terms)


def reduction_claims(place: str, matrix: list[tuple[int, int]]) -> Iterator[Claim]:
    """u' M v as a triangle query, by which the lower bound is proved."""
    live = vk.maintain(TRIANGLE, ring=BOOLEAN, strategy="delta")
    for relation, rows in {"R": [("a", 2)], "S": matrix, "T": [(1, "a")]}.items():
        for row in rows:
            live.update(relation, row)
    yield exact_claim(place, "u' M v as the triangle query", True, live.value())


# --- part 3: classes -----------------------------------------------------------------------------


def class_of(analysis: Analysis) -> str:
    """The smallest class of the lecture that a query is in."""
    if analysis.q_hierarchical:
        return "q-hierarchical"
    if not analysis.hierarchical:
        return "not hierarchical"
    return f"delta_{analysis.delta_rank}-hierarchical"


CLASSES = (
    ("Q(b, d) = R(a, b, d) * S(a, b) * T(a, c, e) * U(a, c, f)", "hierarchical"),
    ("Q(a, b) = R(a) * S(a, b) * T(b)", "not hierarchical"),
    ("Q(a, b, c) = R(a, b, d) * S(a, b) * T(a, c, e) * U(a, c, f)", "q-hierarchical"),
    ("Q(a) = S(a, b) * T(b)", "hierarchical, not q-hierarchical"),
    ("Q(a, d, e, g) = R(a, b, d) * S(a, b, e) * T(a, c, f) * U(a, c, g)", "delta_1-hierarchical"),
    ("Q(d, g) = R(a, b, d) * S(a, b, e) * T(a, c, f) * U(a, c, g)", "hierarchical, not delta_1"),
)


def in_class(analysis: Analysis, printed: str) -> bool:
    """Whether a query is in the class that a slide prints."""
    match printed:
        case "hierarchical":
            return bool(analysis.hierarchical)
        case "not hierarchical":
            return not analysis.hierarchical
        case "q-hierarchical":
            return bool(analysis.q_hierarchical)
        case "hierarchical, not q-hierarchical":
            return bool(analysis.hierarchical) and not analysis.q_hierarchical
        case "delta_1-hierarchical":
            return analysis.delta_rank == 1
        case _:
            return bool(analysis.hierarchical) and (analysis.delta_rank or 0) > 1


def class_claims() -> Iterator[Claim]:
    """The classes that the slides name."""
    for query, printed in CLASSES:
        found = analyze(query)
        holds = in_class(found, printed)
        yield graded_claim("part 3, classes", f"`{query}`", printed, class_of(found), holds=[holds])


def rewriting_claims() -> Iterator[Claim]:
    """The reduct under x -> y and y -> z."""
    found = analyze("Q(w, x, y, z) = R(w, x) * S(x, y) * T(y, z)", fds=["x -> y", "y -> z"])
    printed = {"R": frozenset("wxyz"), "S": frozenset("xyz"), "T": frozenset("yz")}
    reduct = {atom.relation.rstrip("'"): frozenset(atom.variables) for atom in found.reduct.atoms}
    shown = [
        " ".join(f"{n}({''.join(sorted(v))})" for n, v in e.items()) for e in (printed, reduct)
    ]
    yield graded_claim(
        "part 3, query rewriting",
        "variables of the reduct of R(w, x) S(x, y) T(y, z)",
        *shown,
        holds=[printed == reduct, bool(found.verdicts["reduct_q_hierarchical"])],
    )


def _atoms(variables: Mapping[str, frozenset[str]]) -> str:
    return " ".join(f"{name}({', '.join(sorted(each))})" for name, each in variables.items())


def union_claims() -> Iterator[Claim]:
    """Distinct values of two lists that overlap, from two heavy b."""
    lists = {"b1": ("a3", "a4", "a1", "a2"), "b2": ("a5", "a6", "a2", "a4")}
    live = vk.maintain("Q(a) = R(a, b) * S(b)", strategy="epsilon", epsilon=0)
    live.load({"R": [(a, b) for b in lists for a in lists[b]], "S": [(b,) for b in lists]})
    found = [row[0] for row, _ in live.enumerate()]
    printed = tuple(f"a{i}" for i in range(1, 7))
    statement = "each value of S1 and S2 once, as they are enumerated (sorted here)"
    yield exact_claim("part 3, union algorithm", statement, printed, tuple(sorted(found)))


# --- update times ------------------------------------------------------------------------------

JOIN, PROJECTION = "Q(a, b) = R(a, b) * S(b)", "Q(a) = R(a, b) * S(b)"
ACYCLIC = "Q(a, b, c) = R(a, b) * S(a, c, e) * T(a, c, d)"
ALL_LINEAR = {"R": 1.0, "S": 1.0, "T": 1.0}
UPDATE_TIMES = (
    Case("simple join", JOIN, {"R": 0, "S": 1}, strategy="delta"),
    Case("simple join", JOIN, {"R": 0, "S": 0}, strategy="viewtree"),
    Case("project-join", PROJECTION, {"R": 0, "S": 1}, strategy="delta"),
    Case("acyclic", ACYCLIC, ALL_LINEAR, strategy="delta", quadratic=True),
    Case("acyclic", ACYCLIC, ALL_LINEAR, strategy="recursive", quadratic=True),
    Case("acyclic", ACYCLIC, {"R": 0, "S": 0, "T": 0}, strategy="viewtree"),
    Case("triangle count", TRIANGLE, ALL_LINEAR, strategy="delta"),
    Case("triangle count", TRIANGLE, ALL_LINEAR, strategy="recursive", quadratic=True),
    Case("triangle count", TRIANGLE, {"R": 0, "S": 1, "T": 1}, strategy="viewtree", quadratic=True),
)
"""Queries of part 2 with the exponents of updates that the slides print, by technique."""
TECHNIQUES = {"delta": "first-order", "recursive": "DBToaster", "viewtree": "F-IVM"}


def update_claim(case: Case, lines: list[Measurement]) -> Claim:
    """The exponents of one query by one technique, relation by relation."""
    found = {line.relation: line.update for line in lines}
    near = [abs(found[name] - promised) <= MARGIN for name, promised in case.updates.items()]
    below = [found[name] <= promised + MARGIN for name, promised in case.updates.items()]
    verdict = REPRODUCED if all(near) else PARTLY if all(below) else NOT
    printed = ", ".join(f"{name} {promised:g}" for name, promised in case.updates.items())
    measured = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    why = "no data was found on which it is as slow as that" if verdict == PARTLY else ""
    if verdict == NOT and case.query == ACYCLIC:
        why = "the delta here joins S and T before e and d are summed; the slide sums them first"
    technique = TECHNIQUES[case.strategy]
    statement = f"{technique}: exponents of updates of `{case.query}`"
    return Claim(f"part 2, {case.title}", statement, printed, measured, verdict, why)


def section(sizes: tuple[int, ...], show: Show) -> Section:
    """All examples."""
    show("lecture: worked examples")
    claims = [*factor_claims(), *evaluation_claims(), *triangle_claims("part 1, update example")]
    claims += delta_claims()
    claims += reduction_claims("part 2, example encoding", [(2, 1), (3, 1), (1, 2), (2, 2), (3, 3)])
    claims += [*class_claims(), *rewriting_claims(), *union_claims()]
    for case in UPDATE_TIMES:
        show(f"lecture: update times, {case.title}, {TECHNIQUES[case.strategy]}")
        claims.append(update_claim(case, measure(case, sizes)))
    return Section(TITLE, TEXT, claims, [sizes_note(sizes)])


def sizes_note(sizes: tuple[int, ...]) -> str:
    """What exponents rest on."""
    return f"Exponents: sizes {', '.join(f'{size:,}' for size in sizes)}; margin {MARGIN}."
