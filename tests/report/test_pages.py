"""Pages for people against reviewed golden files; `UPDATE_GOLDEN=1 pytest` writes them again."""

import os
from pathlib import Path

import pytest
from rich.console import Console

import viewkeep as vk
from viewkeep.explain import AnalyzedQuery, explain
from viewkeep.report.query.page import analysis_page
from viewkeep.report.query.workload import analysis_line, failed_line, workload_page
from viewkeep.report.text import plain_text

GOLDEN = Path(__file__).parent.parent / "golden"

PAGES = {
    # recent_increments_in_ivm, example 3.2
    "triangle": vk.analyze("Q() = R(a, b) * S(b, c) * T(c, a)"),
    # recent_increments_in_ivm, example 4.12
    "dependencies": vk.analyze(
        "Q(z, y, x, w) = R(x, w) * S(x, y) * T(y, z)", fds=["x -> y", "y -> z"]
    ),
    # ivm_lecture, part 3: the delta_1-hierarchical query
    "trade_off": vk.analyze("Q(a) = R(a, b) * S(b)"),
    # recent_increments_in_ivm, section 4.3: the edge triangle listing query
    "access_pattern": vk.analyze("Q(c | a, b) = E(a, b) * E(b, c) * E(c, a)"),
    # a slow view of the kind people have: the cost per table tells why
    "slow": vk.analyze("Q(a; sum(c * d)) = R(a, b) * S(a, c, e) * T(c, d) * [d > 3]"),
}

DIGESTS = {
    # triangle_ivm_epsilon, section 7: lists, and maps that follow where entries come and go
    "triangle_list": vk.analyze("Q(a, b, c) = R(a, b) * S(b, c) * T(c, a)"),
    # more parts than a page can hold
    "four_cycle": vk.analyze("Q() = R(a, b) * S(b, c) * T(c, d) * U(d, a)"),
}

WORKLOAD = """
# recent_increments_in_ivm, example 4.5
Q1(A, B, C, D) = R(A, B) * S(B, C) * T(C, D)
Q2(A, B, C) = R(A, B) * S(B, C)
Broken(A) = R(A, B * S(B)
Triangles() = R(A, B) * U(B, C) * T(C, A)
"""


def workload_text(width: int) -> str:
    explanation = explain(WORKLOAD)
    lines = [
        analysis_line(outcome.analysis)
        if isinstance(outcome, AnalyzedQuery)
        else failed_line(outcome.name, outcome.error)  # type: ignore[union-attr]
        for outcome in explanation.outcomes
    ]
    return plain_text(workload_page(lines, explanation.cascades), width)


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / f"explain_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*PAGES, *DIGESTS])
def test_the_page_of_a_query_is_the_reviewed_one(name: str) -> None:
    check_golden(name, plain_text(analysis_page((PAGES | DIGESTS)[name]), width=80))


def test_the_table_of_a_workload_is_the_reviewed_one() -> None:
    check_golden("workload", workload_text(80))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_screen_and_nothing_is_cut(width: int) -> None:
    texts = [plain_text(analysis_page(analysis), width) for analysis in PAGES.values()]
    for text in [*texts, workload_text(width)]:
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text


@pytest.mark.parametrize("width", [48, 60, 80])
def test_words_of_the_workload_table_are_never_broken(width: int) -> None:
    shown = set(workload_text(width).split("Left out")[0].split())
    assert shown <= set(workload_text(120).split()) | {"─" * (width - 2)}
    assert {"Triangles", "q-hierarchical", "update", "O(N^1/2)*"} <= shown


def test_a_narrow_screen_is_told_what_it_misses() -> None:
    assert "Left out on this narrow screen: preprocessing, optimal" in workload_text(60)
    assert "Left out" not in workload_text(80)


def test_costs_are_not_cut_on_a_narrow_screen() -> None:
    narrow = plain_text(analysis_page(PAGES["triangle"]), width=60)
    assert "space          O(N^min(1 + eps, 2 - eps))  O(N^3/2)" in narrow


def test_narrow_and_wide_pages_have_the_same_words() -> None:
    for analysis in PAGES.values():
        narrow, wide = (plain_text(analysis_page(analysis), width) for width in (80, 120))
        assert words(narrow) == words(wide)


def words(text: str) -> list[str]:
    return [word for word in text.split() if not set(word) <= set("╭╮╰╯│─└├")]


def test_ascii_terminals_get_ascii() -> None:
    for analysis in PAGES.values():
        assert plain_text(analysis_page(analysis), ascii_only=True).isascii()


def test_conditions_in_brackets_are_not_taken_for_markup() -> None:
    assert "[d > 3]" in plain_text(analysis_page(PAGES["slow"]))


def test_on_a_terminal_good_is_green_and_bad_is_red() -> None:
    console = Console(force_terminal=True, color_system="standard", width=100, highlight=False)
    with console.capture() as capture:
        console.print(analysis_page(PAGES["slow"]))
    assert "\x1b[31mO(N)" in capture.get()
    assert "\x1b[32mO(1)" in capture.get()
