"""Every bad query is refused with its reason, at the right place, and never with a stack trace."""

import random

import pytest

from tests.sql.database import TABLES
from tests.sql.test_against_duckdb import QUERIES
from viewkeep.errors import ParseError, QueryError, UnsupportedError, ViewkeepError
from viewkeep.sql.conjunctive import from_sql
from viewkeep.sql.parse import parse_view

# The place of each error is marked with ^ in the text, just before the character it points at.
WRONG = {
    "select ^prize from parts": (
        'column "prize" is not in parts (pid, price); did you mean "price"?'
    ),
    "select ^p.prize from parts p": 'column "prize" is not in p (pid, price); did you mean',
    "select ^x.price from parts p": 'no table "x" in FROM (p)',
    "select a from r where exists (select ^z from t)": 'column "z" is not in t (b, c, d)',
    "select ^q.* from r": 'no table "q" in FROM (r)',
    "select price from ^prts": 'did you mean "parts"?',
    "select a\nfrom r,\n  ^ranges": 'unknown table "ranges"',
    "select ^b from r, t": 'column "b" is ambiguous (r.b, t.b); name its table',
    "select r.a from r join t using (^z)": 'column "z" is not in r (a, b, s)',
    "select * from r, ^r": 'two tables in FROM are called "r"',
    "select a as x, ^b as x from r": 'two output columns are called "x"; give one an alias',
    "select ^b from (select * from r join t on r.b = t.b) q": (
        'column "b" is ambiguous (q.b, q.b); give one an alias'
    ),
    "select distinct r.b, t.b from r, t order by ^b limit 2": 'column "b" is ambiguous',
    "select a from r where a in (select b from t where c in (select x from u where ^r.b = 1))": (
        'column "b" is more than one query further out: Spark SQL reads the columns of the next'
    ),
    "select a from r where (^a, b) = (1, 2, 3)": "rows that are compared have as many values each",
    "select a from r where (^a, b) = (1, 'x')": "the values must fit together, but found int, str",
    "select a from r order by a limit ^1 - 2": "a LIMIT or OFFSET must not be less than 0",
    "select ^stack(2, a, s) from r": "stack(): a column must have one type, but found int, string",
    "select r.b, t.b from r, t order by ^b limit 2": 'column "b" is ambiguous (r.b, t.b)',
    "select q.b from r, lateral (select t.b, ^r.b from t) q": 'two output columns are called "b"',
    "select ^distinct on (a) a from r": "DISTINCT ON is no Spark SQL: QUALIFY",
    "select ^b * d from t": '"*": both sides must be numbers, but found int, date',
    "select a from r where ^a": "a condition must be boolean, but this is int",
    "select b from t where ^d = 1": "the types must fit together, but found date, int",
    "select c from t where ^d > 'soon'": "'soon' is not a date",
    "select ^date '2024-13-01' as d from r": "'2024-13-01' is not a date",
    "select ^coalesce(b, d) as z from t": "coalesce: the types must fit together",
    "select case b when ^d then 1 end as z from t": "found int, date",
    "select ^sum(d) from t": "sum: the arguments must be numbers, but found date",
    "select ^upper(a, b) from r": "upper() takes 1 argument, but here it has 2",
    "select ^sum(a, b) from r": "sum() takes 1 argument",
    "select ^count() from r": "count() takes 1 argument",
    "select ^uper(s) from r": 'unknown function uper(); did you mean "upper"?',
    "select cast(a as ^itn) from r": 'unknown type "itn"; did you mean "int"?',
    "select ^cast(d as int) as n from t": "cannot cast date to int",
    "select a, ^b from r group by a": 'column "b" must be in GROUP BY or inside an aggregate',
    "select ^* from r group by a": 'column "b" must be in GROUP BY',
    "select a from r where ^sum(a) > 1": "aggregate sum() is not allowed here",
    "select sum(^sum(a)) from r": "aggregate sum() is not allowed here",
    "select a from r group by ^3": "GROUP BY 3: the select list has 1 columns",
    "select a, sum(b) from r group by 1, ^2": "GROUP BY 2 is an aggregate",
    "select a from r where ^a in (select b, c from t)": "IN compares 1 values with a subquery of 2",
    "select a from r union select ^b, c from t": "the sides have 1 and 2 columns",
    "select b from t union select ^d from t": "int on one side, date on the other",
    "with q as (select * from ^q) select * from q": "cyclic common table expression: q -> q",
    "with q as (select * from ^w), w as (select * from q) select * from q": (
        "cyclic common table expression: w -> q -> w"
    ),
    "with q as (select * from ^w), w as (select a from r) select * from q": (
        'common table "w" is used before it is defined'
    ),
    "with q(x, y) as (select a from r) select * from ^q": "q has 1 columns, but 2 names for them",
    "select a b ^c from r": 'unexpected "c"',
    "selec a ^from r": 'unexpected "from"',
    "select a from r ^where": "this Where is incomplete",
    "select ^'abc from r": "text in quotes or a comment does not end",
    "select a from r; ^select b from t": "a second statement starts here",
    "select a from r; ^drop table r": "a second statement starts here",
    "with q as (select ^nosuch from r) select a from r": 'column "nosuch" is not in r',
    "select a from r where a in (with q as (select ^nosuch from t) select b from t)": "nosuch",
    "with q as (select a from r), ^q as (select b from t) select * from q": (
        'two common tables are called "q"'
    ),
    "select a + 1 as x from r where ^x > 1": "alias of the select list, which WHERE comes before",
    "select ^percentil(a) from r": 'unknown function percentil(); did you mean "percentile"?',
    "select * from values (1, 2), (^3)": "a row of VALUES has 1 values, the first one 2",
    "values (^1), (date '2024-01-01')": "column 1 of VALUES has int and date",
    "select ^explode(a) from r": "explode() takes an array or a map, not int",
    "select ^explode(array(a), 1) from r": "explode() takes 1 argument",
    "select explode(array(a)), ^explode(array(a)) from r": "one explode() at most",
    "select ^posexplode(array(a)) as x from r": "posexplode() has 2 columns, but 1 names for them",
    "select ^a.x from r": 'no table "a" in FROM',
    "^": "there is no query",
    "^drop table r": "a view is a SELECT query",
    "\n  ^delete from parts": "a view is a SELECT query",
}

REFUSED = {
    "select a from r where a >= ^all (select d from t)": "no Spark SQL (write NOT EXISTS)",
    "select a from r where a > ^any (select d from t)": "no Spark SQL (write EXISTS or IN)",
    "select ^rand() from r": "the non-deterministic function rand()",
    "select a from r where b > ^rand()": "the non-deterministic function rand()",
    "select a, ^current_timestamp from r": "the non-deterministic function current_timestamp()",
    "select a, ^current_date() as d from r": "the non-deterministic function current_date()",
    "select ^uuid() as u from r": "the non-deterministic function uuid()",
    "select c as current_date from t where d > ^current_date": "function current_date()",
    "select ^user from r": "the non-deterministic function user()",
    "select ^localtimestamp from r": "the non-deterministic function localtimestamp()",
    "select ^unix_timestamp() as x from t": "the non-deterministic function unix_timestamp()",
    "select ^unix_timestamp(s, 'yyyy') as x from r": "the function unix_timestamp()",
    "select ^percentile_approx(a, 0.5) from r": "the function percentile_approx()",
    "select ^percentile_approx(a, 0.5) over () as x from r": "percentile_approx() in a window",
    "select ^mode(a) over () as x from r": "mode() in a window",
    "with recursive ^q as (select a from r) select * from q": "a recursive common table",
    "select * from r, lateral ^stack(a, b) q": "stack() without a number of rows and values",
    "select * from r ^lateral view json_tuple(s, 'a') v as y": "LATERAL",
    "select ^datediff(day, s, s) from r": "TIMESTAMPDIFF of string",
    "select explode(array(a)) from r limit ^3": "LIMIT beside explode() in the select list",
    "select * from ^sql_keywords()": "a table function (sql_keywords)",
    "select * from ^r tablesample (10 percent)": "TABLESAMPLE",
    "select * from r join ^t on true pivot (sum(a) for c in (1, 2))": "PIVOT after a join",
    "select * from ^r version as of 3": "time travel",
    "select ^histogram_numeric(a, 2) from r": "the function histogram_numeric()",
    "select * from r asof join ^t on r.b = t.b": "ASOF JOIN",
    "select ^d + interval '1' hour as x from t": "adding an interval of HOUR to a date",
    "select a from r where a = ^?": "a parameter",
    "select a from r where a = ^:x": "a parameter",
    "select a from r where a = ^${x}": "a parameter",
    "select a from r where a = ^{x}": "a parameter",
    "with q as (^delete from r where a = 1) select a from r": "DELETE",
    "with q as (^insert into r select * from r) select a from r": "INSERT",
    "with q as (select a from r where ^rand() > 1) select a from r": "function rand()",
    "select a from r where exists (with q as (select ^rand() from t) select 1 from t)": "rand()",
    "select * from r^@v1": "time travel",
    "select * from ^r timestamp as of '2024-01-01'": "time travel",
    "select a from r ^|> where a > 1": "the pipe |>",
    "select a from r where ^a between symmetric 1 and 2": "BETWEEN SYMMETRIC",
    "select a into ^z from r": "SELECT INTO",
    "select a from r ^union by name select b as a from t": "UNION BY NAME",
    "select ^transform(array(a), x -> x + 1) from r": "the function transform()",
    "select cast(a as ^array<int>) from r": "the type array<int>",
    "select a from r where ^s like any (select s from r)": "LIKE ANY or ALL",
    "select a from r where ^s like s escape '!'": "LIKE with ESCAPE",
    "select ^position('x', s, 2) as z from r": "POSITION from a given place",
    "select a from r where exists (select sum(^r.b) from t group by c)": (
        "a column of the outer query outside the WHERE of a plain subquery"
    ),
    "select r.a from r join t on r.a > (select ^max(x) from u where u.c = t.c)": (
        "a subquery that reads this of the query around it"
    ),
    "select a from r where (^a, b) not in (select b, c from t) or a = 1": (
        "NOT IN of several values that may be NULL outside a conjunction"
    ),
}


def _split(marked: str) -> tuple[str, int]:
    position = marked.index("^")
    return marked[:position] + marked[position + 1 :], position


@pytest.mark.parametrize("marked", WRONG)
def test_wrong_queries(marked: str) -> None:
    sql, position = _split(marked)
    with pytest.raises(ParseError) as error:
        parse_view(sql, TABLES)
    assert WRONG[marked] in error.value.problem
    assert error.value.position == position, str(error.value)
    assert not isinstance(error.value, UnsupportedError)


@pytest.mark.parametrize("marked", REFUSED)
def test_refused_constructs(marked: str) -> None:
    sql, position = _split(marked)
    with pytest.raises(UnsupportedError) as error:
        parse_view(sql, TABLES)
    assert REFUSED[marked] in error.value.problem
    assert error.value.position == position, str(error.value)


def test_syntax_errors_point_at_the_place() -> None:
    with pytest.raises(ParseError) as error:
        parse_view("select a\nfrom r\nwhere a = = 1", TABLES)
    assert error.value.line == 3


@pytest.mark.parametrize(
    "sql",
    [
        "select " + "(" * 3000 + "a" + ")" * 3000 + " as z from r",
        "select " + "a + " * 3000 + "a as z from r",
    ],
    ids=["brackets", "sum"],
)
def test_deep_nesting_is_an_error_not_a_crash(sql: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_view(sql, TABLES)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_queries_never_crash(seed: int) -> None:
    """Truncated, spliced and garbled queries give a ViewkeepError or a view, nothing else."""
    rng = random.Random(seed)
    words = [word for query in QUERIES for word in query.split(" ")]
    for _ in range(40):
        tokens = rng.choice(QUERIES).split(" ")
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(tokens))
            match rng.randrange(4):
                case 0:
                    tokens[place:] = tokens[place + 1 :]
                case 1:
                    tokens[place] = rng.choice(words)
                case 2:
                    tokens.insert(place, rng.choice(words))
                case _:
                    tokens[place] = tokens[place][: rng.randint(0, 3)]
            tokens = tokens or ["select"]
        sql = " ".join(tokens)[: rng.choice([None, rng.randint(1, 200)])]
        try:
            from_sql(sql, TABLES)
        except ViewkeepError:
            continue
