"""Triangles against brute force over all triples of nodes, and what they cost in steps."""

import gc
import math
import random
import subprocess
import sys
import weakref
from collections import Counter
from itertools import combinations, permutations, product
from pathlib import Path

import pytest

import viewkeep as vk
from viewkeep.graph import TriangleCounter, count_triangles

EXAMPLE = Path(__file__).parent.parent / "examples" / "triangles.py"

WAYS = {
    "default": {},
    "linear": {"space": "linear"},
    "little": {"epsilon": 0.25},
    "delta": {"strategy": "delta"},
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
both_kinds = pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])


class Recounted:
    """A graph as a bag of edges; everything is counted from its definition, each time."""

    def __init__(self, directed):
        self.directed, self.edges = directed, Counter()

    def change(self, u, v, multiplicity):
        self.edges[u, v] += multiplicity
        if not self.directed:
            self.edges[v, u] += multiplicity

    def nodes(self):
        return sorted({u for edge in +self.edges for u in edge})

    def triangles(self, *through):
        """Those that hold the given nodes."""
        e, total = self.edges, 0
        for a, b, c in combinations(self.nodes(), 3):
            if {a, b, c}.issuperset(through):
                total += e[a, b] * e[b, c] * e[c, a]
                total += e[a, c] * e[c, b] * e[b, a] if self.directed else 0
        return total

    def closed_by(self, u, v):
        """The triangles of one edge from u to v, which may be there or not."""
        return sum(self.edges[v, w] * self.edges[w, u] for w in self.nodes())

    def wedges(self):
        paths = permutations(self.nodes(), 3)
        found = sum(self.edges[a, b] * self.edges[b, c] for a, b, c in paths)
        return found if self.directed else found // 2

    def degree(self, v):
        out = sum(m for (tail, _), m in self.edges.items() if tail == v)
        into = sum(m for (_, head), m in self.edges.items() if head == v)
        return out + into if self.directed else out


def random_changes(seed, nodes, length, most=1):
    """Adds, and removals of what is there; every third edge is at one of two hubs."""
    chance, present = random.Random(seed), Counter()
    for _ in range(length):
        if present and chance.random() < 0.4:
            edge = chance.choice(sorted(present))
            change = -chance.randint(1, present[edge])
        else:
            tail = chance.choice(nodes[:2] if chance.random() < 1 / 3 else nodes)
            edge = (tail, chance.choice([node for node in nodes if node != tail]))
            change = chance.randint(1, most)
        present[edge] += change
        present += Counter()
        yield *edge, change


def apply(counter, u, v, change):
    (counter.add if change > 0 else counter.remove)(u, v, abs(change))


def assert_equal(counter, recounted):
    nodes, e = recounted.nodes(), +recounted.edges
    assert counter.count == recounted.triangles()
    assert counter.wedges == recounted.wedges()
    if counter.wedges:
        assert counter.clustering == pytest.approx(3 * recounted.triangles() / recounted.wedges())
    assert {v: counter.degree(v) for v in nodes} == {v: recounted.degree(v) for v in nodes}
    assert len(counter) == len(counter.edges) == (len(e) if counter.directed else len(e) // 2)
    assert all(counter.multiplicity(u, v) == m for (u, v), m in e.items())
    assert all((u, v) in counter for u, v in e)
    assert all(e[edge] == m for edge, m in counter.edges.items())


def assert_questions_equal(counter, recounted):
    """Per edge, there or not, and per node; asking changes nothing."""
    sizes = counter.maintainer.sizes()
    for u, v in permutations(recounted.nodes(), 2):
        assert counter.triangles_at_edge(u, v) == recounted.closed_by(u, v)
    for v in recounted.nodes():
        assert counter.triangles_at_node(v) == recounted.triangles(v)
    assert counter.maintainer.sizes() == sizes
    assert_equal(counter, recounted)


# --- results --------------------------------------------------------------------------------------


@ways
@both_kinds
@pytest.mark.parametrize("most", [1, 3], ids=["single", "parallel"])
def test_everything_equals_recounting_while_edges_come_and_go(way, directed, most):
    nodes = [f"n{number}" for number in range(9)]
    for seed in range(4):
        counter, recounted = TriangleCounter(directed=directed, **way), Recounted(directed)
        for number, (u, v, change) in enumerate(random_changes(seed, nodes, 90, most)):
            apply(counter, u, v, change)
            recounted.change(u, v, change)
            assert counter.count == recounted.triangles(), (seed, number)
            if number % 15 == 14:
                assert_questions_equal(counter, recounted)


@pytest.mark.parametrize("way", [WAYS["default"], WAYS["linear"]], ids=["default", "linear"])
@both_kinds
def test_hubs_become_heavy_and_light_again(way, directed):
    counter, recounted = TriangleCounter(directed=directed, **way), Recounted(directed)
    nodes, heavy = list(range(30)), []
    changes = list(random_changes(5, nodes, 300))
    for u, v in product((0, 1), range(2, 30)):
        changes += [(u, v, 1), (v, u, 1)]
    changes += [(u, v, -change) for u, v, change in reversed(changes)]
    for number, (u, v, change) in enumerate(changes):
        apply(counter, u, v, change)
        recounted.change(u, v, change)
        if number % 50 == 0:
            assert_equal(counter, recounted)
            heavy.append(sum(len(each.levels) for each in counter.maintainer.partitions()))
    assert max(heavy[2:-2]) > 0
    assert (counter.count, len(counter), counter.wedges) == (0, 0, 0)
    assert not any(each.levels for each in counter.maintainer.partitions())


@ways
@both_kinds
def test_loaded_edges_are_counted_like_added_ones(way, directed):
    chance = random.Random(3)
    pairs = [tuple(chance.sample(range(12), 2)) for _ in range(60)]
    counter, recounted = TriangleCounter(pairs[:40], directed, **way), Recounted(directed)
    counter.add_all(pairs[40:])
    for u, v in pairs:
        recounted.change(u, v, 1)
    assert_questions_equal(counter, recounted)
    for u, v in pairs[::2]:
        counter.remove(u, v)
        recounted.change(u, v, -1)
    assert_questions_equal(counter, recounted)


@both_kinds
def test_the_edges_of_one_counter_make_another(directed):
    counter = TriangleCounter(directed=directed)
    for u, v, change in random_changes(8, list(range(7)), 60, most=3):
        apply(counter, u, v, change)
    again = TriangleCounter(counter.edges, directed=directed)
    assert (again.count, again.wedges) == (counter.count, counter.wedges)
    assert all(again.multiplicity(u, v) == m for (u, v), m in counter.edges.items())
    assert len(again) == len(counter)
    assert count_triangles(counter.edges, directed) == counter.count


def test_the_public_names_are_found_through_the_package():
    assert vk.graph.TriangleCounter is TriangleCounter
    assert vk.graph.count_triangles is count_triangles


def test_nodes_may_be_of_any_types_at_once():
    counter = TriangleCounter([(1, "one"), ("one", (1, 1)), ((1, 1), 1.0)])
    assert counter.count == 1
    assert ("one", 1) in counter
    assert ("one", 2) not in counter
    assert "one" not in counter


def test_the_two_ways_round_are_one_undirected_edge_and_two_directed_ones():
    undirected, directed = TriangleCounter(), TriangleCounter(directed=True)
    for counter in (undirected, directed):
        counter.add("a", "b")
        counter.add("b", "a")
    assert undirected.edges == {("a", "b"): 2}
    assert directed.edges == {("a", "b"): 1, ("b", "a"): 1}
    assert (undirected.wedges, directed.wedges) == (0, 0)
    assert (undirected.degree("a"), directed.degree("a")) == (2, 2)


def test_an_empty_graph_has_nothing():
    counter = TriangleCounter()
    assert (counter.count, counter.wedges, counter.clustering, len(counter)) == (0, 0, 0.0, 0)
    assert (counter.degree("a"), counter.triangles_at_node("a")) == (0, 0)
    assert counter.triangles_at_edge("a", "b") == 0
    assert repr(counter) == "<TriangleCounter: triangles=0, edges=0>"


def test_clustering_of_known_graphs():
    assert TriangleCounter(combinations(range(6), 2)).clustering == 1
    assert TriangleCounter((0, leaf) for leaf in range(1, 6)).clustering == 0
    paw = TriangleCounter([(1, 2), (2, 3), (3, 1), (3, 4)])
    assert paw.clustering == pytest.approx(3 / 5)
    ring = TriangleCounter([(1, 2), (2, 3), (3, 1)], directed=True)
    assert ring.clustering == 1


# --- refusals -------------------------------------------------------------------------------------

BAD_EDGES = {
    "loop": ("a", "a", 1, "is a loop"),
    "equal nodes": (1, 1.0, 1, "is a loop"),
    "no node": ("a", None, 1, "node None stands for nothing"),
    "unhashable": (["a"], "b", 1, "cannot be hashed"),
    "NaN": ("a", math.nan, 1, "nan is equal to nothing"),
    "fraction": ("a", "b", 0.5, "0.5 is not a positive whole number"),
    "whole float": ("a", "b", 1.0, "1.0 is not a positive whole number"),
    "truth": ("a", "b", True, "True is not a positive whole number"),
    "zero": ("a", "b", 0, "0 is not a positive whole number"),
    "negative": ("a", "b", -1, "-1 is not a positive whole number"),
}
KNOWN = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]


def everything(counter):
    return counter.edges, counter.count, counter.wedges, counter.maintainer.sizes()


@both_kinds
@pytest.mark.parametrize("problem", BAD_EDGES)
def test_a_bad_edge_is_refused_and_nothing_has_changed(problem, directed):
    u, v, multiplicity, message = BAD_EDGES[problem]
    counter = TriangleCounter(KNOWN, directed)
    before = everything(counter)
    for change in (counter.add, counter.remove):
        with pytest.raises(vk.ViewkeepError, match=message):
            change(u, v, multiplicity)
    if multiplicity == 1 and type(multiplicity) is int:
        with pytest.raises(vk.ViewkeepError, match=message):
            counter.add_all([("new", "a"), (u, v)])
        with pytest.raises(vk.ViewkeepError, match=message):
            counter.triangles_at_edge(u, v)
    else:
        with pytest.raises(vk.ViewkeepError, match=message):
            counter.add_all({("new", "a"): 1, (u, v): multiplicity})
    assert everything(counter) == before
    assert counter.degree("new") == 0


@pytest.mark.parametrize(
    ("u", "v", "multiplicity", "message"),
    [
        ("a", "d", 1, r"edge \('a', 'd'\): 1 to remove, but 0 there"),
        ("x", "y", 2, "2 to remove, but 0 there"),
        ("a", "b", 2, "2 to remove, but 1 there"),
    ],
)
def test_an_edge_that_is_not_there_cannot_be_removed(u, v, multiplicity, message):
    counter = TriangleCounter(KNOWN)
    before = everything(counter)
    with pytest.raises(vk.SchemaError, match=message):
        counter.remove(u, v, multiplicity)
    assert everything(counter) == before


def test_a_directed_edge_cannot_be_removed_the_other_way_round():
    with pytest.raises(vk.SchemaError, match="0 there"):
        TriangleCounter(KNOWN, directed=True).remove("b", "a")


@pytest.mark.parametrize("edges", ["ab", 7, [("a", "b", "c")], ["ab"], [3]])
def test_what_is_not_a_list_of_pairs_is_refused(edges):
    with pytest.raises(vk.SchemaError):
        TriangleCounter(edges)
    with pytest.raises(vk.SchemaError):
        count_triangles(edges)


def test_wrong_options_are_refused():
    with pytest.raises(vk.QueryError, match="strategy"):
        TriangleCounter(strategy="espilon")
    with pytest.raises(vk.QueryError, match="epsilon"):
        TriangleCounter(epsilon=2)
    with pytest.raises(vk.QueryError, match="space"):
        TriangleCounter(space="tiny")


# --- memory ---------------------------------------------------------------------------------------


class Person:
    """A node that tells when nothing holds it any more."""


@ways
@both_kinds
def test_nodes_without_edges_are_forgotten(way, directed):
    people = [Person() for _ in range(12)]
    watched = [weakref.ref(person) for person in people]
    counter = TriangleCounter(combinations(people, 2), directed, **way)
    for u, v in combinations(people, 2):
        counter.remove(u, v)
    assert (len(counter), counter.count, counter.wedges) == (0, 0, 0)
    assert sum(counter.maintainer.sizes().values()) == 0
    del people, u, v
    gc.collect()
    # The engine's registers still name the nodes of the last update, and no others.
    assert sum(person() is not None for person in watched) <= 3


# --- cost -----------------------------------------------------------------------------------------


def hubs(size):
    """About `size` edges: as many hubs as a hub has neighbours, all hubs befriended."""
    width = max(2, math.isqrt(size * 2 // 3))
    yield from combinations([f"hub{i}" for i in range(width)], 2)
    yield from ((f"hub{i}", leaf) for leaf in range(width) for i in range(width))


def star(size):
    """One hub of every node of a ring."""
    half = size // 2
    yield from (("hub", i) for i in range(half))
    yield from ((i, (i + 1) % half) for i in range(half))


def grid(size):
    """A grid with diagonals: no node has more than six neighbours."""
    width = math.isqrt(size // 3) + 1
    for i in range(width):
        for j in range(width):
            yield from (((i, j), (i + x, j + y)) for x, y in ((0, 1), (1, 0), (1, 1)))


def fitted_exponent(costs):
    """The slope of the least-squares line through (log size, log steps)."""
    points = [(math.log(size), math.log(steps)) for size, steps in costs]
    x = sum(a for a, _ in points) / len(points)
    y = sum(b for _, b in points) / len(points)
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


@pytest.mark.parametrize("graph", [hubs, star, grid])
def test_counting_one_edge_at_a_time_is_worst_case_optimal(graph):
    costs = []
    for size in (250, 500, 1000, 2000):
        counter, edges = TriangleCounter(), list(graph(size))
        for u, v in edges:
            counter.add(u, v)
        costs.append((len(edges), counter.steps))
    assert fitted_exponent(costs) <= 1.6
    assert counter.count == count_triangles(edges) == count_by_neighbours(edges)


def count_by_neighbours(edges):
    neighbours = {}
    for u, v in edges:
        neighbours.setdefault(u, set()).add(v)
        neighbours.setdefault(v, set()).add(u)
    return sum(len(neighbours[u] & neighbours[v]) for u, v in edges) // 3


def cost_between_hubs(size, order, **way):
    """The steps of an edge between two hubs with `size` friends in common."""
    counter = TriangleCounter(**way)
    for name in order:  # the order in which nodes are seen tells which way their edges lead
        nodes = [f"f{i}" for i in range(size)] if name == "friends" else [name]
        counter.add_all((node, f"{node} again") for node in nodes)
    for i in range(size):
        counter.add("left", f"f{i}")
        counter.add("right", f"f{i}")
    before = counter.steps
    for _ in range(10):
        counter.add("left", "right")
        assert counter.count == counter.triangles_at_edge("left", "right") == size
        counter.remove("left", "right")
    return counter.steps - before


@pytest.mark.parametrize("order", list(permutations(("left", "friends", "right"))), ids=" ".join)
def test_an_edge_between_hubs_costs_far_less_than_their_friends(order):
    costs = [(size, cost_between_hubs(size, order)) for size in (50, 100, 200, 400)]
    assert fitted_exponent(costs) <= 0.6


def test_without_heavy_parts_an_edge_between_hubs_costs_as_much_as_their_friends():
    sizes, order = (50, 100, 200, 400), ("left", "right", "friends")
    costs = [(size, cost_between_hubs(size, order, strategy="delta")) for size in sizes]
    assert fitted_exponent(costs) >= 0.9


# --- the example ----------------------------------------------------------------------------------


def test_the_example_ends_with_a_recount_that_agrees():
    command = [sys.executable, str(EXAMPLE), "--plain", "--nodes", "60", "--edges", "400"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for line in ("triangles", "clustering", "steps/update", "recounted from scratch: equal"):
        assert line in run.stdout
