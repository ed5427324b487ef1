"""Equal blocks become one function, and what the functions compute stays the same."""

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeep.engine.compiled.llvm import share_blocks
from viewkeep.engine.compiled.llvm.share_blocks import share

LOOPS = """
def first(s, n, p):
    total = 0
    bound = n + 3
    if n > 1:
        for i in range(n):
            if i == p:
                continue
            total = add(total, read(s + 48, i) * p)
    return total + bound

def second(s, m, q):
    sum_ = 5
    if m > 1:
        for j in range(m):
            if j == q:
                continue
            sum_ = add(sum_, read(s + 96, j) * q)
    return sum_

def third(s, m, q):
    sum_ = 5
    if m > 1:
        for j in range(m):
            if j == q:
                continue
            sum_ = add(sum_, read(s + 96, j) + q)
    return sum_
"""
TWO_RESULTS = """
def first(s, n):
    low = 0
    high = 0
    for i in range(n):
        low = add(low, read(s + 8, i))
        high = add(high, low)
    return low + high

def second(s, n):
    low = 0
    high = 0
    for i in range(n):
        low = add(low, read(s + 16, i))
        high = add(high, low)
    return low + high
"""
EXITS = """
def first(s, n):
    for i in range(n):
        if read(s + 8, i) > 50:
            return i
    return 0

def second(s, n):
    for i in range(n):
        if read(s + 8, i) > 50:
            return i
    return 0
"""
NESTED = """
def first(s, n):
    total = 0
    for i in range(n):
        for j in range(i):
            total = add(total, read(s + 8, j) * i)
    return total

def second(s, n):
    total = 0
    for i in range(n):
        for j in range(i):
            total = add(total, read(s + 16, j) * i)
    return total

def third(s, n):
    total = 0
    for j in range(n):
        total = add(total, read(s + 24, j) * n)
    return total
"""


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_blocks, "NODES_AT_LEAST", 5)


def functions(source: str) -> list[ast.FunctionDef]:
    return [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]


def shared(source: str, *kept: str) -> list[ast.FunctionDef]:
    return [ast.fix_missing_locations(node) for node in share(functions(source), kept)]


def run(nodes: list[ast.FunctionDef], name: str, *arguments: int) -> Any:
    """What a function computes, as Python; memory is a function of its address."""
    module = ast.fix_missing_locations(ast.Module(list(nodes), []))
    known: dict[str, Any] = {
        "add": lambda a, b: a + b,
        "read": lambda at, i: (at * 31 + i * 17) % 101,
    }
    exec(compile(module, "text", "exec"), known)
    return known[name](*arguments)


def names(nodes: list[ast.FunctionDef]) -> list[str]:
    return [node.name for node in nodes]


@given(st.integers(0, 200), st.integers(0, 12), st.integers(0, 12))
def test_shared_blocks_compute_the_same(state: int, n: int, p: int) -> None:
    for source, arguments in [(LOOPS, (state, n, p)), (NESTED, (state, n))]:
        whole, cut = functions(source), shared(source)
        for name in names(whole):
            assert run(whole, name, *arguments) == run(cut, name, *arguments)


def test_blocks_that_differ_in_names_and_places_are_one_function() -> None:
    assert names(shared(LOOPS)) == ["first", "second", "third", "shared_0"]
    first, second, third, cut = shared(LOOPS)
    assert "total = shared_0(s, s + 48, n, p, total)" in ast.unparse(first)
    assert "sum_ = shared_0(s, s + 96, m, q, sum_)" in ast.unparse(second)
    assert "shared" not in ast.unparse(third)  # it adds where the others multiply
    assert "s + " not in ast.unparse(cut)


def test_blocks_with_two_results_or_an_exit_stay() -> None:
    assert names(shared(TWO_RESULTS)) == ["first", "second"]
    assert names(shared(EXITS)) == ["first", "second"]


def test_blocks_within_a_shared_block_are_shared_if_they_occur_elsewhere_too() -> None:
    assert sorted(names(shared(NESTED))) == ["first", "second", "shared_0", "shared_1", "third"]
    twice = "\n\n".join(NESTED.split("\n\n")[:2])
    assert names(shared(twice)) == ["first", "second", "shared_0"]


def test_functions_that_are_kept_stay() -> None:
    assert names(shared(LOOPS, "second")) == ["first", "second", "third"]
