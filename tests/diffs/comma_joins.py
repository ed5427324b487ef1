"""Random SQL with comma joins, as people write it: tables in any order, conditions in WHERE."""

from itertools import count, pairwise

from hypothesis import strategies as st

COLUMNS = {"r": ["a", "b", "c"], "s": ["a", "d", "e"], "t": ["d", "f"]}
"""Whole numbers of the tables of `test_random_views`."""

AGGREGATES = ["sum", "min", "max", "count", "avg"]


@st.composite
def comma_joins(draw: st.DrawFn, depth: int = 1, fallible: bool = False) -> str:
    """A view over two to four tables or subqueries, with conditions that mostly tie them; if
    `fallible`, some fail for some rows."""
    names = count(1)
    items, columns = [], list[str]()
    for _ in range(draw(st.integers(2, 4))):
        alias = f"x{depth}{next(names)}"
        if depth and draw(st.integers(0, 4)) == 0:
            items.append((f"({draw(comma_joins(depth - 1, fallible))}) {alias}", f"{alias}.k"))
        else:
            table = draw(st.sampled_from(list(COLUMNS)))
            own = draw(st.sampled_from(COLUMNS[table]))
            items.append((f"{table} {alias}", f"{alias}.{own}"))
        columns.append(items[-1][1])
    joined = items[0][0]
    for item, column in items[1:]:
        kind = draw(st.sampled_from([",", ",", ",", "left join", "full join", "join"]))
        if kind == ",":
            joined += f", {item}"
        else:
            # The table before may be a comma away: then ON must not read it.
            joined += f" {kind} {item} on {columns[columns.index(column) - 1]} = {column}"
    where = draw(_condition(columns, fallible))
    return draw(_shaped(joined, where, columns))


@st.composite
def _condition(draw: st.DrawFn, columns: list[str], fallible: bool) -> str:
    """Ties between neighbours, filters, and disjunctions with a common part."""
    ties = [f"{a} = {b}" for a, b in pairwise(columns)]
    parts = draw(st.lists(st.sampled_from(ties), unique=True, max_size=3))
    parts += draw(st.lists(_filter(columns, fallible), max_size=3))
    if draw(st.booleans()):
        tie, filters = draw(st.sampled_from(ties)), _filter(columns, fallible, inside=True)
        parts.append(f"({tie} and {draw(filters)} or {tie} and {draw(filters)})")
    return " and ".join(draw(st.permutations(parts))) or "true"


@st.composite
def _filter(draw: st.DrawFn, columns: list[str], fallible: bool, inside: bool = False) -> str:
    """A condition on one or two columns; `inside` a disjunction there are no subqueries."""
    one, other = draw(st.sampled_from(columns)), draw(st.sampled_from(columns))
    number = draw(st.integers(0, 3))
    choices = [
        f"{one} = {number}",
        f"{one} <> {other}",
        f"{one} is null",
        f"{one} is not null",
        f"{one} in ({number}, 1)",
        f"coalesce({one}, 0) = {number}",
        f"not ({one} = {number} and {other} = 1)",
        f"({one} = 1 and {other} = 2 or {one} = {number} and {other} = 1)",
    ]
    if not inside:
        choices.append(f"exists (select 1 from t y where y.d = {one} and y.f > {number})")
        choices.append(f"{one} not in (select e from s)")
    if fallible:
        choices.append(f"6 / {one} > {number}")
    return draw(st.sampled_from([*choices, *choices, *choices, "1 = 0"]))


@st.composite
def _shaped(draw: st.DrawFn, joined: str, where: str, columns: list[str]) -> str:
    """Plain, distinct or grouped rows; the first column is called k."""
    key, value = draw(st.sampled_from(columns)), draw(st.sampled_from(columns))
    rest = f"from {joined} where {where}"
    function = draw(st.sampled_from(AGGREGATES))
    return draw(
        st.sampled_from(
            [
                f"select {key} as k, {value} as v {rest}",
                f"select distinct {key} as k {rest}",
                f"select {key} as k, {function}({value}) as v, count(*) as n {rest} group by {key}",
                f"select {key} as k {rest} group by {key} having count({value}) > 1 and {key} > 0",
                f"select {function}({value}) as k {rest}",
            ]
        )
    )
