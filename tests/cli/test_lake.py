"""Commands on lakes from arguments to exit code: tables, views, changes, refreshes, mistakes."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.cli.lakes import Answer, done, viewkeep, write

COST = """
SELECT u.did, sum(p.price) AS cost
FROM parts p JOIN uses u ON u.pid = p.pid GROUP BY u.did
"""
SCHEMA = """
CREATE TABLE parts (pid INT PRIMARY KEY, name STRING, price DECIMAL(10, 2) NOT NULL);
CREATE TABLE uses (did INT, pid INT REFERENCES parts, PRIMARY KEY (did, pid));
"""
PARTS = 'pid,name,price\n1,hinge,1.50\n2,,2.25\n3,"nut, small",0.10\n'
COMMANDS = (
    ("init",),
    ("apply",),
    ("refresh",),
    ("status",),
    ("history",),
    ("changes",),
    ("watch",),
    ("verify",),
    ("vacuum",),
    *(("table", each) for each in ("create", "register", "list", "drop")),
    *(("view", each) for each in ("create", "list", "show", "repair", "drop")),
)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables with rows, in a lake that the environment names."""
    path = tmp_path / "lake"
    monkeypatch.setenv("VIEWKEEP_LAKE", str(path))
    monkeypatch.setenv("COLUMNS", "100")
    done("init", path)
    done("table", "create", "--schema", write(tmp_path / "tables.sql", SCHEMA))
    done("apply", "parts", "--inserts", write(tmp_path / "parts.csv", PARTS))
    pq.write_table(uses([(1, 1), (1, 2), (2, 3)]), tmp_path / "uses.parquet")
    done("apply", "uses", "--inserts", tmp_path / "uses.parquet")
    return path


def uses(rows: list[tuple[int, int]]) -> pa.Table:
    did, pid = zip(*rows, strict=True)
    return pa.table({"did": pa.array(did, pa.int32()), "pid": pa.array(pid, pa.int32())})


def rows(lake: Path, name: str) -> list[dict[str, object]]:
    """The rows of a table or view as deltalake reads them, without hidden columns."""
    table = pa.table(DeltaTable(lake / name).to_pyarrow_table())
    shown = table.select([each for each in table.column_names if not each.startswith("#")])
    found = shown.to_pylist()
    return sorted(found, key=lambda row: [str(value) for value in row.values()])


def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(log: str, functions: object) -> None:
        raise AssertionError("Spark is started")

    monkeypatch.setattr("viewkeep.keeper.local_session", refuse)


# --- the whole way --------------------------------------------------------------------------------


def test_a_lake_from_init_to_fresh_views(lake: Path, tmp_path: Path) -> None:
    created = done("view", "create", "cost", write(tmp_path / "cost.sql", COST))
    assert created.out.startswith("cost: 2 rows, computed in ")
    assert "kept by strategy id (all tables have keys)" in created.out
    done("view", "create", "dear", "SELECT did FROM cost WHERE cost > 3", "--policy", "strict")
    assert [row["did"] for row in rows(lake, "dear")] == [1]

    prices = write(tmp_path / "prices.csv", "Price,PID\n5.00,3\n1.00,1\n")
    applied = done("apply", "parts", "--updates", prices)
    assert applied.out == "2 updates: parts is at version 2\n"
    assert done("status").out.count("2 behind") == 2
    assert viewkeep("status", "--check").code == 1

    refreshed = done("refresh", "--json").json["refreshes"]
    assert [(each["view"], each["strategy"]) for each in refreshed] == [
        ("cost", "id"),
        ("dear", "id"),
    ]
    assert refreshed[0]["changes"] == {"parts": 2}
    assert [(row["did"], str(row["cost"])) for row in rows(lake, "cost")] == [
        (1, "3.25"),
        (2, "5.00"),
    ]
    assert [row["did"] for row in rows(lake, "dear")] == [1, 2]
    assert done("status", "--check").out.count("fresh ") == 2
    assert done("verify").out.count("as its query gives") == 2

    history = done("history", "cost", "--json").json["refreshes"]
    assert [(each["strategy"], each["from_scratch"]) for each in history] == [
        ("id", False),
        ("id", True),
    ]
    assert "and 1 older" in done("history", "cost", "--limit", "1").out


def test_deletes_updates_and_inserts_are_one_commit(lake: Path, tmp_path: Path) -> None:
    applied = done(
        *("apply", "parts", "--json"),
        *("--deletes", write(tmp_path / "gone.csv", "pid\n2\n")),
        *("--updates", write(tmp_path / "new.csv", "pid,name\n1,\n")),
        *("--inserts", write(tmp_path / "more.csv", "pid,price,name\n4,1e1,bolt\n")),
    )
    assert applied.json == {
        "table": "parts",
        "version": 2,
        "inserts": 1,
        "updates": 1,
        "deletes": 1,
    }
    assert [(row["pid"], row["name"], str(row["price"])) for row in rows(lake, "parts")] == [
        (1, None, "1.50"),
        (3, "nut, small", "0.10"),
        (4, "bolt", "10.00"),
    ]


def test_tables_of_every_form(lake: Path, tmp_path: Path) -> None:
    pq.write_table(uses([(1, 1)]), tmp_path / "first.parquet")
    done("table", "create", "first", "--rows", tmp_path / "first.parquet", "--key", "did")
    days = write(tmp_path / "days.csv", "at,day,ok\n2026-01-02 03:04:05,2026-01-02,yes\n")
    columns = "day date, at timestamp, ok boolean"
    done("table", "create", "days", "--columns", columns, "--key", "day", "--rows", days)
    [day] = rows(lake, "days")
    assert str(day["at"]) == "2026-01-02 03:04:05+00:00"
    assert (str(day["day"]), day["ok"]) == ("2026-01-02", True)

    listed = {each["name"]: each for each in done("table", "list", "--json").json["tables"]}
    assert list(listed) == ["parts", "uses", "first", "days"]
    assert listed["uses"]["foreign_keys"] == ["pid -> parts.pid"]
    assert listed["first"]["key"] == ["did"]
    assert listed["days"]["rows"] == 1
    shown = done("table", "list").out
    assert "Viewkeep" in shown
    assert "did, pid" in shown

    assert done("table", "drop", "first").out == "dropped first; its folder is still there\n"
    assert "first" not in done("table", "list").out


def test_a_registered_table_is_followed(lake: Path, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "stock", uses([(7, 1), (8, 2)]))
    done("table", "register", "stock", tmp_path / "stock", "--key", "did")
    done("view", "create", "low", "SELECT did, pid FROM stock WHERE pid < 3")
    write_deltalake(tmp_path / "stock", uses([(9, 2)]), mode="append")
    assert " behind " in done("status", "low").out
    assert done("refresh").out.count("stock 1") == 1
    assert len(rows(lake, "low")) == 3
    assert "others" in done("table", "list").out


def test_views_are_listed_shown_replaced_and_dropped(lake: Path) -> None:
    done("view", "create", "cost", COST)
    [view] = done("view", "list", "--json").json["views"]
    assert (view["name"], view["reads"], view["key"]) == ("cost", ["parts", "uses"], ["did"])
    shown = done("view", "show", "cost", "--rows", "1").out
    assert "sum(p.price) AS cost" in shown
    assert "freshness  fresh" in shown
    assert "First rows" in shown
    document = done("view", "show", "cost", "--rows", "5", "--json").json
    assert sorted(document["first_rows"]) == [[1, "3.75"], [2, "0.10"]]
    assert document["status"]["rows"] == 2
    assert viewkeep("view", "create", "cost", "SELECT pid FROM parts").code == 2
    done("view", "create", "cost", "SELECT pid FROM parts", "--replace", "--strategy", "recompute")
    assert len(rows(lake, "cost")) == 3
    assert done("view", "drop", "cost", "--json").json == {"dropped": "cost"}
    assert done("view", "list").out.startswith("no views yet")


def test_a_wrong_view_is_found_and_repaired(lake: Path) -> None:
    done("view", "create", "cost", COST)
    damage(lake / "cost")
    found = viewkeep("verify")
    assert found.code == 1
    assert "WRONG: 1 row missing, 1 row too many" in found.out
    assert "missing   1    3.75" in found.out
    assert "too many  9    3.75" in found.out
    document = viewkeep("verify", "cost", "--json").json["views"][0]
    assert (document["ok"], document["missing"], document["extra"]) == (
        False,
        [[1, "3.75"]],
        [[9, "3.75"]],
    )
    assert "repaired" in done("view", "repair", "cost").out
    assert done("verify").code == 0


def damage(table: Path) -> None:
    """Change a value in a file, behind the back of the log."""
    for file in DeltaTable(table).file_uris():
        held = pq.read_table(file)
        dids = [9 if did == 1 else did for did in held["did"].to_pylist()]
        pq.write_table(held.set_column(0, held.schema.field(0), pa.array(dids, pa.int32())), file)
        Path(file).with_name(f".{Path(file).name}.crc").unlink(missing_ok=True)


def test_a_view_that_fails_leaves_the_others_fresh(lake: Path, tmp_path: Path) -> None:
    done("view", "create", "cost", COST)
    done("view", "create", "names", "SELECT pid, name FROM parts")
    strange = pa.table({"pid": pa.array([1], pa.int32()), "name": ["strange"]})
    write_deltalake(lake / "names", strange, mode="append")
    done("apply", "parts", "--updates", write(tmp_path / "p.csv", "pid,price\n1,7\n"))
    answer = viewkeep("refresh")
    assert answer.code == 1
    assert 'view "names": version 1 (WRITE) was written by something else' in answer.out
    assert "id" in answer.out
    reports = {each["view"]: each for each in viewkeep("refresh", "--json").json["refreshes"]}
    assert reports["names"]["error"]
    assert not reports["cost"]["error"]
    status = viewkeep("status")
    assert status.code == 1
    assert "broken" in status.out
    assert done("status", "cost").code == 0


def test_explain_tells_how_a_view_of_the_lake_is_kept(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done("view", "create", "cost", COST)
    monkeypatch.chdir(lake)  # where the view has a folder of its name
    explained = done("explain", "cost").out
    assert 'View "cost" over parts, uses' in explained
    assert "strategy  id: all tables have keys" in explained
    assert "What each change reads" in explained
    picture = tmp_path / "plan.svg"
    one = done("explain", "cost", "--lake", lake, "--changes", "parts.price", "--svg", picture).out
    assert "APPLY u" in one
    assert picture.read_text().startswith("<svg")
    document = done("explain", "cost", "--json").json
    assert (document["view"], document["strategy"]) == ("cost", "id")
    assert document["script"]["tuple_based"] is False
    assert "Q(a) = R(a, b)" in done("explain", "Q(a) = R(a, b)").out  # a query is still a query


def test_old_files_are_removed_when_asked_for(lake: Path, tmp_path: Path) -> None:
    done("view", "create", "cost", COST)
    done("apply", "parts", "--updates", write(tmp_path / "p.csv", "pid,price\n1,7\n"))
    done("refresh")
    asked = ("vacuum", "--hours", "0", "--force")
    would = done(*asked, "--dry-run", "--json").json["files"]
    assert would["parts"] == 1
    assert sum(would.values()) > 1
    assert " removed\n" in done(*asked).out
    assert done("verify").code == 0


# --- which lake, and whether Spark is needed ------------------------------------------------------


def test_looking_and_small_changes_start_no_spark(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done("view", "create", "cost", COST)
    without_spark(monkeypatch)
    for command in (
        ("status",),
        ("history", "cost"),
        ("table", "list"),
        ("view", "list"),
        ("view", "show", "cost"),
        ("explain", "cost"),
        ("refresh",),
        ("init", str(lake)),
        ("apply", "parts", "--updates", str(write(tmp_path / "p.csv", "pid,price\n1,7\n"))),
        ("status",),
        ("refresh",),
        ("verify",),
    ):
        assert done(*command).err == "", command
    done("apply", "parts", "--updates", str(write(tmp_path / "p.csv", "pid,price\n1,8\n")))
    with pytest.raises(AssertionError, match="Spark is started"):
        done("refresh", "--backend", "spark")


def test_the_start_of_spark_is_told(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = done("view", "create", "cost", COST, "--backend", "spark").err
    assert told == "starting Spark ...\n"


def test_a_lake_is_found_by_option_variable_or_folder(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    done("init", other)
    assert done("table", "list", "--lake", other).out.startswith("no tables yet")
    monkeypatch.delenv("VIEWKEEP_LAKE")
    monkeypatch.chdir(lake)
    assert "parts" in done("table", "list").out
    monkeypatch.chdir(tmp_path)
    refused(viewkeep("status"), "no lake: name it with --lake PATH")
    refused(viewkeep("status", "--lake", "nowhere"), "there is no lake in", "viewkeep init")
    assert not Path("nowhere").exists()


# --- mistakes -------------------------------------------------------------------------------------


def refused(answer: Answer, *parts: str) -> None:
    """Input that is not right: exit code 2 and a message, no trace."""
    assert answer.code == 2, answer
    assert answer.out == ""
    for part in parts:
        assert part in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("csv", "parts"),
    [
        ("pid,price\n1,7\n9,7\n", ['table "parts"', "pid = 9"]),
        ("pid,price\n1,7\n1,8\n", ['table "parts"', "pid = 1"]),
        ("pid,price\n1,x\n", ["p.csv line 2", 'column "price" (decimal(10, 2))', "'x'"]),
        ("pid,price\n,7\n", ["p.csv line 2", 'column "pid" is empty']),
        ("pid,prize\n1,7\n", ["p.csv line 1", '"prize" is none of them', 'did you mean "price"?']),
        ("pid,price,price\n1,7,8\n", ["p.csv line 1", 'the column "price" twice']),
        ("pid,price\n1\n", ["p.csv line 2", "1 value, but the header has 2"]),
        ("1,7\n", ["p.csv line 1", "the first line names the columns"]),
        ("", ["p.csv line 1", "the file is empty"]),
        ("pid\n1\n", ["only keys are given"]),
    ],
)
def test_a_bad_file_of_updates_changes_nothing(
    lake: Path, tmp_path: Path, csv: str, parts: list[str]
) -> None:
    before = rows(lake, "parts")
    refused(viewkeep("apply", "parts", "--updates", write(tmp_path / "p.csv", csv)), *parts)
    assert rows(lake, "parts") == before
    assert DeltaTable(lake / "parts").version() == 1


def test_a_view_with_another_layout(lake: Path) -> None:
    done("view", "create", "v", "SELECT pid FROM parts", "--layout", "merge-on-read")
    assert "layout merge-on-read" in done("view", "show", "v").out


def test_other_mistakes_say_what_to_do(lake: Path, tmp_path: Path) -> None:
    refused(viewkeep("apply", "parts"), "give --inserts, --updates, --deletes or --upserts")
    refused(viewkeep("apply", "parts", "--inserts", "no.csv"), 'there is no file "no.csv"')
    refused(viewkeep("apply", "parts", "--inserts", "no.parquet"), 'there is no file "no.parquet"')
    broken = write(tmp_path / "broken.parquet", "no parquet")
    refused(viewkeep("apply", "parts", "--inserts", broken), "cannot read")
    refused(viewkeep("apply", "part", "--inserts", broken), 'did you mean "parts"?')
    refused(viewkeep("history", "cost"), 'there is no view "cost" in this lake (none yet)')
    refused(viewkeep("view", "create", "v", "SELECT prize FROM parts"), 'did you mean "price"?')
    refused(viewkeep("view", "create", "v", "missing.sql"), 'there is no file "missing.sql"')
    refused(viewkeep("view", "create", "v", "SELECT pid FROM parts", "--policy", "x"), "policy")
    refused(viewkeep("view", "create", "v", "SELECT pid FROM parts", "--layout", "x"), "layout")
    refused(viewkeep("table", "create"), "name the table, or give --schema FILE")
    refused(viewkeep("table", "create", "t"), "its columns are not known")
    refused(viewkeep("table", "create", "t", "--columns", "id int"), "needs a key")
    refused(viewkeep("table", "create", "parts", "--columns", "id int", "--key", "id"), "already")
    schema = write(tmp_path / "both.sql", SCHEMA)
    refused(viewkeep("table", "create", "--schema", schema, "--key", "pid"), "one table: name it")
    refused(viewkeep("table", "create", "x", "--schema", schema), 'there is no table "x"')
    refused(viewkeep("table", "drop", "prts"), 'did you mean "parts"?')
    refused(viewkeep("view", "drop", "parts"), "(none yet); it is a table")
    assert [each["name"] for each in done("table", "list", "--json").json["tables"]] == [
        "parts",
        "uses",
    ]


def test_what_fails_is_told_with_exit_code_1(lake: Path) -> None:
    answer = viewkeep("table", "register", "stock", lake / "nothing", "--key", "id")
    assert answer.code == 1
    assert "there is no Delta table" in answer.err


def test_without_java_the_error_names_it(lake: Path) -> None:
    line = [sys.executable, "-m", "viewkeep", "view", "create", "cost", COST]
    line += ["--backend", "spark"]
    environment = {**os.environ, "JAVA_HOME": str(lake / "no java")}
    run = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout == ""
    assert "Spark could not be started. It needs Java 17 or newer" in run.stderr
    assert "Traceback" not in run.stderr
    assert done("view", "list").out.startswith("no views yet")


def without(library: str) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.modules['{library}'] = None\n"
        "from viewkeep.cli.main import run; run(['status'])"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_deltalake_the_error_names_the_extra(lake: Path) -> None:
    run = without("deltalake")
    assert run.returncode == 1
    assert "pip install 'viewkeep[lake]'" in run.stderr
    assert "Traceback" not in run.stderr


def test_lakes_need_no_spark(lake: Path) -> None:
    run = without("pyspark")
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_has_an_example(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown = done(*command, "--help").out
    example = shown.partition("Example")[2]
    assert f"viewkeep {' '.join(command)}" in example
    assert "--json" in shown
