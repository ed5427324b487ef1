"""Results in the forms that people hold, rows in the forms that they bring, copies and pickles."""

import copy
import pickle
import random
from datetime import date
from decimal import Decimal
from threading import Thread

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import viewkeep as vk
from tests.engine.engines import engine as engine

PATHS = "Q(a, c) = R(a, b) * S(b, c)"
SPENT = "Spent(name; sum(price), count()) = Lines(name, price)"


def filled(text: str = PATHS, **options: object) -> vk.Maintainer:
    live = vk.maintain(text, **options)
    live.load({"R": [(1, 2), (3, 2)], "S": [(2, "x"), (2, "y")]})
    return live


def test_a_result_is_read_in_every_form():
    live = filled()
    expected = sorted((*row, count) for row, count in live.enumerate())
    assert live.columns == ("a", "c", "count")
    assert sorted(live) == expected
    assert len(live) == 4
    frames = [live.to_arrow().to_pylist(), live.to_polars().to_dicts()]
    frames += [live.to_pandas().to_dict("records"), pl.DataFrame(live).to_dicts()]
    frames += [pa.table(live).to_pylist()]
    for rows in frames:
        assert sorted(tuple(row.values()) for row in rows) == expected
        assert list(rows[0]) == ["a", "c", "count"]
    assert duckdb.sql("select sum(count) from live").fetchall() == [(4,)]


def test_aggregates_are_columns_with_their_types():
    live = vk.maintain(SPENT)
    live.update_batch("Lines", [("Ada", Decimal("1.50")), ("Ada", Decimal("2.25"))])
    table = live.to_arrow()
    assert table.column_names == ["name", "sum(price)", "count()"]
    assert table.to_pylist() == [{"name": "Ada", "sum(price)": Decimal("3.75"), "count()": 2}]
    assert (list(live), len(live)) == ([("Ada", Decimal("3.75"), 2)], 1)


def test_an_empty_result_has_its_columns():
    live = vk.maintain(SPENT)
    assert live.to_arrow().column_names == list(live.to_pandas().columns) == list(live.columns)
    assert (live.to_arrow().num_rows, list(live), len(live), bool(live)) == (0, [], 0, True)


@pytest.mark.parametrize("text", ["Q() = R(a)", "Q(; sum(a), count()) = R(a)"])
def test_a_result_without_outputs_is_one_row(text):
    live = vk.maintain(text)
    for expected in ({}, {"R": [(5,)]}):
        live.load(expected)
        value = live.value()
        row = value if isinstance(value, tuple) else (value,)
        assert (list(live), len(live)) == ([row], 1)
        assert [tuple(each.values()) for each in live.to_arrow().to_pylist()] == [row]


def test_access_patterns_are_given_their_inputs():
    live = vk.maintain("Q(c | a) = R(a, b) * S(b, c)")
    live.load({"R": [(1, 2)], "S": [(2, 7)]})
    assert live.to_arrow(given={"a": 1}).to_pylist() == [{"c": 7, "count": 1}]
    with pytest.raises(vk.QueryError, match="needs its inputs"):
        len(live)
    assert "needs its inputs" in live._repr_html_()


def test_values_that_no_arrow_column_holds_are_refused_as_such():
    live = vk.maintain("Q(a) = R(a)")
    live.update_batch("R", [(1,), ("x",)])
    with pytest.raises(vk.SchemaError, match="no Arrow type holds"):
        live.to_arrow()


def test_notebooks_show_the_first_rows_and_no_markup_of_the_data():
    live = vk.maintain("Q(a) = R(a)")
    live.load({"R": [("<b>&",), (None,), *((f"v{i}",) for i in range(20))]})
    page = live._repr_html_()
    assert "<b>" not in page
    assert "and more rows" in page
    assert page.count("<tr>") == 11


def test_a_long_query_has_a_short_representation():
    live = vk.maintain("Q(a) = " + " * ".join(f"Relation{i}(a, b{i})" for i in range(30)))
    assert len(repr(live)) < 130


# --- rows that come in ----------------------------------------------------------------------------

ROWS = [(1, "x"), (2, "y"), (2, "y")]
FORMS = {
    "mappings": [{"b": b, "a": a, "more": 0} for a, b in ROWS],
    "a lazy frame": pl.LazyFrame(ROWS, schema=["a", "b"], orient="row").select("b", "a"),
    "a DuckDB relation": lambda: duckdb.sql(
        "select * from (values ('x', 1), ('y', 2), ('y', 2)) t(b, a)"
    ),
    "a structured array": np.array([(b, a) for a, b in ROWS], dtype=[("b", "U1"), ("a", "i8")]),
    "a record batch": pa.RecordBatch.from_pydict({"b": ["x", "y", "y"], "a": [1, 2, 2]}),
    "an array of objects": np.array(ROWS, dtype=object),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_in_every_form(form):
    for way in ("load", "update_batch"):
        live = vk.maintain("Q(a, b) = R(a, b)")
        rows = FORMS[form]() if callable(FORMS[form]) else FORMS[form]
        live.load({"R": rows}) if way == "load" else live.update_batch("R", rows)
        assert dict(live.enumerate()) == {(1, "x"): 1, (2, "y"): 2}


def test_single_rows_may_name_their_columns():
    live = vk.maintain("Q(a, b) = R(a, b)")
    for _ in range(3):
        live.update("R", {"b": 2, "a": 1})
    live.update("R", {"b": 2, "a": 1}, -1)
    assert dict(live.enumerate()) == {(1, 2): 2}
    for bad in ({"a": 1}, {"a": 1, "B": 2}, {}):
        with pytest.raises(vk.SchemaError, match="has no"):
            live.update("R", bad)
        with pytest.raises(vk.SchemaError, match="has no"):
            live.update_batch("R", [{"a": 5, "b": 6}, bad])
    assert dict(live.enumerate()) == {(1, 2): 2}


def test_a_lazy_frame_that_cannot_be_computed_is_refused():
    frame = pl.LazyFrame({"a": ["x"]}).select(pl.col("a").cast(pl.Int64))
    with pytest.raises(vk.SchemaError, match="polars cannot compute"):
        vk.maintain("Q(a) = R(a)").load({"R": frame})


# --- subscribers ----------------------------------------------------------------------------------


def test_a_subscriber_that_is_removed_hears_no_more():
    live, first, second = vk.maintain("Q(a) = R(a)"), [], []
    tokens = [live.subscribe(first.extend), live.subscribe(second.extend)]
    live.update("R", (1,))
    live.unsubscribe(tokens[0])
    live.update("R", (2,))
    live.unsubscribe(tokens[1])
    live.update("R", (3,))
    assert ([c.row for c in first], [c.row for c in second]) == ([(1,)], [(1,), (2,)])
    for token in (tokens[0], 99, None, "x"):
        with pytest.raises(vk.QueryError, match="is no token"):
            live.unsubscribe(token)
    assert sorted(live) == [(1, 1), (2, 1), (3, 1)]


# --- copies ---------------------------------------------------------------------------------------

QUERIES = {
    PATHS: {},
    "Q(b; sum(c), min(c), count()) = R(a, b) * S(b, c)": {},
    "Q() = R(a, b) * S(b, c) * T(c, a)": {"strategy": "epsilon"},
    "Q(a, b, c) = R(a, b) * S(b, c)": {"mode": "lazy", "static": ["S"]},
}


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("text", QUERIES)
def test_a_copy_goes_on_by_itself(text, duplicate):
    choose, options = random.Random(text), QUERIES[text]
    live = vk.maintain(text, **options)
    relations = live.query.relations
    rows = {r: [(choose.randrange(5), choose.randrange(5)) for _ in range(30)] for r in relations}
    live.load(rows)
    before = answer(live)
    twin, expected = duplicate(live), vk.maintain(text, strategy="recompute")
    expected.load(rows)
    assert (answer(twin), twin.options) == (before, live.options)
    for _ in range(20):
        relation = choose.choice([r for r in relations if r not in options.get("static", ())])
        row, count = choose.choice(rows[relation]), choose.choice([1, 2])
        for each in (twin, expected):
            each.update(relation, row, count)
    assert (answer(twin), answer(live)) == (answer(expected), before)


def answer(live: vk.Maintainer) -> object:
    return dict(live.enumerate()) if live.query.outputs else live.value()


def test_a_copy_of_what_does_not_fit_the_compiled_engine_is_a_copy():
    live = vk.maintain("Q(a; sum(b)) = R(a, b)")
    live.update_batch("R", [(1, 0.1), (1, 0.2), (2, 1e300)])
    assert dict(copy.deepcopy(live).enumerate()) == dict(live.enumerate())


def test_subscribers_are_not_copied():
    live, told = vk.maintain("Q(a) = R(a)"), []
    live.subscribe(told.extend)
    copy.deepcopy(live).update("R", (1,))
    assert told == []


def test_what_cannot_be_pickled_is_refused():
    from viewkeep.rings import REALS

    live = vk.maintain("Q(a) = R(a, b)", ring=REALS, lifts={"b": lambda b: b + 0.5})
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(vk.ViewkeepError, match="cannot copy or pickle <Maintainer of Q"):
            duplicate(live)


def test_threads_read_whole_states():
    """Every reading is of one state: the rows of a batch are there together or not at all."""
    live = vk.maintain("Q(a, b) = R(a, b)")
    seen: list[int] = []

    def read() -> None:
        for _ in range(30):
            seen.append(live.to_arrow().num_rows)
            seen.append(len(live))

    threads = [Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for start in range(30):
        live.update_batch("R", [(start, i) for i in range(7)])
    for thread in threads:
        thread.join()
    assert {each % 7 for each in seen} == {0}


def test_dates_are_dates_in_arrow():
    live = vk.maintain("Q(d) = R(d)")
    live.update("R", (date(2026, 1, 2),))
    assert live.to_arrow().schema.field("d").type == pa.date32()
