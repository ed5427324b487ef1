"""`viewkeep maintain` from arguments to exit code: files, streams, results, changes, mistakes."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import viewkeep as vk
from viewkeep.cli.main import app, run

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples" / "maintain"
GOLDEN = ROOT / "tests" / "golden" / "maintain_summary.txt"
JOIN = "Q(a, c) = R(a, b) * S(b, c)"
SUMS = "Q(a; count(), sum(c)) = R(a, b) * S(b, c)"
STRATEGIES = ["auto", "recompute", "delta", "recursive", "viewtree"]
LOADED = ["--load", f"R={EXAMPLES / 'r.csv'}", "--load", f"S={EXAMPLES / 's.csv'}"]
CHANGES = ["--updates", str(EXAMPLES / "changes.csv")]
R, S = [(1, 10), (2, 10), (3, 20)], [(10, 100), (20, 200)]
UPDATES = [
    ("R", (1, 20), 1),
    ("S", (10, 300), 1),
    ("S", (20, 100), 1),
    ("R", (2, 10), -1),
    ("R", (4, 10), 1),
    ("S", (10, 100), -1),
]


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["kind"] == kind]

    @property
    def result(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        return {tuple(r["row"]): tuple(r["payload"]) for r in self.of("result")[-1]["rows"]}


Cli = Callable[..., Answer]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str) -> Answer:
        with pytest.raises(SystemExit) as exit_:
            run(["maintain", *arguments])
        out, err = capsys.readouterr()
        return Answer(int(exit_.value.code or 0), out, err)

    return call


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], str]:
    def write(name: str, content: str) -> str:
        (tmp_path / name).write_text(content, encoding="utf-8")
        return str(tmp_path / name)

    return write


File = Callable[[str, str], str]


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "viewkeep", "maintain", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, **options)


def in_python(query: str, count: int = len(UPDATES), **options: Any) -> dict[Any, Any]:
    """The same in Python: rows loaded, then the first updates of the example."""
    live = vk.maintain(query, **options)
    live.load({"R": R, "S": S})
    for relation, row, multiplicity in UPDATES[:count]:
        live.update(relation, row, multiplicity)
    return {
        row: payload if isinstance(payload, tuple) else (payload,)
        for row, payload in live.enumerate()
    }


# results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [JOIN, SUMS])
@pytest.mark.parametrize("epsilon", ["0", "0.3", "b=0.5", "1", "first-order"])
def test_the_result_is_that_of_python_whatever_is_heavy(cli: Cli, query: str, epsilon: str) -> None:
    options = ["--strategy", "epsilon", "--epsilon", epsilon]
    assert cli(query, *LOADED, *CHANGES, *options, "--json").result == in_python(query)


@pytest.mark.parametrize("query", [JOIN, SUMS])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("output", ["factorized", "list"])
@pytest.mark.parametrize("mode", ["eager", "lazy"])
def test_the_result_is_that_of_python(
    cli: Cli, query: str, strategy: str, output: str, mode: str
) -> None:
    options = ["--strategy", strategy, "--output", output, "--mode", mode]
    answer = cli(query, *LOADED, *CHANGES, *options, "--json")
    assert answer.code == 0
    assert answer.err == ""
    assert answer.result == in_python(query)


def test_every_n_updates_and_once_at_the_end(cli: Cli) -> None:
    results = cli(JOIN, *LOADED, *CHANGES, "--every", "4", "--json").of("result")
    assert [each["updates"] for each in results] == [4, 6]
    for each in results:
        found = {tuple(r["row"]): tuple(r["payload"]) for r in each["rows"]}
        assert found == in_python(JOIN, each["updates"])
    exact = cli(JOIN, *LOADED, *CHANGES, "--every", "3", "--json").of("result")
    assert [each["updates"] for each in exact] == [3, 6]


def test_without_changes_the_result_is_that_of_the_files(cli: Cli, file: File) -> None:
    assert cli(JOIN, *LOADED, "--json").result == in_python(JOIN, 0)
    empty = cli(JOIN, *LOADED, "--updates", file("none.csv", ""), "--json")
    assert empty.result == in_python(JOIN, 0)


def test_rows_are_shown_in_columns_up_to_the_limit(cli: Cli) -> None:
    answer = cli(JOIN, *LOADED, *CHANGES, "--limit", "2", "-q")
    heading, names, *rows = answer.out.splitlines()
    assert heading == "Q after 6 updates"
    assert names.split() == ["a", "c", "count"]
    assert [len(row.split()) for row in rows[:2]] == [3, 3]
    assert rows[2].strip() == "and more than these 2 rows: --limit 0 shows all"
    every = cli(JOIN, *LOADED, *CHANGES, "--limit", "0", "-q")
    assert len(every.out.splitlines()) == 2 + len(in_python(JOIN)) + 1
    assert "more" not in every.out
    assert cli(JOIN, *LOADED, *CHANGES, "--limit", "2", "--json").of("result")[0]["more"] is True


def test_a_query_without_outputs_has_always_a_value(cli: Cli) -> None:
    assert cli("Q() = R(a, b)", "--json").result == {(): (0,)}
    empty = cli("Q(; count(), sum(a), min(a), avg(b)) = R(a, b)", "--json")
    assert empty.result == {(): (0, 0, None, None)}
    loaded = cli("Q(; count(), sum(a), min(a), avg(b)) = R(a, b)", *LOADED[:2], "--json")
    assert loaded.result == {(): (3, 6, 1, pytest.approx(40 / 3))}


def test_inputs_are_given(cli: Cli) -> None:
    query = "Q(c | a) = R(a, b) * S(b, c)"
    answer = cli(query, *LOADED, *CHANGES, "--given", "a=4", "--json")
    assert answer.result == {(300,): (1,)}
    query = "Q(| a, b) = R(a, b) * S(b, c)"
    assert cli(query, *LOADED, "--given", "a=1", "--given", "b=10", "--json").result == {(): (1,)}


def test_the_program_is_the_one_of_python(cli: Cli) -> None:
    program = str(vk.maintain(JOIN).program)
    assert cli(JOIN, "--program", "-q").out.startswith(f"{program}\n\n")
    assert cli(JOIN, "--program", "--json").of("start")[0]["program"] == program


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--fd", "x -> y"], "dependencies"),
        (["--key", "S.x"], "dependencies"),
        (["--static", "T"], "static"),
        (["--insert-only"], "insert"),
        (["--degree", "S: x -> y <= 3"], "degree"),
    ],
)
def test_constraints_reach_the_planner(cli: Cli, options: list[str], says: str) -> None:
    answer = cli("Q(w, x, y, z) = R(w, x) * S(x, y) * T(y, z)", *options, "--json")
    assert says in answer.of("summary")[0]["why"][0]


def test_foreign_keys_reach_the_planner(cli: Cli) -> None:
    answer = cli(JOIN, "--foreign-key", "R.b -> S.b", "--json")
    assert "foreign keys" in answer.of("summary")[0]["why"][0]


# changes of the result -------------------------------------------------------------------------


def test_deltas_say_what_came_went_and_changed(cli: Cli, file: File) -> None:
    changes = file("c.csv", "R,+,1,x\nR,+2,1,x\nR,+,2,\nR,-3,1,x\n")
    answer = cli("Q(a, b) = R(a, b)", "--updates", changes, "--deltas", "-q")
    assert answer.out.splitlines() == [
        "+ (1, 'x') 1",
        "~ (1, 'x') 1 -> 3",
        "+ (2, NULL) 1",
        "- (1, 'x') 3",
    ]


@pytest.mark.parametrize("mode", ["eager", "lazy"])
@pytest.mark.parametrize("every", [None, 1, 2, 4, 100])
def test_deltas_lead_from_the_loaded_result_to_the_last(
    cli: Cli, mode: str, every: int | None
) -> None:
    step = [] if every is None else ["--every", str(every)]
    answer = cli(JOIN, *LOADED, *CHANGES, "--deltas", "--mode", mode, *step, "--json")
    state = in_python(JOIN, 0)
    for line in answer.of("changes"):
        for change in line["changes"]:
            row = tuple(change["row"])
            assert state.pop(row, None) == (change["before"] and tuple(change["before"]))
            if change["after"] is not None:
                state[row] = tuple(change["after"])
        assert state == in_python(JOIN, line["updates"])
    assert state == in_python(JOIN)
    assert answer.of("result") == []


def test_what_cancels_out_within_n_updates_is_not_told(cli: Cli, file: File) -> None:
    changes = file("c.csv", "R,+,1\nR,-,1\nR,+,2\n")
    answer = cli("Q(a) = R(a)", "--updates", changes, "--deltas", "--every", "2", "-q")
    assert answer.out == "after 3 updates\n+ (2) 1\n"


def test_deltas_of_a_query_with_inputs(cli: Cli, file: File) -> None:
    query = "Q(c | a) = R(a, b) * S(b, c)"
    changes = file("c.csv", "S,+,10,100\nR,+,1,10\nR,+,2,10\n")
    arguments = (query, "--updates", changes, "--deltas", "-q")
    assert cli(*arguments, "--output", "list").out == "+ (100, 1) 1\n+ (100, 2) 1\n"
    assert cli(*arguments, "--output", "list", "--given", "a=2").out == "+ (100, 2) 1\n"
    refused = cli(*arguments)
    assert refused.code == 2
    assert refused.out == ""


# files of rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "1,x\n2,\n",
        "a,b\n1,x\n2,\n",
        "B, other, A\nx,9,1\n,9,2\n",
        "\ufeffa,b\r\n1,x\r\n\r\n2,\r\n",
        '"b","a"\n"x","1"\n"", 2\n',
    ],
)
def test_a_header_is_found_and_says_where_columns_are(cli: Cli, file: File, content: str) -> None:
    answer = cli("Q(a, b) = R(a, b)", "--load", f"R={file('r.csv', content)}", "--json")
    assert answer.result == {(1, "x"): (1,), (2, None): (1,)}


def test_a_first_line_that_may_be_a_header_is_not_guessed(cli: Cli, file: File) -> None:
    path = file("r.csv", "id,city\n1,Bern\n")
    arguments = ("Q(a, b) = R(a, b)", "--load", f"R={path}", "--json")
    refused = cli(*arguments)
    assert refused.code == 2
    assert refused.err.startswith(f"error: {path} line 2: the line before (id, city) looks like")
    assert cli(*arguments, "--header").result == {(1, "Bern"): (1,)}
    assert cli(*arguments, "--no-header").result == {(1, "Bern"): (1,), ("id", "city"): (1,)}


def test_a_relation_may_have_several_files_and_a_row_may_stand_twice(cli: Cli, file: File) -> None:
    first, second = file("1.csv", "a\n1\n1\n"), file("2.csv", "2\n1\n")
    loads = ["--load", f"R={first}", "--load", f"R={second}"]
    assert cli("Q(a) = R(a)", *loads, "--json").result == {(1,): (3,), (2,): (1,)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        ("-7", -7),
        ("1.50", "1.50"),
        ("1e-05", "0.00001"),
        ("007", "007"),
        ("+49", "+49"),
        ("1e5", "1e5"),
        ("nan", "nan"),
        ("Bern", "Bern"),
        ('"a, ""b"""', 'a, "b"'),
        ("9" * 5000, "9" * 5000),
        ('""', None),
    ],
)
def test_values_without_a_schema(cli: Cli, file: File, text: str, value: Any) -> None:
    path = file("r.csv", f"{text},1\n")
    answer = cli("Q(a) = R(a, b)", "--load", f"R={path}", "--no-header", "--json")
    assert list(answer.result) == [(value,)]


def test_decimals_are_exact(cli: Cli, file: File) -> None:
    changes = file("c.csv", "R,+,1,0.1\nR,+,1,0.2\nR,+,2,0.3\nR,-,2,0.3\n")
    answer = cli("Q(a; sum(b)) = R(a, b)", "--updates", changes, "--json")
    assert answer.result == {(1,): ("0.3",)}


# SQL -------------------------------------------------------------------------------------------

SQL = [
    *(str(EXAMPLES / "cost.sql"), "--schema", str(EXAMPLES / "tables.sql")),
    *("--load", f"parts={EXAMPLES / 'parts.csv'}"),
    *("--load", f"devices_parts={EXAMPLES / 'devices_parts.csv'}"),
]


def test_sql_reads_the_columns_it_needs_with_their_types(cli: Cli) -> None:
    answer = cli(*SQL, "--updates", str(EXAMPLES / "parts_changes.csv"), "--json")
    assert answer.result == {(7,): ("11.00", 1), (8,): ("32.75", 2)}


def test_tables_may_stand_beside_the_view(cli: Cli, file: File) -> None:
    query = "CREATE TABLE T (d DATE, n INT NOT NULL); SELECT d, sum(n) AS s FROM T GROUP BY d"
    rows = file("t.csv", "2026-01-02,5\n2026-01-02,6\n,7\n")
    answer = cli(query, "--load", f"T={rows}", "--json")
    assert answer.result == {("2026-01-02",): (11,), (None,): (7,)}


def test_changes_of_other_tables_of_the_schema_are_ignored(cli: Cli, file: File) -> None:
    changes = file("c.csv", "parts,+,9,bolt,0.10\ndevices_parts,+,7,9\n")
    query = "SELECT pid, name FROM parts"
    schema = ["--schema", str(EXAMPLES / "tables.sql")]
    answer = cli(query, *schema, "--updates", changes, "--json")
    assert answer.result == {(9, "bolt"): (1,)}
    [summary] = answer.of("summary")
    assert (summary["updates"], summary["ignored"]) == (1, 1)
    assert "1 change of tables that" in cli(query, *schema, "--updates", changes).err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("parts,+,x,bolt,1", "column \"pid\" (int): 'x'"),
        ("parts,+,1,bolt,", 'column "price" is empty, but declared not null'),
        ("parts,+,1,1.00", "2 values, but parts(pid, name, price) has 3"),
    ],
)
def test_values_must_fit_the_schema(cli: Cli, file: File, line: str, says: str) -> None:
    path = file("c.csv", f"{line}\n")
    answer = cli(*SQL, "--updates", path)
    assert answer.code == 2
    assert answer.err.startswith(f"error: {path} line 1: ")
    assert says in answer.err


# mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("Rr,+1,1,2", 'no relation "Rr" in the query (R, S); did you mean "R"?'),
        ("R,+1,1", "1 value, but R(a, b) has 2"),
        ("R,+1,1,2,3", "3 values, but R(a, b) has 2"),
        ("R", '"" is not a multiplicity'),
        ("R,x,1,2", '"x" is not a multiplicity: expected + or +1 for an insert'),
        ("R,1.5,1,2", '"1.5" is not a multiplicity'),
        ('R,+1,1,"2', "not valid CSV: unexpected end of data"),
        ('R,+1,1,"2"3', "not valid CSV"),
        ("relation,multiplicity,1", 'no relation "relation"'),
    ],
)
def test_a_bad_change_is_named_with_its_line(cli: Cli, file: File, line: str, says: str) -> None:
    path = file("changes.csv", f'relation,multiplicity\nR,+1,1,"a\nb"\n\n{line}\n')
    answer = cli(JOIN, *LOADED, "--updates", path)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith(f"error: {path} line 5: ")
    assert says in answer.err


@pytest.mark.parametrize(
    ("options", "change", "says"),
    [
        (["--static", "R"], "R,+1,1,2", "R is declared static"),
        (["--insert-only"], "R,-1,1,2", "inserts only"),
    ],
)
def test_changes_that_the_constraints_exclude(
    cli: Cli, file: File, options: list[str], change: str, says: str
) -> None:
    path = file("changes.csv", f"{change}\n")
    answer = cli(JOIN, *LOADED, *options, "--updates", path)
    assert answer.code == 2
    assert answer.err.startswith(f"error: {path} line 1: ")
    assert says in answer.err


def test_a_bad_row_is_named_with_its_line(cli: Cli, file: File) -> None:
    path = file("r.csv", "a,b\n1,2\n3\n")
    answer = cli(JOIN, "--load", f"R={path}")
    assert answer.err == f"error: {path} line 3: 1 value, but the header has 2\n"
    path = file("r.csv", "1,2\n1,x\n")
    answer = cli("Q(a; sum(b)) = R(a, b)", "--load", f"R={path}")
    assert answer.code == 2
    assert answer.err.startswith(f"error: {path} line 2: ")
    assert "not a number" in answer.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([JOIN, "--load", "R=none.csv"], 'there is no file "none.csv"'),
        ([JOIN, "--updates", "none.csv"], 'there is no file "none.csv"'),
        ([JOIN, "--updates", "/"], 'cannot read "/"'),
        ([JOIN, "--load", "r.csv"], '"r.csv": expected a name and a value, as in --load R=FILE'),
        ([JOIN, "--load", f"T={EXAMPLES / 'r.csv'}"], 'no relation "T" in the query (R, S)'),
        ([JOIN, "--load", "R=-", "--updates", "-"], "standard input (-) can be read only once"),
        ([JOIN, "--strategy", "viewtre"], 'did you mean "viewtree"?'),
        ([JOIN, "--epsilon", "1.5"], "expected a number between 0 and 1"),
        ([JOIN, "--epsilon", "half"], "expected a number between 0 and 1"),
        ([JOIN, "--epsilon", "R=0.3,S"], "as in --epsilon R=0.3,S=0.5"),
        ([JOIN, "--epsilon", "R=,S=1"], "as in --epsilon R=0.3,S=0.5"),
        ([JOIN, "--epsilon", "R=0.3"], 'epsilon of "R": nothing of that name is split (b)'),
        ([JOIN, "--space", "small"], "expected one of fast, linear"),
        ([JOIN, "--mode", "later"], "expected one of eager, lazy"),
        ([JOIN, "--given", "a=1"], 'has no input "a"'),
        (["Q(c | a) = R(a, c)"], "needs its inputs"),
        (["Q(c | a) = R(a, c)", "--given", "a"], "as in --given a=1"),
        (["Q(a = R(a)"], "line 1, column 5"),
        (["Q(a) = R(a); P(a) = R(a)"], "one query is expected, but the text has 2: Q, P"),
        ([""], "there is no query"),
        (["SELECT a FROM R"], "CREATE TABLE"),
        (["CREATE TABLE R (a INT); SELECT a FROM R UNION ALL SELECT a FROM R"], "not a conj"),
        ([JOIN, "--every", "0"], "--every"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(
    cli: Cli, arguments: list[str], says: str
) -> None:
    answer = cli(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert says in answer.err


def test_text_that_is_not_utf8_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("R,+1,1,Zürich\n".encode("latin-1"))
    assert "not text in UTF-8" in cli(JOIN, "--updates", str(path)).err


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=40) | st.text('R,S+-1"\n\r x.', max_size=40).map(str.encode))
def test_any_file_of_changes_is_applied_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "c.csv"
    path.write_bytes(content)
    done = CliRunner().invoke(app, ["maintain", JOIN, "--updates", str(path), "-q"])
    assert done.exit_code == 0 or isinstance(done.exception, vk.ViewkeepError)


# the summary -----------------------------------------------------------------------------------


def masked(text: str) -> str:
    """Times and rates are another each time."""
    return re.sub(r"[\d,]+ per second", "# per second", re.sub(r"[\d.]+ s\b", "# s", text))


def test_the_summary_is_the_reviewed_one_and_that_of_the_docs(cli: Cli) -> None:
    text = masked(cli("Q(a, b, c) = R(a, b) * S(b, c)", *LOADED, *CHANGES).err)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
    page = (ROOT / "docs" / "maintain.md").read_text(encoding="utf-8")
    assert text.strip() in masked(page)


def test_the_summary_counts(cli: Cli) -> None:
    [summary] = cli(JOIN, *LOADED, *CHANGES, "--json").of("summary")
    live = vk.maintain(JOIN)
    live.load({"R": R, "S": S})
    loading = live.steps
    for update in UPDATES:
        live.update(*update)
    assert (summary["loaded"], summary["updates"]) == (5, 6)
    assert (summary["load_steps"], summary["steps"]) == (loading, live.steps - loading)
    assert 0 < summary["worst_steps"] <= summary["steps"]
    assert {each["name"]: each["entries"] for each in summary["maps"]} == live.sizes()
    assert summary["strategy"] == live.program.strategy
    assert summary["updates_per_second"] == pytest.approx(6 / summary["seconds"])


TRIANGLE = "Q() = E(a, b) * E(b, c) * E(c, a)"


def hub(file: File) -> list[str]:
    """An edge from each of twelve nodes to node 0 and back, and one apart from it."""
    edges = "".join(f"0,{i}\n{i},0\n" for i in range(1, 13))
    return ["--load", f"E={file('e.csv', edges + '7,8')}", "--no-header"]


def heavy_lines(text: str) -> list[str]:
    """The lines below the heading, with single blanks."""
    _, _, told = text.partition("Heavy values\n")
    return [" ".join(line.split()) for line in told.splitlines() if line]


def test_heavy_values_are_named_with_their_degrees(cli: Cli, file: File) -> None:
    assert "heavy a in E 12.3 0 -" in heavy_lines(cli(TRIANGLE, *hub(file)).err)
    assert heavy_lines(cli(TRIANGLE, *hub(file), "--epsilon", "0.4").err) == [
        "split threshold values most rows",
        "heavy a in E 7.4 1 (0): 12",
        "heavy b in E#2 7.4 1 (0): 12",
        "heavy c in E#3 7.4 1 (0): 12",
    ]


def test_the_heaviest_values_come_first_and_only_some_are_named(cli: Cli, file: File) -> None:
    told = heavy_lines(cli(TRIANGLE, *hub(file), "--epsilon", "0").err)
    assert told[1] == "heavy a in E 1.0 13 (0): 12, (7): 2, (1): 1, ..."


def test_values_of_three_levels_are_told_apart(cli: Cli, file: File) -> None:
    triangle_with_tail = "Q() = E(a, b) * E(b, c) * E(c, a) * E(c, d) * E(d, e)"
    found = cli(triangle_with_tail, *hub(file), "--strategy", "epsilon", "--json")
    [line] = found.of("partitions")
    [heavy, medium] = line["splits"][0]["levels"]
    assert (heavy["level"], medium["level"]) == ("heavy", "medium")
    assert (heavy["values"], medium["values"]) == (0, 1)
    assert medium["heaviest"] == [{"value": [0], "degree": 12}]
    assert medium["exponent"] == pytest.approx(1 / 3)
    assert medium["threshold"] == pytest.approx((2 * 5 * 25 + 1) ** (1 / 3))


def test_without_parts_or_when_quiet_nothing_is_said_of_heavy_values(cli: Cli, file: File) -> None:
    assert "Heavy" not in cli(TRIANGLE, *hub(file), "--strategy", "delta").err
    assert cli(TRIANGLE, *hub(file), "--strategy", "delta", "--json").of("partitions") == []
    assert cli(TRIANGLE, *hub(file), "-q").err == ""


@pytest.mark.parametrize(
    ("epsilon", "thresholds"),
    [
        ("0.3", (0.3, 0.3, 0.3)),
        ("R=0.3,T=0.7", (0.3, 0.5, 0.7)),
        ("R = 0, T = 1", (0, 0.5, 1)),
        ("first-order", (1, 1, 1)),
        ("factorized:R", (1, 0, 1)),
    ],
)
def test_epsilon_is_a_number_one_per_relation_or_a_preset(
    cli: Cli, epsilon: str, thresholds: tuple[float, ...]
) -> None:
    query = "Q() = R(a, b) * S(b, c) * T(c, a)"
    answer = cli(query, "--strategy", "epsilon", "--epsilon", epsilon, "--json")
    [line] = answer.of("partitions")
    assert tuple(each["levels"][0]["exponent"] for each in line["splits"]) == thresholds


def test_a_split_on_two_variables_is_named_by_both(cli: Cli) -> None:
    query = "Q() = R(a, b, k) * S(b, c, k) * T(c, a, k)"
    [line] = cli(query, "--epsilon", "a, k=0.2,S=0.9", "--json").of("partitions")
    assert [each["levels"][0]["exponent"] for each in line["splits"]] == [0.2, 0.9, 0.5]


def test_linear_space_splits_all_join_variables(cli: Cli) -> None:
    query = "Q() = R(a, b) * S(b, c) * T(c, a)"
    [line] = cli(query, "--space", "linear", "--json").of("partitions")
    assert [each["relations"] for each in line["splits"]] == [["R", "T"], ["R", "S"], ["S", "T"]]


def test_an_asked_strategy_is_said_to_be_asked_for(cli: Cli) -> None:
    assert "recursive: as asked" in cli(JOIN, "--strategy", "recursive").err


def test_every_json_field_is_in_the_docs(cli: Cli) -> None:
    page = (ROOT / "docs" / "maintain.md").read_text(encoding="utf-8")
    lines = cli(JOIN, *LOADED, *CHANGES, "--program", "--json").lines
    lines += cli(JOIN, *LOADED, *CHANGES, "--deltas", "--json").lines
    lines += lines[1]["rows"] + lines[-1]["maps"]
    missing = {name for line in lines for name in line if f"`{name}`" not in page}
    assert missing == set()


# as a process ----------------------------------------------------------------------------------


def test_through_typers_runner_with_standard_input() -> None:
    changes = (EXAMPLES / "changes.csv").read_text()
    arguments = ["maintain", JOIN, *LOADED, "--updates", "-", "--json"]
    done = CliRunner().invoke(app, arguments, input=changes)
    assert done.exit_code == 0
    assert Answer(0, done.stdout, "").result == in_python(JOIN)


def test_piped_output_has_no_colour_and_no_progress() -> None:
    done = command(JOIN, *LOADED, *CHANGES)
    assert done.returncode == 0
    assert done.stdout.startswith("Q after 6 updates\n")
    assert done.stderr.startswith("Summary\n")
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(("options", "shown"), [([], True), (["-q"], False)])
def test_a_terminal_sees_progress_and_a_pipe_the_result(options: list[str], shown: bool) -> None:
    terminal, stderr = pty.openpty()
    arguments = [sys.executable, "-m", "viewkeep", "maintain", JOIN, *LOADED, *CHANGES, *options]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run(
        arguments, stdout=subprocess.PIPE, stderr=stderr, text=True, check=True, env=environment
    )
    os.write(stderr, b"end\n")
    seen = os.read(terminal, 65536).decode()
    assert done.stdout.startswith("Q after 6 updates\n")
    assert "\x1b" not in done.stdout
    assert ("\x1b[?25l" in seen, "Summary" in seen) == (shown, shown)


def test_examples_of_the_help_work_as_printed() -> None:
    shown = CliRunner().invoke(app, ["maintain", "--help"], env={"COLUMNS": "80"}).output
    shown = shown[: shown.index("Arguments")]
    lines = [line.strip() for line in shown.splitlines()]
    examples = "\n".join(lines).replace("\\\n", " ")
    commands = [line for line in examples.splitlines() if line.startswith("viewkeep maintain")]
    assert len(commands) == 5
    for line in commands:
        runnable = line.replace("viewkeep", f"{shlex.quote(sys.executable)} -m viewkeep", 1)
        done = subprocess.run(
            ["/bin/sh", "-c", runnable], cwd=EXAMPLES, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout != "") == (0, True), done.stderr


def test_changes_are_told_while_the_stream_goes_on() -> None:
    line = [sys.executable, "-m", "viewkeep", "maintain", "Q(a) = R(a)"]
    arguments = [*line, "--updates", "-", "--deltas", "-q"]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(f"R,+1,{number}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"+ ({number}) 1\n"
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_prints_the_summary_so_far(as_json: bool) -> None:
    line = [sys.executable, "-m", "viewkeep", "maintain", "Q(a) = R(a)", "--updates", "-"]
    arguments = [*line, "--deltas", *(["--json"] if as_json else [])]
    with subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("R,+1,1\nR,+1,2\n")
        process.stdin.flush()
        for _ in range(3 if as_json else 2):
            process.stdout.readline()
        time.sleep(0.1)  # until it waits for the next line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err
    if as_json:
        summary = json.loads(out)
        assert (summary["updates"], summary["interrupted"]) == (2, True)
    else:
        assert re.search(r"updates +2 in .* \(interrupted\)", err)


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = f"{shlex.quote(sys.executable)} -m viewkeep"
    line = f'yes R,+1,1 | {program} maintain "Q(a) = R(a)" --updates - --deltas | head -2'
    done = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "+ (1) 1\n~ (1) 1 -> 2\n"
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
def test_memory_does_not_grow_with_the_stream(tmp_path: Path) -> None:
    code = (
        "import sys; from viewkeep.cli.main import run\n"
        "try: run(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print([line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line][0])"
    )
    peaks = []
    for count in (1_000, 100_000):
        path = tmp_path / f"{count}.csv"
        path.write_text("R,+1,1,a text to fill the line\nR,-1,1,a text to fill the line\n" * count)
        line = [sys.executable, "-c", code, "maintain", "Q(a) = R(a, b)", "--updates", str(path)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[-1]))
    assert (peaks[1] - peaks[0]) * 1024 < path.stat().st_size / 2


def test_help_loads_no_more_than_it_needs() -> None:
    code = (
        "import sys; from viewkeep.cli.main import run\n"
        "try: run(['maintain', '--help'])\nexcept SystemExit: pass\n"
        "print({'sqlglot', 'viewkeep.analysis', 'viewkeep.maintainer'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")
