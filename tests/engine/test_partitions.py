"""Heavy and light parts by hand: figure 4 of triangle_ivm_epsilon, update by update."""

import pytest

import viewkeep as vk
from viewkeep.engine.interpreter.check import Checker, InvariantError
from viewkeep.rings import INTEGERS

TRIANGLE = "Q() = R(a, b) * S(b, c) * T(c, a)"


def contents(live, *names):
    return [dict(live.engine.maps[name].items()) for name in names]


def loaded(**options):
    """|D| = 8, so N = 17 and N^1/2 = 4.12: from five tuples on a value is heavy."""
    live = vk.maintain(TRIANGLE, strategy="epsilon", check=True, **options)
    live.load({"R": [(1, b) for b in range(5)], "S": [(0, 7)], "T": [(7, 1), (8, 1)]})
    return live


def test_the_state_after_loading_is_a_strict_partition():
    live = loaded()
    partitions = live.engine.partitions
    assert (partitions.base, partitions.size) == (17, 8)
    assert partitions.levels == [{(1,): 1}, {}, {}]
    assert contents(live, "R_h", "R_l") == [{(1, b): 1 for b in range(5)}, {}]
    assert contents(live, "S_h", "S_l") == [{}, {(0, 7): 1}]
    assert contents(live, "T_h", "T_l") == [{}, {(7, 1): 1, (8, 1): 1}]
    assert contents(live, "V_RS", "V_ST", "V_TR") == [{(1, 7): 1}, {}, {}]
    assert live.value() == 1


def test_updates_by_hand():
    live = loaded()
    partitions = live.engine.partitions
    live.update("S", (1, 7), 2)  # light: joins R_h(1, 1)
    assert contents(live, "V_RS", "V_ST", "V_TR") == [{(1, 7): 3}, {}, {}]
    assert live.value() == 3
    live.update("S", (1, 8), -1)  # ahead of its insert
    assert contents(live, "V_RS", "V_ST", "V_TR") == [{(1, 7): 3, (1, 8): -1}, {}, {}]
    assert live.value() == 2
    # 1 has degree 5 in R; below 1/2 * 4.12, that is at degree 2, it becomes light.
    for b, count in ((2, 4), (3, 3)):
        live.update("R", (1, b), -1)
        assert len(live.engine.maps["R_h"]) == count
    assert partitions.minor == 0
    live.update("R", (1, 4), -1)
    assert (partitions.minor, partitions.major) == (1, 0)
    assert contents(live, "R_h", "R_l") == [{}, {(1, 0): 1, (1, 1): 1}]
    assert contents(live, "V_RS", "V_ST", "V_TR") == [{}, {}, {}]
    assert partitions.levels == [{}, {}, {}]
    assert live.value() == 2
    # 3/2 * 4.12 = 6.18: with seven tuples it is heavy again.
    for b in range(10, 14):
        live.update("R", (1, b))
    assert partitions.minor == 1
    live.update("R", (1, 14))
    assert partitions.minor == 2
    assert len(live.engine.maps["R_h"]) == 7
    assert contents(live, "V_RS") == [{(1, 7): 3, (1, 8): -1}]
    assert live.value() == 2


def test_more_of_a_tuple_is_no_higher_degree():
    live = loaded()
    for _ in range(9):
        live.update("S", (0, 7))
    assert contents(live, "S_h", "S_l") == [{}, {(0, 7): 10}]
    assert live.engine.partitions.size == 8


def test_the_database_doubles_and_halves():
    live = loaded()
    partitions = live.engine.partitions
    for c in range(8):
        live.update("T", (20 + c, 20 + c))
    assert (partitions.base, partitions.major) == (17, 0)
    live.update("T", (30, 30))  # |D| = N
    assert (partitions.base, partitions.size, partitions.major) == (34, 17, 1)
    assert partitions.levels == [{}, {}, {}], "degree 5 is light for N^1/2 = 5.83"
    assert contents(live, "V_RS") == [{}]
    for c in range(8):
        live.update("T", (20 + c, 20 + c), -1)
    live.update("T", (30, 30), -1)
    assert (partitions.base, partitions.size, partitions.major) == (34, 8, 1)
    live.update("T", (8, 1), -1)  # |D| < floor(34 / 4)
    assert (partitions.base, partitions.size, partitions.major) == (16, 7, 2)
    assert partitions.levels == [{(1,): 1}, {}, {}], "degree 5 is heavy for N^1/2 = 4"
    assert contents(live, "V_RS") == [{(1, 7): 1}]
    assert live.value() == 1


def test_nothing_is_left_of_values_that_vanish_and_they_come_back_light():
    live = loaded()
    for b in range(5):
        live.update("R", (1, b), -1)
    live.update("S", (0, 7), -1)
    for c in (7, 8):
        live.update("T", (c, 1), -1)
    assert not any(live.sizes().values())
    assert live.engine.partitions.levels == [{}, {}, {}]
    live.update("R", (1, 0))
    assert contents(live, "R_h", "R_l") == [{}, {(1, 0): 1}]


@pytest.mark.parametrize("epsilon", [0, 1])
def test_at_the_ends_all_values_are_heavy_or_all_are_light(epsilon):
    live = vk.maintain(TRIANGLE, strategy="epsilon", epsilon=epsilon, check=True)
    live.load({"R": [(1, b) for b in range(5)], "S": [(0, 7)], "T": []})
    for i in range(20):
        live.update("R", (1, 10 + i))
        live.update("S", (i, 7))
    empty = "l" if epsilon == 0 else "h"
    assert contents(live, f"R_{empty}", f"S_{empty}", f"T_{empty}") == [{}, {}, {}]
    assert live.engine.partitions.minor == 0


def test_what_is_heavy_can_be_read():
    live = loaded()
    live.load({"R": [(2, b) for b in range(7)]})
    first, second, third = live.partitions()
    assert first.values(1) == [(2,), (1,)], "by falling degree"
    assert first.degrees == {(2,): 7, (1,): 5}
    assert first.thresholds == (17**0.5,)
    assert (second.values(1), third.values(1)) == ([], [])
    assert vk.maintain("Q(a) = R(a, b)").partitions() == ()
    assert vk.maintain(TRIANGLE, strategy="delta").partitions() == ()


# --- the checker itself ---------------------------------------------------------------------------


def a_view(live):
    live.engine.maps["V_RS"].add((1, 7), 1)


def the_result(live):
    live.engine.maps["Result"].add((), 1)


def a_part(live):
    live.engine.maps["R_h"].add((1, 0), -1)
    live.engine.maps["R_l"].add((1, 0), 1)


def the_size(live):
    live.engine.partitions.size += 1


def the_base(live):
    live.engine.partitions.set_base(8)


def a_level(live):
    live.engine.partitions.levels[1][0,] = 1


def an_old_level(live):
    live.engine.partitions.levels[0][99,] = 1


def a_threshold(live):
    live.engine.partitions.set_base(32)  # 2.83 tuples of 1 may be heavy, one of them may not
    for b in range(3):
        live.engine.maps["R_h"].add((1, b), -1)
    live.engine.partitions.size -= 3


@pytest.mark.parametrize(
    "damage",
    [a_view, the_result, a_part, the_size, the_base, a_level, an_old_level, a_threshold],
    ids=lambda damage: damage.__name__,
)
def test_every_invariant_is_checked(damage):
    live = loaded(engine="reference")
    checker = Checker(live.program, INTEGERS)
    checker.check(live.engine)
    damage(live)
    with pytest.raises(InvariantError, match="invariant violated"):
        checker.check(live.engine)


def test_check_looks_after_every_update():
    live = loaded(engine="reference")
    a_view(live)
    with pytest.raises(InvariantError, match="V_RS"):
        live.update("T", (50, 50))


# --- joint splits ---------------------------------------------------------------------------------


def test_in_linear_space_a_value_is_heavy_by_its_largest_degree():
    live = vk.maintain(TRIANGLE, strategy="epsilon", space="linear", check=True)
    live.load({"R": [(1, b) for b in range(5)], "S": [(0, 7)], "T": [(7, 1), (8, 1)]})
    assert live.engine.partitions.levels == [{(1,): 1}, {}, {}]
    assert contents(live, "T_lh", "T_hl") in (
        [{(7, 1): 1, (8, 1): 1}, {}],
        [{}, {(7, 1): 1, (8, 1): 1}],
    )
    for b in (2, 3, 4):
        live.update("R", (1, b), -1)
    assert live.engine.partitions.minor == 1
    assert contents(live, "T_ll") == [{(7, 1): 1, (8, 1): 1}], "moved with the tuples of R"
    for c in range(10, 15):
        live.update("T", (c, 1))
    assert live.engine.partitions.minor == 2, "now it is heavy in T"
    assert contents(live, "R_ll") == [{}]
    assert live.value() == 1
