"""`viewkeep explain` from arguments to exit code: queries, files, SQL, JSON, errors."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from viewkeep.cli.main import app, run

TABLES = """
CREATE TABLE customers (cid INT PRIMARY KEY, region STRING NOT NULL);
CREATE TABLE orders (oid INT PRIMARY KEY, cid INT NOT NULL REFERENCES customers (cid),
                     total INT NOT NULL);
"""
JOINED = "SELECT o.oid, c.region FROM orders o JOIN customers c ON o.cid = c.cid"


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.out))


Cli = Callable[..., Answer]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str) -> Answer:
        with pytest.raises(SystemExit) as exit_:
            run(["explain", *arguments])
        out, err = capsys.readouterr()
        return Answer(int(exit_.value.code or 0), out, err)

    return call


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "tables.sql"
    path.write_text(TABLES)
    return str(path)


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", "from viewkeep.cli.main import run; run()", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, **options)


# one query -------------------------------------------------------------------------------------


def test_a_query_is_explained(cli: Cli) -> None:
    answer = cli("Q(a, b, c) = R(a, b) * S(b, c)")
    assert answer.code == 0
    assert answer.err == ""
    assert "q-hierarchical: constant update time and constant delay" in answer.out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--fd", "x -> y"], "thanks to the dependencies"),
        (["--key", "S.x"], "thanks to the dependencies"),
        (["--static", "T"], "because of static T"),
        (["--insert-only"], "acyclic join under inserts only"),
        (["--degree", "S: x -> y <= 3"], "degrees are bounded"),
        (["--foreign-key", "R.x -> S.x", "--foreign-key", "S.y -> T.y"], "constant delay"),
        ([], "acyclic, but not hierarchical"),
    ],
)
def test_every_constraint_reaches_the_analysis(cli: Cli, options: list[str], says: str) -> None:
    answer = cli("Q(w, x, y, z) = R(w, x) * S(x, y) * T(y, z)", *options)
    assert says in " ".join(answer.out.replace("│", " ").split())


def test_payloads_that_cannot_be_compiled_are_told(cli: Cli) -> None:
    told = " ".join(cli("Q(a; min(-b)) = R(a, b)").out.replace("│", " ").split())
    assert "Runs on the reference engine: min(-b) is of an expression, which" in told
    assert "reference engine" not in cli("Q(a; sum(b), min(b)) = R(a, b)").out
    document = json.loads(cli("--json", "Q(a; min(-b)) = R(a, b)").out)
    assert document["queries"][0]["engine"]["name"] == "reference"


def test_through_typers_runner_too() -> None:
    result = CliRunner().invoke(app, ["explain", "Q() = R(a, b) * S(b)"])
    assert result.exit_code == 0
    assert "q-hierarchical" in result.output


@pytest.mark.parametrize("command", ["explain", "maintain"])
def test_flags_are_shown_without_a_type(command: str) -> None:
    assert "<bool>" not in CliRunner().invoke(app, [command, "--help"]).output
    assert "<bool>" not in CliRunner().invoke(app, ["--help"]).output


def test_help_has_examples_and_version_is_the_packages() -> None:
    assert "Examples" in CliRunner().invoke(app, ["explain", "--help"]).output
    assert CliRunner().invoke(app, ["--version"]).output == f"viewkeep {version('viewkeep')}\n"


# many queries ----------------------------------------------------------------------------------


def test_a_file_of_queries_is_a_table_with_cascades(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "queries.cq"
    path.write_text("Q1(A,B,C,D) = R(A,B) * S(B,C) * T(C,D)\nQ2(A,B,C) = R(A,B) * S(B,C)\n")
    answer = cli(str(path))
    assert answer.code == 0
    assert "Q1 rides on Q2" in answer.out
    assert [line.split()[0] for line in answer.out.splitlines()[3:6]] == [
        "Q1",
        "hierarchical",
        "Q2",
    ]


def test_one_bad_query_does_not_hide_the_others(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "queries.cq"
    path.write_text("Good(a) = R(a)\nBad(a = R(a)\nLate(a, b) =\n  R(a) *\n  S(a, b)\n")
    answer = cli(str(path), "--json")
    assert answer.code == 1
    assert [(q["name"], q["status"]) for q in answer.json["queries"]] == [
        ("Good", "analyzed"),
        ("Bad", "error"),
        ("Late", "analyzed"),
    ]
    assert answer.json["queries"][1]["reason"]["line"] == 2


def test_two_queries_of_one_name_are_told_apart(cli: Cli) -> None:
    answer = cli("Q(a) = R(a); Q(a) = S(a)")
    assert answer.code == 1
    assert 'another query is called "Q" too' in answer.out


def test_a_constraint_applies_to_the_queries_it_fits(cli: Cli) -> None:
    answer = cli("Q1(a) = R(a, b) * S(b); Q2(c) = T(c)", "--static", "S", "--json")
    assert [q["constraints"]["static"] for q in answer.json["queries"]] == [["S"], []]


# SQL -------------------------------------------------------------------------------------------


def test_sql_is_explained_with_the_keys_of_its_schema(cli: Cli, schema: str) -> None:
    answer = cli(JOINED, "--schema", schema, "--json")
    assert answer.code == 0
    [query] = answer.json["queries"]
    assert query["constraints"]["keys"] == ["orders.oid", "customers.cid"]
    assert query["constraints"]["foreign_keys"] == ["orders.cid -> customers.cid"]


def test_notation_is_checked_against_the_schema_and_gets_its_keys(cli: Cli, schema: str) -> None:
    query = "Q(o, r) = orders(o, c, t) * customers(c, r)"
    found = cli(query, "--schema", schema, "--json").json["queries"][0]
    assert found["constraints"]["foreign_keys"] == ["orders.cid -> customers.cid"]
    assert found["constraints"]["keys"] == ["customers.cid", "orders.oid"]


def test_a_view_that_is_not_conjunctive_shows_its_operators(cli: Cli, schema: str) -> None:
    sql = "SELECT cid FROM customers UNION ALL SELECT cid FROM orders"
    answer = cli(sql, "--schema", schema)
    assert answer.code == 0
    assert "not a conjunctive query" in answer.out
    assert "UnionAll" in answer.out
    assert "Delta script" in answer.out
    [query] = cli(sql, "--schema", schema, "--json").json["queries"]
    assert query["status"] == "not_conjunctive"


def test_a_file_of_views_with_names_and_tables(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "views.sql"
    path.write_text(
        f"{TABLES}\n-- name: joined\n{JOINED};\n"
        "CREATE OR REPLACE VIEW big AS SELECT oid FROM orders WHERE total > 10 /* ; */;\n"
        "SELECT region, count(*) AS n FROM customers GROUP BY region;\n"
        "SELECT nothing FROM orders;\n"
    )
    answer = cli(str(path), "--json")
    assert answer.code == 1
    assert [(q["name"], q["status"]) for q in answer.json["queries"]] == [
        ("joined", "analyzed"),
        ("big", "analyzed"),
        ("Q3", "analyzed"),
        ("Q4", "error"),
    ]
    assert answer.json["queries"][3]["reason"]["line"] == 10


# errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Q(a = R(a)"], 'found "=" at line 1, column 5'),
        (["Q(a) = R(a, b) * R(a)"], "R(a) has 1 column, but R has 2 at line 1, column 18"),
        (["Q(x) = R(a)"], "unsafe head"),
        ([""], "there is no query"),
        (["Q(a) = R(a)", "--fd", "a"], '"a": a functional dependency is written x, y -> z'),
        (["Q(abc) = R(abc)", "--fd", "abc -> abd"], 'did you mean "abc"?'),
        (["Q(a) = R(a, b)", "--key", "R.c"], 'column "c" is not in R (a, b)'),
        (["Q(a) = R(a, b)", "--static", "S"], 'no relation "S" (R)'),
        (["Q(a) = R(a, b)", "--degree", "R"], "a degree bound is written S: x -> y <= 3"),
        (["missing.sql"], 'there is no file "missing.sql"'),
        (["Q(a) = R(a)", "--schema", "none.sql"], 'there is no file "none.sql"'),
        (["SELECT a FROM R"], "CREATE TABLE, in the same file or in the file of --schema"),
        (["selct city from R"], 'found "selct" at line 1, column 1; did you mean "SELECT"?'),
        (["Selct city\nfrom R"], 'did you mean "SELECT"?'),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(
    cli: Cli, arguments: list[str], says: str
) -> None:
    answer = cli(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert says in answer.err


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("Q(a) = costumers(a, b)", 'at line 1, column 8; did you mean "customers"?\n'),
        ("Q(a) = orders(a, b)", "but orders has 3 at line 1, column 8"),
        ("SELECT totl FROM orders", '"total"'),
        ("SELECT oid FROM ordrs", '"orders"'),
        ("SELECT oid FROM orders WHERE", "line 1"),
        ("SELECT FROM WHERE", "line 1"),
        ("INSERT INTO orders VALUES (1, 2, 3)", "a view is a SELECT query"),
        ("delete from customers", "a view is a SELECT query at line 1, column 1"),
    ],
)
def test_names_are_checked_against_the_schema(cli: Cli, schema: str, query: str, says: str) -> None:
    answer = cli(query, "--schema", schema)
    assert answer.code == 2
    assert answer.out == ""
    assert says in answer.err


def test_an_error_in_a_file_names_the_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bad.sql"
    path.write_text("CREATE TABLE R (a INT,\n  b NOTYPE)")
    assert f"error: {path}: " in cli("Q(a) = R(a, b)", "--schema", str(path)).err
    path.write_text("\n\nSELECT a FROM")
    assert f"error: {path}: " in cli(str(path)).err


def test_a_view_in_place_of_a_schema_is_pointed_at_where_it_starts(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "view.sql"
    path.write_text("-- a view\nSELECT a FROM R")
    assert "line 2, column 1\n" in cli("Q(a) = R(a)", "--schema", str(path)).err


def test_binary_files_and_folders_are_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "data.sql"
    path.write_bytes(b"\xff\xfe\x00")
    assert "is not a text file" in cli(str(path)).err
    folder = tmp_path / "folder.sql"
    folder.mkdir()
    assert "is a folder" in cli(str(folder)).err
    assert "is a folder" in cli(str(tmp_path)).err


# as a process ----------------------------------------------------------------------------------


def test_a_query_from_standard_input() -> None:
    done = command("explain", "-", input="Q(a) = R(a, b)\n")
    assert done.returncode == 0
    assert "q-hierarchical" in done.stdout
    assert "\x1b" not in done.stdout


def test_no_trace_is_shown_for_bad_input() -> None:
    done = command("explain", "Q(a")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = "from viewkeep.cli.main import run; run()"
    line = f'{sys.executable} -c "{code}" explain "Q(a) = R(a, b)" | true'
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_terminal_without_unicode_gets_what_it_can_show() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = command("explain", "Q(größe) = R(größe, b)", env=environment)
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_help_loads_neither_the_analysis_nor_sqlglot() -> None:
    code = (
        "import sys; from viewkeep.cli.main import run\n"
        "try: run(['explain', '--help'])\nexcept SystemExit: pass\n"
        "print({'sqlglot', 'viewkeep.analysis', 'viewkeep.sql'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


def test_explaining_the_notation_does_not_load_sqlglot() -> None:
    code = (
        "import sys; from viewkeep.cli.main import run\n"
        "try: run(['explain', 'Q(a) = R(a)'])\nexcept SystemExit: pass\n"
        "print('sqlglot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
