"""Heavy and light parts on the page: what is shown is what the program does."""

from itertools import chain

import pytest

import viewkeep as vk
from viewkeep.plan.choose import plan
from viewkeep.plan.program import Update
from viewkeep.report.cost_column import CostColumn
from viewkeep.report.query.adaptive import (
    adaptive_json,
    adaptive_program,
    adaptive_sections,
    describe,
)
from viewkeep.report.query.deltas import deltas_of
from viewkeep.report.text import plain_text

QUERIES = [
    "Q() = R(a, b) * S(b, c) * T(c, a)",
    "Q(a, b, c) = R(a, b) * S(b, c) * T(c, a)",
    "Count() = my_edges(a, b) * my_edges(b, c) * my_nodes(c, a)",
    "Q() = R(a) * S(a, b) * T(b)",
    "Q() = R(a, b) * S(b, c) * T(c, d) * U(d, e)",
    "Q(a) = R(a, b) * S(b)",
    "Q(d, g) = R(a, b, d) * S(a, b, e) * T(a, c, f) * U(a, c, g)",
    "d() = d_d(d, e) * S(e, f) * T(f, d)",
]

FOUR_CYCLE = "Q() = R(a, b) * S(b, c) * T(c, d) * U(d, a)"


def lines_of(text: str, relation: str) -> list[str]:
    query = vk.parse(text)
    return [str(each) for each in deltas_of(plan(query), query.name) if each.relation == relation]


def page(text: str, width: int = 80) -> str:
    return "".join(plain_text(each, width) for each in adaptive_sections(vk.analyze(text)))


def test_the_deltas_of_the_triangle_are_those_of_the_paper() -> None:
    """triangle_ivm_epsilon, figure 3."""
    assert lines_of(QUERIES[0], "R") == [
        "dQ_*hh = dR_*(a, b) * sum_c S_h(b, c) * T_h(c, a)",
        "dQ_*hl = dR_*(a, b) * V_ST(b, a)",
        "dQ_*lh = dR_*(a, b) * sum_c T_h(c, a) * S_l(b, c)",
        "dQ_*ll = dR_*(a, b) * sum_c S_l(b, c) * T_l(c, a)",
        "V_RS(a, c) += dR_h(a, b) * S_l(b, c)",
        "V_TR(c, b) += dR_l(a, b) * T_h(c, a)",
        "R_*(a, b) += dR_*(a, b)",
    ]


def test_relations_that_are_not_split_have_no_letters() -> None:
    assert lines_of("Q() = my_r(a) * S(a, b) * T(b)", "my_r")[:2] == [
        "dQ_h = dmy_r(a) * V_ST(a)",
        "dQ_l = dmy_r(a) * sum_b S_l(a, b) * T(b)",
    ]


def test_parts_that_do_the_same_are_named_together() -> None:
    [first, *_] = lines_of(QUERIES[4], "S")
    assert first == "dQ_hh|lh,hh = dS_hh|lh(b, c) * sum_d V_R(b) * T_hh(c, d) * V_U(d)"


@pytest.mark.parametrize("text", QUERIES)
def test_every_map_that_a_trigger_changes_is_shown_with_its_part(text: str) -> None:
    query = vk.parse(text)
    program = plan(query)
    shown = {(each.atom, part) for each in deltas_of(program, query.name) for part in each.parts}
    assert shown == {(trigger.atom, trigger.label) for trigger in program.triggers}
    for trigger in program.triggers:
        own = [d for d in deltas_of(program, query.name) if trigger.label in d.parts]
        told = " ".join(map(str, own))
        steps = chain.from_iterable(block.steps for block in trigger.blocks)
        changed = {step.target for step in steps if isinstance(step, Update)}
        plain = changed - {program.listed, trigger.part}
        assert [name for name in plain if name not in told] == []
        assert (f"d{query.name}" in told) == (program.listed in changed)


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("width", [50, 80])
def test_pages_fit_the_screen_and_are_short(text: str, width: int) -> None:
    lines = page(text, width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) < (80 if width == 50 else 60)


def test_the_dearest_delta_is_the_bound_of_the_page() -> None:
    text = page(FOUR_CYCLE)
    first = text.partition("(S, T and U: as many, at the same costs)\n")[2].splitlines()[0]
    assert first.split()[:3] == ["16", "deltas,", "such"]
    assert first.endswith("O(N^2/3)")
    assert "In all O(N^2/3) for one update, amortized." in text


def test_splits_at_thresholds_that_are_asked_for_or_needed() -> None:
    texts = (QUERIES[0], FOUR_CYCLE, "Q() = A(a, b) * B(b, c) * C(c, a) * D(c, d) * E(d, e)")
    triangle, cycle, tail = (plan(vk.parse(text), "epsilon") for text in texts)
    told = "R is split on a: heavy from N^eps tuples with the same a"
    assert describe(triangle, triangle.splits[0]) == told
    assert describe(cycle, cycle.splits[0]) == (
        "R and U are split on a: heavy from N^1/3 tuples with the same a in one of them"
    )
    assert describe(tail, tail.splits[3]) == (
        "D is split on d: medium from N^1/3, heavy from N^2/3 tuples with the same d"
    )


def test_nothing_is_shown_where_nothing_is_split() -> None:
    analysis = vk.analyze("Q(a, b, c) = R(a, b) * S(b, c)")
    assert adaptive_program(analysis) is None
    assert adaptive_json(analysis) is None
    assert list(adaptive_sections(analysis)) == []


def test_the_cost_of_a_long_formula_stands_beside_its_last_line() -> None:
    lines = [("V(a) = R(a, b) * S(b, c) * T(c, d)", "O(N)"), ("Q() = x", "O(1)")]
    assert plain_text(CostColumn(lines), width=30).splitlines() == [
        "V(a) = R(a, b) * S(b, c)",
        "    * T(c, d)             O(N)",
        "Q() = x                   O(1)",
    ]
