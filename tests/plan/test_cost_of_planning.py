"""Planning answers at once, also for wide queries, and bounds loops as trying all chains does."""

from fractions import Fraction
from itertools import combinations
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from viewkeep.analysis.exponents import Linear
from viewkeep.plan.adaptive.degrees import FREE, Cost, Degree, Power, cheapest, number_of

# --- the same bounds as by trying every chain -----------------------------------------------------

VARIABLES = "abcdef"
EPSILON = Power(Fraction(1, 2), Linear(0, 1))
POWERS = (
    EPSILON,
    Power(Fraction(1, 2), Linear(1, -1)),
    Power(Fraction(1), Linear(1)),
    Power(Fraction(1, 3), Linear(Fraction(1, 3))),
)


def every_chain(degrees: frozenset[Degree], goal: frozenset[str], known: frozenset[str]) -> Cost:
    """The definition: the cheapest of all sequences of degrees that lead to the goal."""
    if goal <= known:
        return FREE
    return cheapest(
        Cost(frozenset({each.power})) + every_chain(degrees, goal, known | each.binds)
        for each in degrees
        if each.determinant <= known and not each.binds <= known
    )


some = st.frozensets(st.sampled_from(VARIABLES), max_size=2)
one_or_two = st.frozensets(st.sampled_from(VARIABLES), min_size=1, max_size=2)
powers = st.sampled_from(POWERS)


@st.composite
def degree_sets(draw: st.DrawFn) -> frozenset[Degree]:
    """Up to four degrees, and one that binds everything, so that every goal can be reached."""
    drawn = draw(st.lists(st.builds(Degree, some, one_or_two, powers), max_size=4))
    everything = Degree(frozenset(), frozenset(VARIABLES), draw(powers))
    return frozenset({*drawn, everything})


@settings(max_examples=300)
@given(degree_sets(), some, some)
def test_the_bound_of_a_loop_is_that_of_the_cheapest_chain(degrees, goal, known):
    assert number_of(degrees, goal, known) == every_chain(degrees, goal, known)


@pytest.mark.parametrize("leaves", [3, 4, 5])
@pytest.mark.parametrize("known", ["", "y", "x0"])
def test_a_star_costs_the_sum_of_its_leaves(leaves, known):
    """Light parts R(y, x): N tuples, N^eps of them for each y."""
    light = [
        degree
        for leaf in range(leaves)
        for degree in (
            Degree(frozenset(), frozenset({"y", f"x{leaf}"}), POWERS[2]),
            Degree(frozenset({"y"}), frozenset({"y", f"x{leaf}"}), EPSILON),
        )
    ]
    goal = frozenset(f"x{leaf}" for leaf in range(leaves))
    start = frozenset({known} - {""})
    found = number_of(frozenset(light), goal, start)
    assert found == every_chain(frozenset(light), goal, start)


# --- at once --------------------------------------------------------------------------------------


def star(leaves: int, outputs: int) -> str:
    head = ", ".join(f"x{i}" for i in range(outputs))
    return f"Q({head}) = " + " * ".join(f"R{i}(y, x{i})" for i in range(leaves))


def path(length: int, head: str) -> str:
    return f"Q({head}) = " + " * ".join(f"R{i}(x{i}, x{i + 1})" for i in range(length))


def snowflake(arms: int, tips: int, head: str) -> str:
    fact = f"F({', '.join(f'k{i}' for i in range(arms))})"
    dimensions = [f"D{i}(k{i}, m{i})" for i in range(arms)]
    outer = [f"E{i}_{j}(m{i}, v{i}_{j})" for i in range(arms) for j in range(tips)]
    return f"Q({head}) = " + " * ".join([fact, *dimensions, *outer])


def clique(size: int, head: str) -> str:
    pairs = combinations(range(size), 2)
    return f"Q({head}) = " + " * ".join(f"R{i}_{j}(x{i}, x{j})" for i, j in pairs)


def tree(depth: int, branches: int) -> str:
    """Bound variables above bound ones above free leaves: splits within splits."""
    ways = [""]
    for _ in range(depth):
        ways = [f"{way}{i}" for way in ways for i in range(branches)]
    atoms = [", ".join(f"v{way[:n]}" for n in range(depth + 1)) for way in ways]
    head = ", ".join(f"v{way}" for way in ways)
    return f"Q({head}) = " + " * ".join(
        f"R{way}({atom})" for way, atom in zip(ways, atoms, strict=True)
    )


def aggregates(number: int) -> str:
    sums = ", ".join(f"sum(b{i})" for i in range(number))
    return f"Q(a; {sums}) = " + " * ".join(f"R{i}(a, b{i})" for i in range(number))


WIDE = {
    "star with 7 of 7 leaves": star(7, 7),
    "star with 12 of 12 leaves": star(12, 12),
    "star with 6 of 12 leaves": star(12, 6),
    "star count": star(12, 0),
    "path count": path(12, ""),
    "path ends": path(12, "x0, x12"),
    "snowflake": snowflake(6, 2, "k0"),
    "snowflake tip": snowflake(6, 2, "v0_0"),
    "clique count": clique(6, ""),
    "clique": clique(6, "x0"),
    "tree of depth 2": tree(2, 3),
    "tree of depth 3": tree(3, 2),
    "aggregates": aggregates(20),
}


@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE.keys())
def test_wide_queries_are_planned_at_once(text):
    """A second or less on an idle machine; exponential planners took minutes."""
    start = process_time()
    vk.maintain(text)
    assert process_time() - start < 5


@pytest.mark.parametrize("text", [path(12, ""), snowflake(5, 1, "")], ids=["path", "snowflake"])
def test_a_search_for_splits_ends_where_there_are_too_many_ways(text):
    start = process_time()
    with pytest.raises(vk.QueryError, match="no split was found, of those tried"):
        vk.maintain(text, strategy="epsilon")
    assert process_time() - start < 30
