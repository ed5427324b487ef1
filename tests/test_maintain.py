"""The public interface: what it accepts, and that a refusal says why and changes nothing."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy
import pandas
import pyarrow
import pytest

import viewkeep as vk
from tests.engine.engines import engine as engine
from tests.engine.streams import WAYS, Database, assert_equals_recomputation
from viewkeep.rings import BOOLEAN, MAX, MIN

ids = {"ids": lambda way: "-".join(way.values())}

NAN, UNHASHABLE = float("nan"), [1]


def loaded(text="Q(a, c) = R(a, b) * S(b, c)", **options):
    live = vk.maintain(text, **options)
    live.load({"R": [(1, 2), (3, 2)], "S": [(2, 5), (2, 6)]})
    return live


# --- bad rows -------------------------------------------------------------------------------------

BAD_UPDATES = {
    "wrong arity": ("R", (1, 2, 3), 1, "does not fit R(a, b)"),
    "no tuple": ("R", "ab", 1, "expected a tuple of 2 values"),
    "unknown relation": ("R2", (1, 2), 1, 'did you mean "R"'),
    "far from any relation": ("Orders", (1, 2), 1, 'no relation "Orders" (R, S)'),
    "unhashable value": ("R", (1, UNHASHABLE), 1, "cannot be hashed"),
    "NaN": ("R", (1, NAN), 1, "nan, which is equal to nothing"),
    "decimal NaN": ("R", (1, Decimal("NaN")), 1, "equal to nothing"),
    "signalling NaN": ("R", (1, Decimal("sNaN")), 1, "cannot be hashed"),
    "missing value of pandas": ("R", (1, pandas.NA), 1, "cannot be hashed and compared"),
    "fraction of a row": ("R", (1, 2), 0.5, "0.5 is not a whole number"),
    "whole float": ("R", (1, 2), 1.0, "1.0 is not a whole number"),
    "no multiplicity": ("R", (1, 2), None, "None is not a whole number"),
    "truth as multiplicity": ("R", (1, 2), True, "True is not a whole number"),
}


@pytest.mark.parametrize("way", WAYS, **ids)
@pytest.mark.parametrize("problem", BAD_UPDATES)
def test_a_bad_row_is_refused_and_nothing_has_changed(way, problem):
    relation, row, multiplicity, message = BAD_UPDATES[problem]
    live = loaded(**way)
    before, sizes = dict(live.enumerate()), live.sizes()
    with pytest.raises(vk.ViewkeepError) as single:
        live.update(relation, row, multiplicity)
    with pytest.raises(vk.ViewkeepError) as batch:
        live.update_batch(relation, [(7, 2), (1, 2), row], [1, -1, multiplicity])
    for caught in (single, batch):
        assert message in str(caught.value)
    if multiplicity == 1 and type(multiplicity) is int:
        with pytest.raises(vk.ViewkeepError):
            live.load({"S": [(2, 9)], relation: [(8, 8), row]})
    assert dict(live.enumerate()) == before
    assert live.sizes() == sizes
    live.update("R", (1, 2), -1)  # and it still works
    assert (1, 5) not in dict(live.enumerate())


def test_a_bad_first_load_leaves_an_empty_maintainer():
    live = vk.maintain("Q(a; sum(b)) = R(a, b)")
    with pytest.raises(vk.RingError, match="float with Decimal"):
        live.load({"R": [(1, 1.5), (1, Decimal(1))]})
    assert list(live.enumerate()) == []
    assert set(live.sizes().values()) == {0}
    live.load({"R": [(1, 1.5)]})
    assert list(live.enumerate()) == [((1,), (1.5,))]


@pytest.mark.parametrize(
    ("rows", "counts", "message"),
    [
        ([(1, 2), (1, 3)], [1], "2 rows, but 1 multiplicities"),
        ("ab", None, "expected rows, not str"),
        ({(1, 2): 1}, None, "expected rows, not dict"),
        (7, None, "expected rows, not int"),
        ([7], None, "row 7 does not fit"),
    ],
)
def test_batches_of_something_else_are_refused(rows, counts, message):
    live = loaded()
    before = dict(live.enumerate())
    with pytest.raises(vk.SchemaError, match=message):
        live.update_batch("R", rows, counts)
    assert dict(live.enumerate()) == before


def test_load_takes_relations_by_name():
    with pytest.raises(vk.SchemaError, match="rows by relation, not list"):
        vk.maintain("Q(a) = R(a)").load([(1,)])


def test_static_relations_refuse_updates_and_take_loads():
    live = loaded(static=["S"])
    before = dict(live.enumerate())
    for change in (lambda: live.update("S", (2, 7)), lambda: live.update_batch("S", [(2, 7)])):
        with pytest.raises(vk.SchemaError, match=r"S is declared static: give its rows to load"):
            change()
    assert dict(live.enumerate()) == before


def test_insert_only_refuses_deletes():
    live = loaded(insert_only=True)
    before = dict(live.enumerate())
    with pytest.raises(vk.SchemaError, match=r"cannot delete \(1, 2\) from R: inserts only"):
        live.update("R", (1, 2), -1)
    with pytest.raises(vk.SchemaError, match="inserts only"):
        live.update_batch("R", [(9, 2), (9, 2)], [2, -1])
    assert dict(live.enumerate()) == before


@pytest.mark.parametrize("ring", [BOOLEAN, MIN, MAX], ids=lambda ring: ring.name)
def test_a_ring_without_subtraction_refuses_deletes(ring):
    live = loaded(ring=ring)
    before = dict(live.enumerate())
    with pytest.raises(vk.SchemaError, match="no subtraction; declare insert_only=True"):
        live.update("R", (1, 2), -1)
    with pytest.raises(vk.SchemaError, match="no subtraction"):
        live.update_batch("R", [(9, 2), (1, 2)], [1, -1])
    assert dict(live.enumerate()) == before


# --- bad values for aggregates --------------------------------------------------------------------

NOT_NUMBERS = ["x", (1, 2), date(2020, 1, 1), float("inf"), Decimal("Infinity"), 1j]


@pytest.mark.parametrize("function", ["sum", "avg"])
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_not_a_finite_number_is_not_summed(function, value):
    live = vk.maintain(f"Q(a; {function}(b)) = R(a, b)")
    live.update("R", (1, 2))
    for change in (
        lambda: live.update("R", (1, value)),
        lambda: live.update_batch("R", [(1, 7), (1, value)]),
        lambda: live.load({"R": [(1, 7), (1, value)]}),
    ):
        with pytest.raises(vk.QueryError, match="query Q: b cannot be summed"):
            change()
    assert list(live.enumerate()) == [((1,), (2,))]


def test_a_constant_that_is_not_a_number_is_refused_at_once():
    with pytest.raises(vk.QueryError, match="'x' cannot be summed"):
        vk.maintain("Q(a; sum('x')) = R(a)")


@pytest.mark.parametrize("way", WAYS, **ids)
def test_numbers_that_do_not_go_together_are_refused_as_a_whole(way):
    """The refusal comes from the ring, after some maps have changed already."""
    query = vk.parse("Q(a; sum(b), count()) = R(a, b) * S(b) * T(a)")
    live, database = vk.maintain(query, **way), Database()
    start = [("R", (1, 1.5), 2), ("S", (1.5,), 1), ("S", (Decimal(7),), 1), ("T", (1,), 1)]
    for update in start:
        live.update(*update)
    database.apply(start)
    assert_equals_recomputation(live, query, database)
    live.update("T", (2,))
    database.apply([("T", (2,), 1)])
    bad = ("R", (1, Decimal(7)), 1)
    if way["mode"] == "eager" and way["strategy"] != "recompute":
        with pytest.raises(vk.RingError, match="cannot combine"):
            live.update_batch("R", [(2, 1.5), bad[1]])
    else:  # nothing is summed before it is read; what was put off can be taken back
        live.update(*bad)
        for _ in range(2):
            with pytest.raises(vk.RingError, match="cannot combine"):
                list(live.enumerate())
        live.update("R", bad[1], -1)
    assert_equals_recomputation(live, query, database)
    live.update("R", (2, 1.5))
    assert_equals_recomputation(live, query, database.apply([("R", (2, 1.5), 1)]))


def test_conditions_that_cannot_be_computed_are_refused():
    live = vk.maintain("Q(a) = R(a, b) * [b > 3]")
    live.update("R", (1, 5))
    with pytest.raises(vk.QueryError, match="cannot compute b > 3"):
        live.update_batch("R", [(2, 5), (3, "x")])
    assert list(live.enumerate()) == [((1,), 1)]


def test_values_without_an_order_have_no_min():
    live = vk.maintain("Q(; min(b)) = R(b)")
    with pytest.raises(vk.RingError, match=r"cannot order .* no min and max"):
        live.update_batch("R", [("x",), (1,)])
    assert live.value() == (None,)
    live.update("R", ("x",))
    live.update_batch("R", [("x",), (1,)], [-1, 1])
    assert live.value() == (1,)
    semiring = vk.maintain("Q(; min(b)) = R(b)", insert_only=True)
    semiring.update("R", (1,))
    with pytest.raises(vk.RingError, match="cannot order"):
        semiring.update_batch("R", [(0,), ("x",)])
    assert semiring.value() == (1,)


# --- sums are exact -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, **ids)
def test_floats_that_are_deleted_leave_nothing_behind(way):
    live = vk.maintain("Q(a; sum(b), avg(b)) = R(a, b) * S(a)", **way)
    live.update("S", (1,))
    values = [0.1, 0.2, 0.3, 1e300, 1e-300, -7.7]
    for value in values:
        live.update("R", (1, value))
    for value in (1e300, 0.1, -7.7, 0.2, 1e-300):
        live.update("R", (1, value), -1)
    assert list(live.enumerate()) == [((1,), (0.3, 0.3))]
    live.update("R", (1, 0.3), -1)
    assert list(live.enumerate()) == []
    assert all(live.sizes()[each.name] == 0 for each in live.program.maps if 0 in each.atoms)


@pytest.mark.parametrize(
    ("values", "total", "kind"),
    [
        ([1, 2, True], 4, int),
        ([0.1, 0.2], 0.1 + 0.2, float),
        ([0.5, 1], 1.5, float),
        ([Decimal("1E+30"), Decimal("0.01"), 1], Decimal(f"1{'0' * 29}1.01"), Decimal),
        ([Fraction(1, 3), 1], Fraction(4, 3), Fraction),
        ([numpy.int64(2**62), numpy.int64(2**62 + 1)], 2**63 + 1, int),
        ([numpy.float32(0.5), 1.5], 2.0, float),
        ([1e308, 1e307, 8e307], float("inf"), float),
    ],
    ids=str,
)
def test_sums_are_of_the_kind_of_the_data(values, total, kind):
    live = vk.maintain("Q(; sum(b)) = R(b)")
    for value in values:
        live.update("R", (value,))
    (found,) = live.value()
    assert type(found) is kind
    assert found == total


# --- options and reading --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "viewtre"}, 'did you mean "viewtree"'),
        ({"strategy": None}, "expected one of auto"),
        ({"strategy": "epsilon", "output": "list"}, 'use output="factorized"'),
        ({"strategy": "epsilon", "ring": MIN}, "need a ring with subtraction"),
        ({"strategy": "epsilon", "epsilon": {"U": 0.5}}, 'epsilon of "U": nothing of that name'),
        ({"space": "tiny"}, "expected one of fast, linear"),
        ({"output": "table"}, "expected one of factorized, list"),
        ({"mode": "busy"}, "expected one of eager, lazy"),
        ({"engine": "steam"}, "expected one of auto, reference, compiled"),
        ({"epsilon": 2}, "between 0 and 1"),
        ({"epsilon": "half"}, "between 0 and 1"),
        ({"fds": "a -> b"}, "give a list"),
        ({"fds": ["a -> z"]}, 'no variable "z"'),
        ({"static": ["T"]}, 'no relation "T"'),
        ({"lifts": {"b": int}}, "lifts need a ring"),
        ({"ring": MIN, "lifts": {"z": int}}, 'no variable "z" to lift'),
    ],
    ids=str,
)
def test_options_that_do_not_exist_are_refused(options, message):
    with pytest.raises(vk.ViewkeepError) as caught:
        vk.maintain("Q(a) = R(a, b) * S(b)", **options)
    assert message in str(caught.value)


def test_aggregates_and_a_ring_exclude_each_other():
    with pytest.raises(vk.QueryError, match="either aggregates in the head or a ring"):
        vk.maintain("Q(a; sum(b)) = R(a, b)", ring=MIN)


@pytest.mark.parametrize("way", WAYS, **ids)
def test_inputs_must_be_given_and_known(way):
    live = vk.maintain("Q(c | a) = R(a, b) * S(b, c)", **way)
    for read in (live.enumerate, lambda given=None: live.lookup((1,), given)):
        with pytest.raises(vk.QueryError, match=r"needs its inputs: given=\{'a': ...\}"):
            read()
        with pytest.raises(vk.QueryError, match='has no input "A"'):
            read({"a": 1, "A": 1})
        with pytest.raises(vk.SchemaError, match="cannot be hashed"):
            read({"a": UNHASHABLE})
    with pytest.raises(vk.QueryError, match='has no input "a"'):
        vk.maintain("Q(a) = R(a)", **way).enumerate({"a": 1})


def test_value_is_for_queries_without_outputs():
    with pytest.raises(vk.QueryError, match=r"has outputs \(a, c\): use enumerate"):
        loaded().value()
    live = vk.maintain("Q(| a) = R(a, b)")
    live.update("R", (1, 2), 3)
    assert (live.value({"a": 1}), live.value({"a": 2})) == (3, 0)
    with pytest.raises(vk.QueryError, match="needs its inputs"):
        live.value()


@pytest.mark.parametrize("row", [(1,), (1, 2, 3), [1, 2], 1, (1, UNHASHABLE)], ids=repr)
def test_look_ups_of_what_is_no_output_tuple_are_refused(row):
    with pytest.raises(vk.SchemaError):
        loaded().lookup(row)


@pytest.mark.parametrize("way", WAYS, **ids)
def test_updates_end_an_enumeration(way):
    live = loaded(**way)
    running, waiting = live.enumerate(), live.enumerate()
    next(running)
    with pytest.raises(vk.SchemaError):
        live.update("R", (1,))
    next(running)  # a refused update is no update
    live.update("R", (1, 2), -1)
    for old in (running, waiting):
        with pytest.raises(vk.ViewkeepError, match="changed during an enumeration"):
            list(old)
    assert len(list(live.enumerate())) == 2


@pytest.mark.parametrize("way", WAYS, **ids)
def test_an_enumeration_that_has_not_begun_is_not_answered_from_old_data(way):
    live = vk.maintain("Q(a) = R(a)", **way)
    waiting = live.enumerate()
    live.update("R", (1,))
    with pytest.raises(vk.ViewkeepError, match="changed during an enumeration"):
        list(waiting)


# --- tables as rows -------------------------------------------------------------------------------

ARROW = pyarrow.table({"b": [2, 3], "a": [1, 1], "other": ["x", "y"]})
FRAME = pandas.DataFrame({"b": [2, 3], "a": [1, 1], "other": ["x", "y"]})


@pytest.mark.parametrize("table", [ARROW, FRAME], ids=["arrow", "pandas"])
def test_tables_are_read_by_column_name(table):
    live = vk.maintain("Q(a, b) = R(a, b)")
    live.load({"R": table})
    assert dict(live.enumerate()) == {(1, 2): 1, (1, 3): 1}
    live.update_batch("R", table, [-1, 1])
    assert dict(live.enumerate()) == {(1, 3): 2}


@pytest.mark.parametrize(
    "table",
    [
        pyarrow.table({"x": [1, 2], "y": [3, 4]}),
        pandas.DataFrame({"x": [1, 2], "y": [3, 4]}),
        pandas.DataFrame([[1, 3], [2, 4]]),
        pandas.DataFrame([[1, 3], [2, 4]], columns=["x", "x"]),
    ],
    ids=["arrow", "pandas", "numbered", "twice"],
)
def test_tables_with_other_names_are_read_by_position(table):
    live = vk.maintain("Q(a, b) = R(a, b)")
    live.load({"R": table})
    assert dict(live.enumerate()) == {(1, 3): 1, (2, 4): 1}


@pytest.mark.parametrize("kind", [pyarrow.table, pandas.DataFrame], ids=["arrow", "pandas"])
def test_an_atom_that_names_a_variable_twice_reads_by_position(kind):
    live = vk.maintain("Q(a) = R(a, a)")
    live.load({"R": kind({"a": [1, 2, 3], "b": [1, 0, 3]})})
    assert dict(live.enumerate()) == {(1,): 1, (3,): 1}
    with pytest.raises(vk.SchemaError, match="give 2 columns in this order"):
        live.load({"R": kind({"a": [1], "b": [1], "c": [1]})})


@pytest.mark.parametrize("kind", [pyarrow.table, pandas.DataFrame], ids=["arrow", "pandas"])
def test_a_column_that_is_missing_is_named(kind):
    live = vk.maintain("Q(price) = R(part, price)")
    with pytest.raises(vk.SchemaError, match=r'has part, but not price.*did you mean "prize"'):
        live.load({"R": kind({"part": [1], "prize": [2], "other": [3]})})


def test_values_of_frames_are_plain_python_values():
    live = vk.maintain("Q(a, b) = R(a, b)")
    live.load({"R": pandas.DataFrame({"a": [1], "b": [2.5]})})
    ((row, _),) = live.enumerate()
    assert [type(value) for value in row] == [int, float]


def test_missing_values_of_tables():
    live = vk.maintain("Q(a) = R(a)")
    live.load({"R": pyarrow.table({"a": [1, None]})})
    assert dict(live.enumerate()) == {(1,): 1, (None,): 1}
    for missing in (pandas.DataFrame({"a": [1, None]}), pandas.DataFrame({"a": [1, pandas.NA]})):
        with pytest.raises(vk.SchemaError, match=r"equal to nothing|cannot be hashed and compared"):
            live.load({"R": missing})
