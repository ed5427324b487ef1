"""Window functions, QUALIFY and LIMIT in SQL: the trees they become, and what is refused."""

import pytest

from viewkeep.errors import QueryError
from viewkeep.query.tables import Table
from viewkeep.sql import parse_view

TABLES = {"t": Table({"id": "int", "a": "int", "b": "int", "d": "date", "s": "string"}, key=["id"])}


def tree(sql: str) -> str:
    """The tree of a view, without its scan."""
    return str(parse_view(sql, TABLES))


def test_windows_over_groups_read_their_aggregates() -> None:
    found = tree("select a, sum(sum(b)) over (order by count(*) desc) as z from t group by a")
    assert "Window sum(sum_1) as window_1 over (order by count_2 desc)" in found
    assert "GroupBy t.a, sum(t.b) as sum_1, count() as count_2" in found


def test_named_windows_and_equal_functions_are_one_operator() -> None:
    found = tree(
        "select rank() over w as r, rank() over (partition by a order by b) + 1 as q from t "
        "window w as (partition by a order by b)"
    )
    assert found.count("Window ") == 1
    assert found.count("rank()") == 1


def test_qualify_may_use_names_of_the_select_list() -> None:
    found = tree("select id, row_number() over (partition by a order by b) n from t qualify n = 1")
    assert found.splitlines()[1].strip() == "Select window_1 = 1"


def test_a_limit_is_one_of_row_numbers_and_an_offset_a_selection() -> None:
    found = tree("select a as x, b from t order by x desc, 2 nulls last limit 5 offset 2")
    assert "Select row_number_of_top > 2" in found
    assert "over (order by t.a desc, t.b nulls last) limit 7" in found


def test_the_limit_of_a_union_orders_its_output() -> None:
    found = tree("select a from t union select b from t order by a limit 3")
    assert found.splitlines()[0] == "Project a"
    assert "over (order by a)" in found


def test_an_order_without_a_limit_means_nothing() -> None:
    assert tree("select a from t order by b") == tree("select a from t")


@pytest.mark.parametrize(
    ("sql", "frame"),
    [
        ("sum(b) over (order by d rows 3 preceding)", "rows between 3 preceding and current row"),
        (
            "sum(b) over (order by d range between interval 7 days preceding and current row)",
            "range between 7 preceding and current row",
        ),
        (
            "first_value(b) over (order by d)",
            "rows between unbounded preceding and current row",
        ),
    ],
)
def test_frames(sql: str, frame: str) -> None:
    assert frame in tree(f"select id, {sql} as z from t")


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("select id, rank() over (partition by a) z from t", "needs ORDER BY"),
        ("select id from t where rank() over (order by a) = 1", "outside the select list"),
        ("select id, sum(rank() over (order by a)) over () z from t", "outside the select list"),
        ("select id, sum(distinct a) over () z from t", "DISTINCT in a window"),
        ("select id, ntile(0) over (order by a) z from t", "positive integer"),
        ("select id, rank(a) over (order by a) z from t", "takes 0 arguments"),
        ("select id, rank() over w z from t", 'no window "w"'),
        (
            "select sum(b) over (order by a rows between 1 following and 1 preceding) z from t",
            "ends before it starts",
        ),
        (
            "select sum(b) over (order by s range 1 preceding) z from t",
            "a frame of this distance",
        ),
        ("select a from t order by 3 limit 1", "the select list has 1 columns"),
        ("select a from t limit a", "not a number"),
    ],
)
def test_refusals_name_the_problem_and_its_place(sql: str, problem: str) -> None:
    with pytest.raises(QueryError, match=problem) as error:
        parse_view(sql, TABLES)
    assert "line 1" in str(error.value)
