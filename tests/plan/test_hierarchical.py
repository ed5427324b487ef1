"""Hierarchical queries with heavy and light values: exact in every state, and within the bounds."""

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import ceil, log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.engine.streams import Database, Update, streams
from tests.oracle import recompute
from viewkeep.analysis.delta_rank import delta_rank
from viewkeep.analysis.q_hierarchical import q_hierarchical
from viewkeep.engine.interpreter.engine import ReferenceEngine
from viewkeep.plan.adaptive.hierarchical import plan_hierarchical
from viewkeep.plan.choose import names
from viewkeep.plan.payload import distinct_variables
from viewkeep.plan.program import Program
from viewkeep.plan.tree import Leaf
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.notation.parse import parse
from viewkeep.rings import INTEGERS, ProductRing

SIMPLEST = "Q(a) = R(a, b) * S(b)"
QUERIES = (
    SIMPLEST,
    "Q(a, c) = R(a, b) * S(b, c)",
    "Q(a, d, e, g) = R(a, b, d) * S(a, b, e) * T(a, c, f) * U(a, c, g)",
    "Q(d, g) = R(a, b, d) * S(a, b, e) * T(a, c, f) * U(a, c, g)",
    "Q(a) = R(a, b, c) * S(b, c) * T(b)",
    "Q(a, c) = R(a, b, x) * S(b, c) * T(b)",
    "Q(a, d) = R(a, b, c) * S(b, c) * T(d, e) * U(e) * W(f)",
    "Q(a, c) = R(a, b) * S(b) * T(c) * U()",
    "Q(c, d) = R(a, b, c) * S(a, b) * T(a, d) * U(a)",
    "Q(d) = R(a, b, d) * S(a, b) * T(a) * U(a, c)",
)
EPSILONS = (0, 0.25, 0.5, 0.75, 1)


def program(query: ConjunctiveQuery, epsilon: float = 0.5, nested: float | None = None) -> Program:
    """The program, with another exponent for splits of several variables if one is given."""
    inner = epsilon if nested is None else nested
    leaves = [
        Leaf(i, name, distinct_variables(atom.variables))
        for i, (name, atom) in enumerate(zip(names(query), query.atoms, strict=True))
    ]
    relations = [atom.relation for atom in query.atoms]
    return plan_hierarchical(
        query, leaves, relations, lambda variables, atoms: inner if variables[1:] else epsilon
    )


class Live:
    """A query under the engine and, beside it, under recomputation."""

    def __init__(
        self, query: ConjunctiveQuery, epsilon: float, nested: float | None = None
    ) -> None:
        self.query, self.database = query, Database()
        self.engine = ReferenceEngine(program(query, epsilon, nested), INTEGERS)

    def update(self, relation: str, row: tuple[Any, ...], multiplicity: int) -> None:
        """Every atom of the relation is told, one after another; so is who asks what changes."""
        self.database.apply([(relation, row, multiplicity)])
        before = dict(self.engine.enumerate({}))
        change: dict[tuple[Any, ...], int] = {}
        for i, atom in enumerate(self.query.atoms):
            if atom.relation == relation:
                for head, payload in self.engine.output_change(i, row, multiplicity).items():
                    change[head] = change.get(head, 0) + payload
                self.engine.triggers[i](row, multiplicity)
        self.check()
        after = dict(self.engine.enumerate({}))
        differences = {h: after.get(h, 0) - before.get(h, 0) for h in before | after}
        assert {h: n for h, n in change.items() if n} == {h: n for h, n in differences.items() if n}

    def check(self) -> None:
        """Enumeration without duplicates, and look-ups of present and absent tuples."""
        expected = recompute(self.query, self.database)
        found = list(self.engine.enumerate({}))
        assert dict(found) == expected
        assert len(found) == len(expected), "an output tuple came twice"
        absent = product((0, 1), repeat=len(self.query.outputs))
        for row in (*list(expected)[:5], *list(absent)[:4]):
            assert self.engine.lookup(row, {}) == expected.get(row, 0)

    def check_maps(self) -> None:
        """Every map is what loading makes of the parts as they are now."""
        engine, again = self.engine, ReferenceEngine(self.engine.program, INTEGERS)
        for part in engine.program.parts:
            for row, payload in engine.maps[part.map].items():
                again.maps[part.map].add(row, payload)
        for block in again.program.loading:
            again._run_load_block(block)
        for name, content in engine.maps.items():
            assert dict(content.items()) == dict(again.maps[name].items()), name

    def contents(self) -> list[tuple[int, tuple[Any, ...], int]]:
        return [
            (i, row, multiplicity)
            for i, atom in enumerate(self.query.atoms)
            for row, multiplicity in self.database.get(atom.relation, {}).items()
        ]


def skewed_stream(query: ConjunctiveQuery, length: int, seed: int) -> Iterator[Update]:
    """Growth, then shrinking; join variables have one frequent value; some rows are negative."""
    chance, rows = random.Random(seed), list[Update]()
    for step in range(length):
        if step < 2 * length // 3 or not rows:
            atom = chance.choice(query.atoms)
            row = tuple(skewed_value(query, v, chance) for v in atom.variables)
            rows.append((atom.relation, row, chance.choice((1, 1, 1, 2, 3, -1))))
            yield rows[-1]
        else:
            relation, row, multiplicity = rows.pop(chance.randrange(len(rows)))
            yield relation, row, -multiplicity


def skewed_value(query: ConjunctiveQuery, variable: str, chance: random.Random) -> int:
    if len(query.atoms_of[variable]) == 1:
        return chance.randrange(9)
    return 0 if chance.random() < 0.75 else chance.randrange(1, 4)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("text", QUERIES)
def test_every_state_of_a_skewed_stream_is_exact(text, epsilon):
    query = parse(text)
    assert not q_hierarchical(query)
    live = Live(query, epsilon)
    for update in skewed_stream(query, 120, seed=len(text)):
        live.update(*update)
    live.check_maps()


@st.composite
def hierarchical_queries(draw: DrawFn) -> ConjunctiveQuery:
    """A forest of variables with atoms that are paths from a root: all hierarchical queries."""
    paths: list[tuple[str, ...]] = [()]
    for name in "abcde":
        paths.append((*draw(st.sampled_from(paths)), name))
    chosen = draw(st.lists(st.sampled_from(paths), min_size=1, max_size=4))
    relations = draw(st.sampled_from(("RSTU", "RRSS", "RSTR")))
    atoms = [
        # The arity in the name lets a relation occur again only where it fits.
        Atom(f"{relation}{len(path)}", tuple(draw(st.permutations(path))))
        for relation, path in zip(relations, chosen, strict=False)
    ]
    used = sorted({v for path in chosen for v in path})
    outputs = tuple(v for v in draw(st.permutations(used)) if draw(st.booleans()))
    return ConjunctiveQuery("Q", outputs, tuple(atoms))


@given(st.data(), hierarchical_queries(), st.sampled_from(EPSILONS))
def test_every_state_of_random_queries_is_exact(data, query, epsilon):
    live = Live(query, epsilon)
    for update in data.draw(streams(query, max_size=12)):
        live.update(*update)
    live.check_maps()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("text", QUERIES)
def test_loading_is_inserting_one_by_one(text, epsilon):
    query = parse(text)
    live, loaded = Live(query, epsilon), Live(query, epsilon)
    for relation, row, multiplicity in skewed_stream(query, 120, seed=7):
        live.database.apply([(relation, row, multiplicity)])
    loaded.database = live.database
    loaded.engine.load(loaded.contents())
    loaded.check()
    loaded.check_maps()
    for atom, row, multiplicity in live.contents():
        if multiplicity:
            live.engine.triggers[atom](row, multiplicity)
    live.check()
    for update in skewed_stream(query, 30, seed=8):
        loaded.update(*update)


@pytest.mark.parametrize("text", [QUERIES[3], QUERIES[8], QUERIES[9]])
def test_values_may_be_heavy_below_light_ones(text):
    """With one exponent for all splits, whatever is heavy is so below heavy values only."""
    query = parse(text)
    live, loaded = Live(query, 0.9, nested=0.1), Live(query, 0.9, nested=0.1)
    for update in skewed_stream(query, 80, seed=5):
        live.update(*update)
        if len(live.engine.maps["R_lh"]) and not loaded.database:
            loaded.database.apply(
                (relation, row, n)
                for relation, rows in live.database.items()
                for row, n in rows.items()
            )
            loaded.engine.load(loaded.contents())
            assert len(loaded.engine.maps["R_lh"])
            loaded.check()
    assert loaded.database, "no value was heavy below a light one"
    live.check_maps()


@pytest.mark.parametrize("text", QUERIES)
def test_any_ring_will_do(text):
    """Each factor counts double in the second component, which integers alone would not show."""
    query, ring = parse(text), ProductRing(INTEGERS, INTEGERS)
    engine, database = ReferenceEngine(program(query), ring), Database()
    for relation, row, n in skewed_stream(query, 60, seed=3):
        database.apply([(relation, row, n)])
        atom = next(i for i, atom in enumerate(query.atoms) if atom.relation == relation)
        engine.triggers[atom](row, (n, 2 * n))
        expected = recompute(query, database)
        doubled = {head: (n, n * 2 ** len(query.atoms)) for head, n in expected.items()}
        assert dict(engine.enumerate({})) == doubled


def test_values_become_heavy_and_light_again():
    live = Live(parse(SIMPLEST), 0.5)
    partitions = live.engine.partitions
    assert partitions is not None
    for b in range(40):
        live.update("R", (b % 3, b), 1)
        live.update("S", (b,), 1)
    minor, major = partitions.minor, partitions.major
    assert major > 0
    for a in range(30):
        live.update("R", (100 + a, 5), 1)
    assert partitions.levels[0] == {(5,): 1}
    assert partitions.minor > minor
    minor = partitions.minor
    for a in range(30):
        live.update("R", (100 + a, 5), -1)
    assert partitions.levels[0] == {}
    assert partitions.minor > minor
    major = partitions.major
    for b in range(40):
        live.update("R", (b % 3, b), -1)
        live.update("S", (b,), -1)
    assert partitions.major > major
    live.check_maps()


@pytest.mark.parametrize(
    "text", ["Q(a) = V(a, l) * R(l)", "Q(d) = R(l, b_h, d) * S(l, b_h) * T(l)"]
)
def test_names_that_look_like_those_of_parts(text):
    query = parse(text)
    live = Live(query, 0.5)
    for update in skewed_stream(query, 40, seed=1):
        live.update(*update)


def test_the_program_of_the_simplest_query():
    assert str(program(parse(SIMPLEST))) == GOLDEN


def test_a_query_that_is_not_hierarchical_is_refused():
    with pytest.raises(ValueError, match="not hierarchical"):
        program(parse("Q(a) = R(a) * S(a, b) * T(b)"))


# --- bounds ---------------------------------------------------------------------------------------

SIZES = (256, 512, 1024, 2048, 4096, 8192)


def slope(costs: Sequence[float], sizes: Sequence[int] = SIZES) -> float:
    """The exponent of the costs in the sizes, by least squares."""
    xs, ys = [log(size) for size in sizes], [log(cost) for cost in costs]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    rise = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return rise / sum((x - x_mean) ** 2 for x in xs)


def hub_family(size: int, epsilon: float) -> list[tuple[int, tuple[int, ...], int]]:
    """As many heavy b as there can be, all with the same a; a hub; and b that are just light."""
    degree, below = ceil((4 * size) ** epsilon), ceil(size**epsilon / 2)
    heavy = [(a, 1 + b) for b in range(size // degree) for a in range(degree)]
    hub = [(a, 0) for a in range(size // 4)]
    light = [(a, -1 - b) for b in range(size // (4 * below)) for a in range(below)]
    bs = dict.fromkeys(b for _, b in heavy + hub + light)
    return [(0, row, 1) for row in heavy + hub + light] + [(1, (b,), 1) for b in bs]


def costs(size: int, epsilon: float) -> tuple[float, float, float]:
    """Steps per update while the data comes and goes, the dearest change of S, the delay."""
    contents = hub_family(size, epsilon)
    loaded = ReferenceEngine(program(parse(SIMPLEST), epsilon), INTEGERS)
    loaded.load(contents)
    delay = longest_wait(loaded)
    toggled = [row for atom, row, _ in contents if atom == 1]
    dearest = max(steps_of(loaded, 1, row, sign) for row in toggled for sign in (-1, 1))
    random.Random(size).shuffle(contents)
    engine = ReferenceEngine(program(parse(SIMPLEST), epsilon), INTEGERS)
    for sign in (1, -1):
        for atom, row, _ in contents:
            engine.triggers[atom](row, sign)
    return engine.steps / (2 * len(contents)), dearest, delay


def steps_of(engine: ReferenceEngine, atom: int, row: tuple[int, ...], sign: int) -> int:
    before = engine.steps
    engine.triggers[atom](row, sign)
    return engine.steps - before


def longest_wait(engine: ReferenceEngine) -> int:
    stamps = [engine.steps, *(engine.steps for _ in engine.enumerate({})), engine.steps]
    return max(later - earlier for earlier, later in pairwise(stamps))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.25, 0.5, 0.75])
def test_updates_and_delay_trade_off(epsilon):
    measured = [costs(size, epsilon) for size in SIZES]
    amortized, dearest, delay = zip(*measured, strict=True)
    assert slope(amortized) <= epsilon + 0.1
    assert slope(dearest) <= epsilon + 0.1
    assert slope(delay) <= 1 - epsilon + 0.1


def stars(query: ConjunctiveQuery, centres: range, degree: int) -> list[tuple[int, Any, int]]:
    """Values of the variable that all atoms have, each with as many tuples in every atom."""
    centre = next(v for v in query.variables if len(query.atoms_of[v]) == len(query.atoms))
    return [
        (
            i,
            tuple({centre: x}.get(v, y if query.atoms_of[v] == {i} else 0) for v in atom.variables),
            1,
        )
        for x in centres
        for i, atom in enumerate(query.atoms)
        for y in range(degree)
    ]


def star_costs(query: ConjunctiveQuery, size: int, epsilon: float) -> tuple[float, ...]:
    """The dearest update of light stars, steps per update of a star that becomes heavy and light
    again, the delay over heavy stars with the same tuples, and how many tuples these are."""
    light, heavy = ceil(size**epsilon / 2), ceil((2 * size + 1) ** epsilon)
    engine = ReferenceEngine(program(query, epsilon), INTEGERS)
    engine.load(stars(query, range(size // (light * len(query.atoms))), light))
    rows = stars(query, range(1), light)
    dearest = max(steps_of(engine, i, row, sign) for i, row, _ in rows for sign in (-1, 1))
    passing, before = stars(query, range(-1, 0), 3 * heavy), engine.steps
    random.Random(size).shuffle(passing)
    for sign in (1, -1):
        for atom, row, _ in passing:
            engine.triggers[atom](row, sign)
    amortized = (engine.steps - before) / (2 * len(passing))
    assert engine.partitions is not None
    assert engine.partitions.minor > 0
    engine = ReferenceEngine(program(query, epsilon), INTEGERS)
    contents = stars(query, range(size // (heavy * len(query.atoms))), heavy)
    engine.load(contents)
    return dearest, amortized, longest_wait(engine), len(contents)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "rank", "epsilon"),
    [
        ("Q(a, c) = R(a, b) * S(b, c)", 1, 0.25),
        ("Q(a, c) = R(a, b) * S(b, c)", 1, 0.5),
        ("Q(d, g) = R(a, b, d) * S(a, b, e) * T(a, c, f) * U(a, c, g)", 2, 0.25),
        ("Q(d, g) = R(a, b, d) * S(a, b, e) * T(a, c, f) * U(a, c, g)", 2, 0.4),
    ],
)
def test_updates_take_as_many_loops_as_the_rank(text, rank, epsilon):
    query, sizes = parse(text), (256, 1024, 4096)
    assert delta_rank(query).value == rank
    measured = [star_costs(query, size, epsilon) for size in sizes]
    # Whole heavy stars do not fill small sizes: the delay is held against what there is.
    dearest, amortized, delay, stored = zip(*measured, strict=True)
    assert slope(dearest, sizes) <= rank * epsilon + 0.1
    assert slope(amortized, sizes) <= rank * epsilon + 0.1
    assert slope(delay, stored) <= 1 - epsilon + 0.1


GOLDEN = """\
strategy epsilon
splits
  b in R, S: h from degree N^1/2
maps
  R_l(a, b) = input, index (b)
  R_h(a, b) = input, index (b)
  S_l(b) = input, index (b)
  S_h(b) = input, index (b)
  live V_a_h(b) = number of a live in R_h(a, b)
  V_b_l(a) = sum_b S_l(b) * R_l(a, b)
  live V'_b_h(b) = all live in S_h(b) * V_a_h(b)
  live V_b() = number of b live in V'_b_h(b) + number of a live in V_b_l(a)
on R_l(a, b)
  R_l[a, b] += delta
  with S_l[b]
    V_b_l[a] += delta * S_l[b]; if it appeared (change 1) or vanished (-1):
      V_b[] += change; if it appeared (change 1) or vanished (-1):
on R_h(a, b)
  R_h[a, b] += delta; if it appeared (change 1) or vanished (-1):
    V_a_h[b] += change; if it appeared (change 1) or vanished (-1):
      with live S_h[b]
        V'_b_h[b] += change; if it appeared (change 1) or vanished (-1):
          V_b[] += change; if it appeared (change 1) or vanished (-1):
on S_l(b)
  S_l[b] += delta
  for a in R_l[a, b]
    V_b_l[a] += delta * R_l[a, b]; if it appeared (change 1) or vanished (-1):
      V_b[] += change; if it appeared (change 1) or vanished (-1):
on S_h(b)
  S_h[b] += delta; if it appeared (change 1) or vanished (-1):
    with live V_a_h[b]
      V'_b_h[b] += change; if it appeared (change 1) or vanished (-1):
        V_b[] += change; if it appeared (change 1) or vanished (-1):
output (a)
  with live V_b[]
    for distinct a in any of
      one set
        for a in V_b_l[a]
      a set for each
        for b in live V'_b_h[b]
          with S_h[b]
            for a in R_h[a, b]"""
