"""min and max in process: what an update does is counted, and grows with log N at most."""

import datetime
import sys
from decimal import Decimal
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from viewkeep.rings import MULTISETS

SIZES = (256, 1024, 4096)


def lines_run(action):
    """Lines of Python that an action runs: its work, by no clock and by no counter of ours."""
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        return trace

    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(None)
    return lines


def costs(text, relation, rows, changed, size, output="factorized"):
    """Steps and lines of the dearest of some updates, and of reading, with so many rows."""
    live = vk.maintain(text, output=output, engine="reference")  # machine code counts no steps
    live.load(rows(size))
    steps, lines = [], []
    for row in changed(size):
        for multiplicity in (1, -1):
            before = live.steps
            lines.append(lines_run(lambda m=multiplicity, r=row: live.update(relation, r, m)))
            steps.append(live.steps - before)
    before = live.steps
    reading = lines_run(lambda: list(live.enumerate()))
    return max(steps), max(lines), live.steps - before, reading


LOGARITHMIC = {
    "one relation": (
        "Q(a; min(b), max(b)) = R(a, b)",
        "R",
        lambda n: {"R": [(1, i) for i in range(n)]},
        lambda n: [(1, -1), (1, n // 2), (1, n + 1)],
    ),
    "no group": (
        "Q(; max(b)) = R(b)",
        "R",
        lambda n: {"R": [(i,) for i in range(n)]},
        lambda n: [(-1,), (n // 2,), (n + 1,)],
    ),
    "the side with the values": (
        "Q(b; min(c)) = R(a, b) * S(b, c)",
        "S",
        lambda n: {"R": [(i, 1) for i in range(5)], "S": [(1, i) for i in range(n)]},
        lambda n: [(1, -1), (1, n // 2), (1, n + 1)],
    ),
    "the side without values": (
        "Q(b; min(c)) = R(a, b) * S(b, c)",
        "R",
        lambda n: {"R": [(1, 1)], "S": [(1, i) for i in range(n)]},
        lambda n: [(2, 1), (3, 1)],
    ),
}


@pytest.mark.parametrize(
    ("text", "relation", "rows", "changed"), LOGARITHMIC.values(), ids=LOGARITHMIC
)
def test_an_update_takes_logarithmically_many_steps_and_reading_constantly_many(
    text, relation, rows, changed
):
    analysis = vk.analyze(text)
    assert analysis.bounds.constant
    assert analysis.bounds.logarithmic
    small, _, large = (costs(text, relation, rows, changed, size) for size in SIZES)
    depth = 1.45 * log2(max(SIZES)) + 2
    assert large[0] <= 8 + 4 * depth  # two trees, an insert in each, or a removal
    assert large[1] <= 1.6 * small[1] + 50  # log 4096 is 1.5 times log 256
    assert large[2] == small[2]
    assert large[3] <= small[3] + 5


def test_steps_tell_the_work():
    """Lines of Python per step stay within the same range however large the group is."""
    text, relation, rows, changed = LOGARITHMIC["one relation"]
    ratios = [
        lines / steps
        for steps, lines, *_ in (costs(text, relation, rows, changed, n) for n in SIZES)
    ]
    assert max(ratios) < 1.5 * min(ratios)


def test_merging_is_counted_and_announced():
    """R(a, b) brings all values of S(a, b, c) into the one group at once."""
    text = "Q(; min(c)) = R(a, b) * S(a, b, c)"
    analysis = vk.analyze(text)
    assert (analysis.bounds.update, analysis.bounds.logarithmic) == (1, True)
    found = [
        costs(text, "R", lambda n: {"S": [(1, 1, i) for i in range(n)], "R": [(2, 1)]},
              lambda n: [(1, 1)], size)
        for size in SIZES
    ]  # fmt: skip
    assert found[-1][0] > max(SIZES)
    ratios = [lines / steps for steps, lines, *_ in found]
    assert max(ratios) < 2 * min(ratios)


def test_a_payload_that_someone_holds_does_not_change():
    values = MULTISETS.zero
    held = []
    for n in range(100):
        values = MULTISETS.add(values, MULTISETS.lift(n * 37 % 100))
        held.append((values, values.minimum, values.maximum))
    for n in range(100):
        values = MULTISETS.add(values, MULTISETS.negate(MULTISETS.lift(n)))
    assert MULTISETS.is_zero(values)
    assert all((each.minimum, each.maximum) == (low, high) for each, low, high in held)


VALUES = {
    "integers": st.integers(-5, 5),
    "decimals": st.integers(-20, 20).map(lambda n: Decimal(n).scaleb(-1)),
    "floats": st.floats(allow_nan=False, width=16),
    "strings": st.text("ab", max_size=2),
    "dates": st.integers(1, 20).map(lambda n: datetime.date(2024, 1, n)),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Q(a; min(b), max(b)) = R(a, b)", {}),
        ("Q(a; min(b), max(b)) = R(a, b)", {"output": "list"}),
        ("Q(a; min(b), max(b)) = R(a, b)", {"strategy": "delta"}),
        ("Q(a; min(b), max(b)) = R(a, b) * S(a, c)", {}),
        ("Q(a; min(b), max(b)) = R(a, b) * S(a, c)", {"output": "list"}),
    ],
    ids=["one", "one listed", "one by delta", "two", "two listed"],
)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_streams_of_values_that_come_and_go(text, options, values, data, tmp_path_factory):
    """Groups that empty, nulls, deletes of the extreme; saved and restored halfway."""
    live = vk.maintain(text, **options)
    told = {}
    live.subscribe(lambda changes: told.update({c.row: c.after for c in changes}))
    rows = data.draw(st.lists(st.tuples(st.integers(0, 1), st.none() | values), max_size=12))
    if "S" in text:
        live.load({"S": [(0, 1), (0, 2), (1, 1)]})
    present = []
    for number, row in enumerate(rows):
        live.update("R", row)
        present.append(row)
        if data.draw(st.booleans()):
            present.remove(gone := data.draw(st.sampled_from(present)))
            live.update("R", gone, -1)
        expected = extremes(present)
        assert dict(live.enumerate()) == expected
        assert {row: each for row, each in told.items() if each is not None} == expected
        if number == len(rows) // 2:
            path = tmp_path_factory.getbasetemp() / "extremes.state"
            live.save(path)
            assert dict(vk.Maintainer.restore(path).enumerate()) == expected


def extremes(rows):
    groups = {}
    for group, value in rows:
        groups.setdefault((group,), []).extend([] if value is None else [value])
    return {
        group: (min(values, default=None), max(values, default=None))
        for group, values in groups.items()
    }


@pytest.mark.parametrize("stranger", ["text", Decimal("NaN"), frozenset({1}), 1j])
def test_a_value_without_an_order_is_refused_and_nothing_changes(stranger):
    live = vk.maintain("Q(a; min(b)) = R(a, b)")
    live.load({"R": [(1, 3), (1, 5)]})
    with pytest.raises(vk.ViewkeepError, match=r"cannot order|equal to nothing|cannot be hashed"):
        live.update_batch("R", [(1, 2), (2, 7), (1, stranger)])
    assert dict(live.enumerate()) == {(1,): (3,)}
    live.update("R", (1, 3), -1)
    assert dict(live.enumerate()) == {(1,): (5,)}
