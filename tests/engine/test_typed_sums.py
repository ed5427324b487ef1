"""Sums of decimals and floats in machine code, keys of dates and timestamps: the same exact results
as the reference engine, after every update."""

import random
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import viewkeep as vk
from tests.engine.engines import LONG
from tests.engine.streams import Replica
from viewkeep.engine.compiled.engine import CompiledEngine
from viewkeep.engine.compiled.formats import DAYS, FLOATS, INTEGERS, MICROSECONDS, Decimals

STEPS, SEEDS = (400, 8) if LONG else (60, 2)


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[None]:
    """These tests name their engines; code is compiled quickly, since it runs on few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIEWKEEP_OPTIMIZE", "0")
        yield


Make = Callable[[random.Random], Any]


def whole(choose: random.Random) -> Any:
    return choose.randrange(-9, 9)


def cents(choose: random.Random) -> Any:
    return Decimal(choose.randrange(-9999, 9999)).scaleb(-2)


def price(choose: random.Random) -> Any:
    return choose.choice([cents(choose), Decimal("0.125"), Decimal(7), None])


def number(choose: random.Random) -> Any:
    return choose.uniform(-100, 100)


def wild(choose: random.Random) -> Any:
    odd = [0.0, -0.0, 0.1, 5e-324, 1.5e15, -(2.0**70), 1e-30, None]
    return choose.choice([number(choose), choose.choice(odd)])


def mixed(choose: random.Random) -> Any:
    return choose.choice([whole(choose), whole(choose), number(choose), cents(choose), None])


def day(choose: random.Random) -> Any:
    return date(2020, 1, 1) + timedelta(days=choose.randrange(4))


def moment(choose: random.Random) -> Any:
    return datetime(1969, 12, 31, 23, 59, 59, 999999) + timedelta(days=choose.randrange(3))


ARROW = {
    whole: pa.int32(),
    cents: pa.decimal128(12, 2),
    price: pa.decimal128(20, 3),
    number: pa.float64(),
    wild: pa.float64(),
    day: pa.date32(),
    moment: pa.timestamp("us"),
}

ONE = "Q(g; sum(x), avg(x), count(x), count()) = R(g, x) * S(g)"
TWO = "Q(g; sum(x * y), sum(2 * x - y + 1)) = R(g, x) * S(g, y)"
TOTAL = "Q(; sum(x * (1 - x) + 0.5), avg(x)) = R(g, x) * S(g)"
PATH = "Q(; sum(x * y)) = R(g, x) * S(g, h) * T(h, y)"
CASES: list[tuple[str, dict[str, Any], dict[str, tuple[Make, ...]]]] = [
    (ONE, {}, {"R": (whole, cents), "S": (whole,)}),
    (ONE, {}, {"R": (day, price), "S": (day,)}),
    (ONE, {"output": "list"}, {"R": (moment, number), "S": (moment,)}),
    (ONE, {"strategy": "recursive"}, {"R": (whole, wild), "S": (whole,)}),
    (ONE, {}, {"R": (whole, mixed), "S": (whole,)}),
    (ONE, {"mode": "lazy"}, {"R": (number, whole), "S": (number,)}),
    (TWO, {}, {"R": (whole, cents), "S": (whole, price)}),
    (TWO, {"strategy": "delta"}, {"R": (whole, number), "S": (whole, wild)}),
    (TWO, {}, {"R": (whole, cents), "S": (whole, whole)}),
    (TWO, {}, {"R": (whole, number), "S": (whole, whole)}),
    (TOTAL, {}, {"R": (day, cents), "S": (day,)}),
    (TOTAL, {}, {"R": (whole, number), "S": (whole,)}),
    (PATH, {"strategy": "epsilon"}, {"R": (whole, cents), "S": (whole, day), "T": (day, number)}),
    (PATH, {"strategy": "epsilon"}, {"R": (whole, cents), "S": (whole, day), "T": (day, price)}),
]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(("text", "options", "makers"), CASES, ids=lambda each: str(each)[:24])
def test_every_update_gives_what_the_reference_engine_gives(text, options, makers, seed, tmp_path):
    choose = random.Random(f"{text}{seed}")
    live = vk.maintain(text, engine="compiled", **options)
    reference = vk.maintain(text, engine="reference", **options)
    replica = Replica(live) if not seed else None
    present: dict[str, list[tuple[Any, ...]]] = {name: [] for name in makers}
    for step in range(STEPS):
        relation = choose.choice(list(makers))
        rows, counts = changes(choose, present[relation], makers[relation])
        outcomes = [
            refusal(each, relation, form, counts)
            for each, form in (
                (live, as_some_table(choose, rows, makers[relation])),
                (reference, rows),
            )
        ]
        assert outcomes[0] == outcomes[1]
        if outcomes[0] is None:
            note(present[relation], rows, counts)
        assert results(live) == results(reference)
        if replica is not None and live.query.outputs:
            assert replica.content == results(live)
        if step == STEPS // 2 and seed:
            live.save(tmp_path / "state")
            live = vk.Maintainer.restore(tmp_path / "state")
    live.flush()
    reference.flush()
    if isinstance(live.engine, CompiledEngine):
        assert live.engine.maps == reference.engine.maps
    for relation, rows in present.items():
        counts = [-1] * len(rows)
        outcomes = [refusal(each, relation, rows, counts) for each in (live, reference)]
        assert outcomes[0] == outcomes[1]
        if outcomes[0] is not None:  # kinds of numbers meet once a sum is no longer 0
            return
    live.flush()
    assert all(size == 0 for size in live.sizes().values()), "something stays of what is deleted"


def changes(
    choose: random.Random, present: list[tuple[Any, ...]], makers: tuple[Make, ...]
) -> tuple[list[tuple[Any, ...]], list[int]]:
    """Rows that come and rows that go."""
    size = choose.choice((1, 1, 3, 12))
    gone = choose.sample(present, min(len(present), choose.choice((0, size))))
    rows = [tuple(make(choose) for make in makers) for _ in range(size)]
    return rows + gone, [1] * size + [-1] * len(gone)


def note(present: list[tuple[Any, ...]], rows: list[tuple[Any, ...]], counts: list[int]) -> None:
    for row, count in zip(rows, counts, strict=True):
        if count > 0:
            present.append(row)
        else:
            present.remove(row)


def as_some_table(choose: random.Random, rows: list[tuple[Any, ...]], makers: tuple[Make, ...]):
    if mixed in makers or choose.random() < 0.5:
        return rows
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, ARROW[m]) for c, m in zip(columns, makers, strict=True)]
    return pa.Table.from_arrays(
        [pa.concat_arrays([a, a])[len(a) :] for a in arrays], list("abc")[: len(arrays)]
    )


def refusal(live: vk.Maintainer, relation: str, rows: Any, counts: list[int]) -> type | None:
    try:
        if isinstance(rows, list) and len(rows) == 1:
            live.update(relation, rows[0], counts[0])
        else:
            live.update_batch(relation, rows, counts)
    except vk.ViewkeepError as error:
        return type(error)
    return None


def results(live: vk.Maintainer) -> Any:
    try:
        return dict(live.enumerate()) if live.query.outputs else live.value()
    except vk.ViewkeepError as error:
        return type(error)


def formats(live: vk.Maintainer) -> dict[str, Any]:
    assert isinstance(live.engine, CompiledEngine), live.engine_reason
    return {v: domain.format for v, domain in live.engine.coder.domains.items()}


def test_columns_keep_their_types_without_a_dictionary():
    live = vk.maintain("Q(d, t; sum(p), sum(f), sum(n)) = R(d, t, p, f, n)", engine="compiled")
    row = (date(2024, 2, 29), datetime(2024, 2, 29, 1), Decimal("1.10"), 0.5, 3)
    live.update("R", row)
    live.update("R", (*row[:2], Decimal("2.20"), 0.25, None))
    assert dict(live.enumerate()) == {row[:2]: (Decimal("3.30"), 0.75, 3)}
    assert live.to_arrow().column_names[:2] == ["d", "t"]
    own = {"d": DAYS, "t": MICROSECONDS, "p": Decimals(2), "f": FLOATS, "n": INTEGERS}
    assert formats(live) == own
    assert isinstance(live.engine, CompiledEngine)
    assert not live.engine.coder.codes


def test_floats_that_are_deleted_leave_nothing():
    live = vk.maintain("Q(; sum(x)) = R(i, x)", engine="compiled")
    live.update_batch("R", [(i, 10.0**i) for i in range(-20, 20)])
    live.update("R", (99, 1e-9))
    live.update_batch("R", [(i, 10.0**i) for i in range(-20, 20)], [-1] * 40)
    assert live.value() == (1e-9,)
    assert isinstance(live.engine, CompiledEngine)


def test_sums_of_decimals_beyond_128_bits_are_told():
    live = vk.maintain("Q(; sum(x * y)) = R(i, x) * S(y)", engine="compiled")
    largest = Decimal(2**61)
    live.load({"R": [(i, largest) for i in range(3)], "S": [(largest,)]})
    live.update("S", (largest,), 99)
    assert live.value() == (Decimal(2**122 * 300),)
    assert isinstance(live.engine, CompiledEngine)
    assert live.engine.coder.wider == 1, "more words take over before anything wraps"


def test_infinities_are_refused_and_change_nothing():
    live = vk.maintain("Q(; sum(x)) = R(x)", engine="compiled")
    live.update_batch("R", pa.table({"x": [0.5, 0.25]}))
    for table in (pa.table({"x": [1.0, float("inf")]}), [(1.0,), (float("-inf"),)]):
        with pytest.raises(vk.QueryError, match="not a finite number"):
            live.update_batch("R", table)
    assert live.value() == (0.75,)
    assert isinstance(live.engine, CompiledEngine)


def test_values_of_another_type_change_the_codes_of_all():
    live = vk.maintain("Q(k; count()) = R(k)", engine="compiled")
    for key in (Decimal("1.5"), Decimal("0.125"), 2, None, 1.5, "text", Decimal("1.5")):
        live.update("R", (key,))
    expected = {(Decimal("1.5"),): (3,), (Decimal("0.125"),): (1,), (2,): (1,)}
    assert dict(live.enumerate()) == expected | {(None,): (1,), ("text",): (1,)}
    assert isinstance(live.engine, CompiledEngine)
    assert live.lookup((1.5,)) == live.lookup((Decimal("1.50"),)) == (3,)
