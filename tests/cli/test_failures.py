"""Whatever goes wrong below a command: one line, exit code 1, a traceback only if asked for."""

import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.cli.lakes import done, viewkeep, write
from viewkeep.cli.query import explain as command
from viewkeep.errors import brief

PLAN = """[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;
'Project ['x]
+- SubqueryAlias t
"""
JAVA = """An error occurred while calling o1.count.
: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.Job.run(Job.scala:1)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.File.write(File.java:2)
"""
ERRORS: dict[str, tuple[Exception, str]] = {
    "a mistake of ours": (KeyError("x"), "KeyError: 'x'"),
    "an assertion": (AssertionError(), "AssertionError"),
    "a full disk": (OSError(errno.ENOSPC, "No space left"), "OSError: [Errno 28] No space left"),
    "no memory": (MemoryError(), "MemoryError"),
    "Spark": (AnalysisException(PLAN), "AnalysisException: [UNRESOLVED_COLUMN] A column `x` can"),
    "Java": (Py4JError(JAVA), "Py4JError: java.io.IOException: No space left on device"),
    "deltalake": (DeltaError("\x1b[31mbad log\x1b[0m\n   0: delta::x"), "DeltaError: bad log"),
    "pyarrow": (pa.ArrowInvalid("not a file\nat 0x1"), "ArrowInvalid: not a file"),
}


def _raise(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize(("error", "said"), ERRORS.values(), ids=ERRORS)
def test_any_error_is_one_line(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_read_and_explain", _raise(error))
    answer = viewkeep("explain", "Q(a) = R(a)")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(f"error: {said}")
    assert answer.err.count("\n") == 1
    assert "\x1b" not in answer.err
    debugged = viewkeep("explain", "Q(a) = R(a)", "--debug")
    assert debugged.code == 1
    assert "Traceback (most recent call last)" in debugged.err
    assert debugged.err.endswith(answer.err)


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_read_and_explain", _raise(KeyboardInterrupt()))
    answer = viewkeep("explain", "Q(a) = R(a)")
    assert (answer.code, answer.out, answer.err) == (130, "", "")


def test_spark_says_it_in_a_line(spark: SparkSession) -> None:
    """Its real messages, which end in plans and in calls of Java."""
    with pytest.raises(AnalysisException) as analysed:
        spark.sql("SELECT nosuch FROM range(3)")
    assert brief(analysed.value).startswith("AnalysisException: [UNRESOLVED_COLUMN")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO") as failed:
        spark.sql("SELECT 1 / (id - 1) FROM range(3)").collect()
    for error in (analysed.value, failed.value):
        assert "\n" not in brief(error)


def test_a_column_that_another_writer_adds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    monkeypatch.setenv("VIEWKEEP_LAKE", str(lake))
    done("init", lake)
    schema = write(tmp_path / "t.sql", "CREATE TABLE parts (pid INT PRIMARY KEY, price INT);")
    done("table", "create", "--schema", schema)
    rows = {"pid": pa.array([1], pa.int32()), "price": pa.array([1], pa.int32()), "new": ["x"]}
    write_deltalake(lake / "parts", pa.table(rows), mode="append", schema_mode="merge")
    answer = viewkeep("apply", "parts", "--inserts", write(tmp_path / "r.csv", "pid,price\n2,5\n"))
    assert answer.code == 2
    assert answer.err.startswith('error: table "parts": another writer added the column "new"; ')
    assert answer.err.count("\n") == 1
