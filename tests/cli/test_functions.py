"""User-defined functions for the command."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.cli.lakes import done, viewkeep, write

MODULE = """
from pyspark.sql.functions import udf
from pyspark.sql.types import IntegerType

def shout(text):
    return None if text is None else _louder(text)

def _louder(text):
    return text.upper() + "!"

FUNCTIONS = {
    "shout": (shout, "string"),
    "length_of": udf(lambda text: len(text or ""), IntegerType()),
    "twice": "CREATE OR REPLACE TEMPORARY FUNCTION twice(x INT) RETURNS INT RETURN 2 * x",
}
PLAIN = {"shout": shout}
LIST = [shout]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a module and a lake."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("VIEWKEEP_LAKE", "lake")
    write(tmp_path / "functions_of_user.py", MODULE)
    done("init", "lake")
    done("table", "create", "--schema", write(tmp_path / "t.sql", SCHEMA))
    done("apply", "t", "--inserts", write(tmp_path / "rows.csv", "id,name\n1,ann\n2,\n"))
    yield tmp_path
    sys.modules.pop("functions_of_user", None)


SCHEMA = "CREATE TABLE t (id INT PRIMARY KEY, name STRING);"
LOUD = "SELECT id, shout(name) AS loud, length_of(name) AS l, twice(id) AS more FROM t"


def test_a_view_with_functions_of_a_module(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    done("view", "create", "loud", LOUD, "--functions", "functions_of_user:FUNCTIONS")
    done("apply", "t", "--inserts", write(folder / "rows.csv", "id,name\n3,bob\n"))
    monkeypatch.setenv("VIEWKEEP_FUNCTIONS", "functions_of_user:FUNCTIONS")
    [report] = done("refresh", "--json").json["refreshes"]
    assert report["strategy"] != "recompute"
    table = pa.table(DeltaTable(folder / "lake" / "loud").to_pyarrow_table())
    rows = zip(*(table[name].to_pylist() for name in ("id", "loud", "l", "more")), strict=True)
    assert sorted(rows) == [(1, "ANN!", 3, 2), (2, None, 0, 4), (3, "BOB!", 3, 6)]


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("functions_of_user", "give a module and a name in it"),
        ("nowhere:FUNCTIONS", 'module "nowhere" cannot be imported (No module named'),
        ("functions_of_user:OTHERS", 'module "functions_of_user" has no "OTHERS"'),
        ("functions_of_user:LIST", '"LIST" is list, not a dict from names in SQL to functions'),
        ("functions_of_user:PLAIN", 'function "shout" is function, and has no type: give a pair'),
    ],
)
def test_references_that_name_no_functions(folder: Path, reference: str, problem: str) -> None:
    answer = viewkeep("view", "create", "loud", LOUD, "--functions", reference)
    assert (answer.code != 0, problem in answer.err, answer.err.count("\n")) == (True, True, 1)
