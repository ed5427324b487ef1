"""Programs with heavy and light parts: the views of the paper, presets, and what is refused."""

from fractions import Fraction

import pytest

import viewkeep as vk
from viewkeep.analysis.exponents import HALF, value_at
from viewkeep.plan.choose import plan
from viewkeep.rings import BOOLEAN, MIN

TRIANGLE = "Q() = R(a, b) * S(b, c) * T(c, a)"

FIGURES_2_AND_3 = """\
strategy epsilon
splits
  a in R: h from degree N^1/2
  b in S: h from degree N^1/2
  c in T: h from degree N^1/2
maps
  R_h(a, b) = input, index (b), index (a)
  R_l(a, b) = input, index (b), index (a)
  S_h(b, c) = input, index (b), index (c)
  S_l(b, c) = input, index (b), index (c)
  T_h(c, a) = input, index (a), index (c)
  T_l(c, a) = input, index (a), index (c)
  V_ST(b, a) = sum_c S_h(b, c) * T_l(c, a)
  V_RS(a, c) = sum_b R_h(a, b) * S_l(b, c)
  V_TR(c, b) = sum_a T_h(c, a) * R_l(a, b)
  Result() = the count
on R_h(a, b)
  for c in S_h[b, c] * T_h[c, a]
    Result[] += delta * S_h[b, c] * T_h[c, a]
  with V_ST[b, a]
    Result[] += delta * V_ST[b, a]
  for c in T_h[c, a] * S_l[b, c]
    Result[] += delta * T_h[c, a] * S_l[b, c]
  for c in S_l[b, c] * T_l[c, a]
    Result[] += delta * S_l[b, c] * T_l[c, a]
  for c in S_l[b, c]
    V_RS[a, c] += delta * S_l[b, c]
  R_h[a, b] += delta
on R_l(a, b)
  for c in S_h[b, c] * T_h[c, a]
    Result[] += delta * S_h[b, c] * T_h[c, a]
  with V_ST[b, a]
    Result[] += delta * V_ST[b, a]
  for c in T_h[c, a] * S_l[b, c]
    Result[] += delta * T_h[c, a] * S_l[b, c]
  for c in S_l[b, c] * T_l[c, a]
    Result[] += delta * S_l[b, c] * T_l[c, a]
  for c in T_h[c, a]
    V_TR[c, b] += delta * T_h[c, a]
  R_l[a, b] += delta
"""


def test_the_triangle_is_figures_2_and_3_of_the_paper():
    """The triggers of S and T are those of R with the names moved on."""
    text = str(vk.maintain(TRIANGLE, strategy="epsilon").program)
    assert text.startswith(FIGURES_2_AND_3)
    assert text.endswith("output ()\n  with Result[]")
    rest = text.removeprefix(FIGURES_2_AND_3)
    assert [line for line in rest.splitlines() if line.startswith("on ")] == [
        "on S_h(b, c)",
        "on S_l(b, c)",
        "on T_h(c, a)",
        "on T_l(c, a)",
    ]
    for line in ("with V_TR[c, b]", "with V_RS[a, c]"):
        assert rest.count(f"  {line}\n") == 2
    for line in (
        "V_ST[b, a] += delta * T_l[c, a]",  # on S_h
        "V_RS[a, c] += delta * R_h[a, b]",  # on S_l
        "V_TR[c, b] += delta * R_l[a, b]",  # on T_h
        "V_ST[b, a] += delta * S_h[b, c]",  # on T_l
    ):
        assert rest.count(line) == 1


def views(text, **options):
    program = vk.maintain(text, strategy="epsilon", **options).program
    return {each.name: each.definition for each in program.maps if each.name.startswith("V_")}


def test_common_and_composite_variables_are_split_together():
    program = vk.maintain(
        "Q() = R(x, a, b) * S(x, b, c) * T(x, c, a, l)", strategy="epsilon"
    ).program
    assert [split.variables for split in program.splits] == [("x", "a"), ("x", "b"), ("x", "c")]
    local = {each.name: each.key for each in program.maps if each.name.startswith("V_T_")}
    assert local == {"V_T_h": ("x", "c", "a"), "V_T_l": ("x", "c", "a")}


def test_a_path_is_split_in_the_middle():
    program = vk.maintain("Q() = R(a, b) * S(b, c) * T(c, d)", strategy="epsilon").program
    assert [(split.variables, split.atoms) for split in program.splits] == [(("b",), (1,))]
    assert {"R", "S_h", "S_l", "T"} <= {each.name for each in program.maps}


def test_in_linear_space_views_are_over_two_heavy_values():
    found = views(TRIANGLE, space="linear")
    assert set(found) == {"V_ST", "V_RS", "V_RT"}
    program = vk.maintain(TRIANGLE, strategy="epsilon", space="linear").program
    assert [split.atoms for split in program.splits] == [(0, 2), (0, 1), (1, 2)]


TAIL = "Q() = A(a, b) * B(b, c) * C(c, a) * D(c, d) * E(d, e)"


@pytest.mark.parametrize(
    ("text", "thresholds", "maps"),
    [
        ("Q() = R(a, b) * S(b, c) * T(c, d) * U(d, a)", (1 / 3,), 29),
        ("Q() = A(a, b, c) * B(a, x) * C(b, y) * D(c, z)", (2 / 3,), 27),
        (TAIL, (1 / 3, 2 / 3), 135),
    ],
)
def test_thresholds_that_a_plan_needs(text: str, thresholds: tuple[float, ...], maps: int) -> None:
    program = vk.maintain(text, strategy="epsilon", epsilon=0.2).program
    assert {(each.thresholds, each.fixed) for each in program.splits} == {(thresholds, True)}
    assert len(program.maps) == maps
    costs = [block.cost for trigger in program.triggers for block in trigger.blocks]
    assert max(value_at(each, HALF) for each in costs if each is not None) == Fraction(2, 3)


def test_thresholds_are_given_by_relation_or_by_variables():
    def thresholds(text, epsilon):
        program = vk.maintain(text, strategy="epsilon", epsilon=epsilon).program
        return [split.thresholds for split in program.splits]

    assert thresholds(TRIANGLE, {"R": 0.1, "S": 0.9}) == [(0.1,), (0.9,), (0.5,)]
    assert thresholds(TRIANGLE, {"c": 0.25}) == [(0.5,), (0.5,), (0.25,)]
    assert thresholds("Q() = E(a, b) * E(b, c) * E(c, a)", {"E": 0.2, "E#3": 0.8})[2] == (0.8,)


# --- presets --------------------------------------------------------------------------------------


def hub(size):
    """The join of any two relations on the hub 0 has size^2 pairs."""
    rows = [(0, i) for i in range(size)] + [(i, 0) for i in range(1, size)]
    return dict.fromkeys("RST", rows)


def test_first_order_keeps_no_view():
    live = vk.maintain(TRIANGLE, strategy="epsilon", epsilon="first-order", check=True)
    live.load(hub(12))
    for i in range(40):
        live.update("RST"[i % 3], (i % 4, i % 7))
        sizes = live.sizes()
        assert all(not sizes[name] for name in ("V_RS", "V_ST", "V_TR", "R_h", "S_h", "T_h"))


@pytest.mark.parametrize(
    ("fast", "kept"), [("R", "V_ST"), ("S", "V_TR"), ("T", "V_RS")], ids=lambda each: each
)
def test_factorized_makes_updates_of_one_relation_constant(fast, kept):
    steps = []
    for size in (10, 100):
        live = vk.maintain(TRIANGLE, strategy="epsilon", epsilon=f"factorized:{fast}")
        live.load(hub(size))
        sizes = {name: n for name, n in live.sizes().items() if name.startswith("V_")}
        assert sizes.pop(kept) == size**2, "0 is joined to everything, and all with all through 0"
        assert set(sizes.values()) == {0}
        worst = 0
        for row in [(0, 0), (1, 1), (0, size + 5), (3, 4)]:
            before = live.steps
            live.update(fast, row)
            worst = max(worst, live.steps - before)
        steps.append(worst)
    assert steps[0] == steps[1]


def test_factorized_is_for_the_first_relation_by_default():
    first = vk.maintain(TRIANGLE, strategy="epsilon", epsilon="factorized").program
    assert str(first) == str(
        vk.maintain(TRIANGLE, strategy="epsilon", epsilon="factorized:R").program
    )


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TRIANGLE, {"epsilon": -1}, "epsilon=-1: expected a number between 0 and 1"),
        (TRIANGLE, {"epsilon": 1.5}, "between 0 and 1"),
        (TRIANGLE, {"epsilon": float("nan")}, "between 0 and 1"),
        (TRIANGLE, {"epsilon": True}, "epsilon=True: expected a number between 0 and 1"),
        (TRIANGLE, {"epsilon": "half"}, '"first-order", "factorized"'),
        (TRIANGLE, {"epsilon": ""}, '"first-order", "factorized"'),
        (TRIANGLE, {"epsilon": {"R": 2}}, "epsilon=2 of R: expected a number between 0 and 1"),
        (TRIANGLE, {"epsilon": {"X": 0.5}}, 'epsilon of "X": nothing of that name is split'),
        (TRIANGLE, {"epsilon": "factorized:X"}, 'no relation "X"'),
        (TRIANGLE, {"epsilon": "first-order:R"}, "first-order"),
        (TRIANGLE, {"space": "tiny"}, 'space="tiny": expected one of fast, linear'),
        (TRIANGLE, {"ring": BOOLEAN}, "need a ring with subtraction"),
        (TRIANGLE, {"ring": MIN}, "need a ring with subtraction"),
        ("Q(a, b, c) = R(a, b) * S(b, c) * T(c, a)", {"output": "list"}, 'output="factorized"'),
        ("Q(a, b, c) = R(a, b) * S(b, c) * T(c, a)", {"space": "linear"}, "is for counts"),
        ("Q(a) = R(a, b) * S(a)", {}, "is q-hierarchical"),
        ("Q() = R(a)", {}, "is q-hierarchical"),
        ("Q(| a) = R(a, b) * S(b, c) * T(c, a)", {}, "given inputs"),
        ("Q(a, d) = R(a, b) * S(b, c) * T(c, d)", {}, "known for counts"),
        ("Q() = R(a, b) * S(b, c) * T(c, d) * U(d, e)", {"epsilon": "factorized"}, "triangles"),
        ("Q() = R(a, b) * S(b, c) * T(c, d) * U(d, e) * V(e, a)", {}, "no split was found"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused_with_the_reason(text, options, message):
    with pytest.raises(vk.QueryError) as caught:
        vk.maintain(text, strategy="epsilon", **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"ring": BOOLEAN, "insert_only": True}, {"ring": MIN, "insert_only": True}],
    ids=["boolean", "min"],
)
def test_auto_does_without_parts_where_tuples_cannot_move(options):
    assert vk.maintain(TRIANGLE).program.strategy == "epsilon"
    assert vk.maintain(TRIANGLE, **options).program.strategy != "epsilon"


def test_auto_does_without_parts_where_a_list_is_wanted():
    query = vk.parse("Q(a, b, c) = R(a, b) * S(b, c) * T(c, a)")
    assert plan(query).strategy == "epsilon"
    assert plan(query, output="list").strategy != "epsilon"


def test_a_min_over_triangles_is_not_split_by_auto():
    assert vk.maintain("Q(; min(a)) = R(a, b) * S(b, c) * T(c, a)").program.strategy != "epsilon"
