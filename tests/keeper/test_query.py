"""Queries over tables and views: the rows of SQL, in its order, and nothing is changed."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import viewkeep as vk
from tests.cli.lakes import done, viewkeep

ROWS = [(1, "hinge", Decimal("1.50")), (2, None, Decimal("2.25")), (3, "<nut>", Decimal("0.10"))]


@pytest.fixture
def keeper(tmp_path: Path) -> vk.Keeper:
    keeper = vk.Keeper(tmp_path / "lake")
    columns = {"pid": "int", "name": "string", "price": "decimal(10,2)"}
    keeper.create_table("parts", columns, key=["pid"], rows=ROWS)
    keeper.create_view("dear", "SELECT pid, price FROM parts WHERE price > 1")
    return keeper


def answer(keeper: vk.Keeper, sql: str, limit: int | None = None) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in keeper.query(sql, limit).to_pylist()]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT pid FROM parts ORDER BY price DESC", [(2,), (1,), (3,)]),
        ("SELECT pid FROM parts ORDER BY name", [(2,), (3,), (1,)]),  # NULL first, as in Spark
        ("SELECT pid FROM parts ORDER BY name DESC NULLS FIRST", [(2,), (1,), (3,)]),
        ("SELECT pid, price FROM parts ORDER BY 2 LIMIT 1 OFFSET 1", [(1, Decimal("1.50"))]),
        ("SELECT DISTINCT price > 1 AS dear FROM parts ORDER BY dear", [(False,), (True,)]),
        ("SELECT pid FROM dear UNION ALL SELECT 9 AS pid ORDER BY pid DESC", [(9,), (2,), (1,)]),
        ("SELECT count(*), sum(price) FROM dear", [(2, Decimal("3.75"))]),
        ("SELECT count(*) FROM dear GROUP BY pid ORDER BY pid + 1 DESC", [(1,), (1,)]),
        ("WITH d AS (SELECT * FROM dear) SELECT d.pid FROM d JOIN parts p ON p.pid = d.pid "
         "ORDER BY p.name", [(2,), (1,)]),
        ("SELECT 1 AS one", [(1,)]),
        ("SELECT pid FROM parts WHERE pid > 9 ORDER BY pid", []),
    ],
)  # fmt: skip
def test_rows_come_in_the_order_of_the_query(
    keeper: vk.Keeper, sql: str, rows: list[tuple[object, ...]]
) -> None:
    assert answer(keeper, sql) == rows


def test_the_clock_is_now(keeper: vk.Keeper) -> None:
    [(today,)] = answer(keeper, "SELECT current_date() AS d")
    assert isinstance(today, date)


def test_a_limit_cuts_after_the_order(keeper: vk.Keeper) -> None:
    assert answer(keeper, "SELECT pid FROM parts ORDER BY price DESC", 2) == [(2,), (1,)]
    assert len(answer(keeper, "SELECT pid FROM parts", 2)) == 2
    with pytest.raises(vk.ViewkeepError, match="limit=-1"):
        keeper.query("SELECT pid FROM parts", -1)


def test_orders_of_random_rows_are_those_of_python(tmp_path: Path) -> None:
    keeper, random = vk.Keeper(tmp_path / "random"), Random(7)
    rows = [(i, random.choice([None, 1, 2, 3]), random.randint(0, 5)) for i in range(200)]
    keeper.create_table("t", {"id": "int", "a": "int", "b": "int"}, key=["id"], rows=rows)
    for a, b, id_ in ((1, -1, 1), (-1, 1, -1), (-1, -1, 1)):
        words = [" DESC" if sign < 0 else "" for sign in (a, b, id_)]
        sql = "SELECT id FROM t ORDER BY a{}, b{}, id{}".format(*words)

        def key(row: tuple[int, int | None, int], signs: tuple[int, ...] = (a, b, id_)) -> object:
            first = -1 if row[1] is None else row[1]  # NULL first, or last where it descends
            return (signs[0] * first, signs[1] * row[2], signs[2] * row[0])

        assert [row[0] for row in answer(keeper, sql)] == [row[0] for row in sorted(rows, key=key)]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE parts",
        "INSERT INTO parts VALUES (9, 'x', 1)",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM parts; DROP TABLE parts",
        "COPY parts TO '/tmp/x'",
        "ATTACH '/tmp/x' AS y",
        "SELECT getenv('HOME')",
    ],
)
def test_nothing_but_a_query_over_the_lake_is_run(keeper: vk.Keeper, sql: str) -> None:
    before = keeper.version("parts")
    with pytest.raises(vk.ViewkeepError):
        keeper.query(sql)
    assert keeper.version("parts") == before


# --- the commands ---------------------------------------------------------------------------------


@pytest.fixture
def lake(keeper: vk.Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIEWKEEP_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.usefixtures("lake")
def test_rows_for_people() -> None:
    assert done("query", "SELECT pid, name FROM parts ORDER BY pid").out.splitlines() == [
        "pid  name",
        "  1  hinge",
        "  2  NULL",
        "  3  <nut>",
        "",
        "3 rows",
    ]
    first = done("read", "parts", "--limit", "2").out
    assert first.endswith("the first 2 rows; --limit 0 shows all\n")
    assert "no rows" in done("query", "SELECT pid FROM parts WHERE pid > 9").out


@pytest.mark.usefixtures("lake")
def test_rows_for_programs() -> None:
    document = done("read", "dear", "--json").json
    assert document["rows"] == [{"pid": 1, "price": "1.50"}, {"pid": 2, "price": "2.25"}]
    assert (list(document["columns"]), document["more"]) == (["pid", "price"], False)
    assert done("query", "SELECT pid FROM parts ORDER BY 1", "--json", "--limit", "1").json["more"]
    assert done("query", "SELECT name, pid FROM parts ORDER BY pid", "--csv").out == (
        "name,pid\nhinge,1\n,2\n<nut>,3\n"
    )


@pytest.mark.usefixtures("lake")
def test_an_older_version_is_read(keeper: vk.Keeper) -> None:
    keeper.apply("parts", deletes=[(1,)])
    assert len(done("read", "parts", "--json").json["rows"]) == 2
    assert len(done("read", "parts", "--version", "0", "--json").json["rows"]) == 3


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (("read", "part"), 'there is no table or view "part"'),
        (("read", "parts", "--version", "9"), 'has no version 9'),
        (("query", "SELECT nope FROM parts"), 'column "nope" is not in parts'),
        (("query", "SELECT 1 AS a", "--json", "--csv"), "give --json or --csv, not both"),
    ],
)  # fmt: skip
def test_mistakes_are_told(command: tuple[str, ...], problem: str) -> None:
    answer = viewkeep(*command)
    assert answer.code == 2
    assert problem in answer.err


@pytest.mark.usefixtures("lake")
def test_shells_complete_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_VIEWKEEP_COMPLETE", "complete_bash")
    monkeypatch.setattr("sys.argv", ["viewkeep"])
    for words, names in (("viewkeep read ", ["dear", "parts"]), ("viewkeep history ", ["dear"])):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", "2")
        assert viewkeep().out.split() == names


# --- on Spark -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("keeper")
def test_spark_gives_the_same_rows_in_the_same_order(spark: SparkSession, tmp_path: Path) -> None:
    keeper = vk.Keeper(tmp_path / "lake", spark)
    for sql in (
        "SELECT pid, name, price FROM parts ORDER BY name, pid DESC",
        "SELECT DISTINCT price > 1 AS dear FROM parts ORDER BY dear DESC",
        "SELECT count(*), sum(price) FROM dear",
    ):
        tables = [keeper.query(sql, backend=each) for each in ("spark", "duckdb")]
        assert tables[0].to_pylist() == tables[1].to_pylist()
        assert tables[0].schema.equals(tables[1].schema)
    assert keeper.query("SELECT pid FROM parts ORDER BY pid DESC", 1, "spark").num_rows == 1


@pytest.mark.usefixtures("keeper")
def test_what_only_spark_reads_is_answered_there(spark: SparkSession, tmp_path: Path) -> None:
    rows_of_json = "LATERAL VIEW json_tuple('{}', 'a') t AS x"
    sql = f"SELECT pid, x FROM parts {rows_of_json} ORDER BY pid DESC"
    rows = vk.Keeper(tmp_path / "lake", spark).query(sql).to_pylist()
    assert [row["pid"] for row in rows] == [3, 2, 1]
    with pytest.raises(vk.ViewkeepError, match="Spark"):
        vk.Keeper(tmp_path / "lake").query(sql)


ENDLESS = "SELECT sum(x.i * y.i * z.i % 7) AS total FROM many x CROSS JOIN many y CROSS JOIN many z"


@pytest.mark.parametrize("backend", ["duckdb", "spark"])
def test_a_query_that_takes_too_long_is_ended(
    tmp_path: Path, request: pytest.FixtureRequest, backend: str
) -> None:
    spark = request.getfixturevalue("spark") if backend == "spark" else None
    keeper = vk.Keeper(tmp_path / "lake", spark)
    keeper.create_table("many", {"i": "int"}, key=["i"], rows=[(i,) for i in range(20_000)])
    with pytest.raises(vk.ViewkeepError, match=r"longer than 0\.5 s, its time limit, and was"):
        keeper.query(ENDLESS, backend=backend, timeout=0.5)
    counted = keeper.query("SELECT count(*) AS n FROM many", backend=backend, timeout=60)
    assert counted.to_pylist() == [{"n": 20_000}], "the next one runs"
    with pytest.raises(vk.ViewkeepError, match=r"timeout=0: expected a number of seconds above 0"):
        keeper.query("SELECT 1 AS one", timeout=0)
