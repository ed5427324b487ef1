"""A full disk and a folder that cannot be written: a clear error, and nothing is broken."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from tests.keeper.lakes import check, check_verified, rows, set_driver_bytes, versions
from viewkeep import Keeper, ViewkeepError
from viewkeep.tables.log import write_entry

COST = "SELECT did, sum(price) AS cost FROM uses JOIN parts USING (pid) GROUP BY did"


def filled(spark: SparkSession, place: Path) -> Keeper:
    keeper = Keeper(place, spark)
    parts = [(n, 10 * n) for n in range(12)]
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=parts)
    uses = [(n % 5, n) for n in range(12)]
    keeper.create_table("uses", {"did": "int", "pid": "int"}, ["did", "pid"], rows=uses)
    keeper.create_view("cost", COST)
    return keeper


def attempts(keeper: Keeper) -> dict[str, Callable[[], object]]:
    """Everything that writes."""
    return {
        "apply": lambda: keeper.apply("parts", updates=[{"pid": 1, "price": 77}]),
        "refresh": lambda: keeper.refresh(),
        "create_table": lambda: keeper.create_table("t", {"x": "int"}, ["x"], rows=[(1,)]),
        "create_view": lambda: keeper.create_view("v", "SELECT pid FROM parts"),
        "replace": lambda: keeper.create_view("cost", "SELECT did FROM uses", replace=True),
        "drop_view": lambda: keeper.drop_view("cost"),
    }


def check_refused(keeper: Keeper, said: str) -> None:
    """All attempts are refused with a clear error, and leave everything as it was."""
    before = versions(keeper), rows(keeper, "parts"), rows(keeper, "cost"), keeper.views
    for name, attempt in attempts(keeper).items():
        with pytest.raises(ViewkeepError, match=said):
            attempt()
        found = versions(keeper), rows(keeper, "parts"), rows(keeper, "cost"), keeper.views
        assert found == before, name


def check_recovered(keeper: Keeper) -> None:
    """With room to write, all goes on."""
    keeper.refresh()
    check(keeper)
    keeper.apply("parts", updates=[{"pid": 2, "price": 5}])
    keeper.refresh()
    check(keeper)
    check_verified(keeper)


@contextmanager
def mounted(place: Path, *options: str) -> Iterator[None]:
    """A small file system of its own, where that is allowed."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", *options, "tmpfs", str(place)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("driver_bytes", [0, 1 << 20], ids=["spark", "driver"])
def test_a_full_disk(spark: SparkSession, tmp_path: Path, driver_bytes: int) -> None:
    place = tmp_path / "small"
    with mounted(place, "-o", "size=4m"):
        keeper = filled(spark, place / "lake")
        set_driver_bytes(keeper, driver_bytes)
        keeper.apply("parts", updates=[{"pid": 3, "price": 1}])
        with suppress(OSError), open(place / "ballast", "wb", buffering=0) as ballast:
            while ballast.write(b"0" * 4096):
                pass
        check_refused(keeper, "No space left on device")
        (place / "ballast").unlink()
        check_recovered(Keeper(place / "lake", spark))


def test_a_folder_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "small"
    with mounted(place):
        keeper = filled(spark, place / "lake")
        keeper.apply("parts", updates=[{"pid": 3, "price": 1}])
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        check_refused(keeper, "(?i)read-only file system|mkdirs failed")
        with pytest.raises(ViewkeepError, match=r"(?i)read-only"):
            Keeper(place / "other", spark)
        assert keeper.read("cost").count() == 5
        assert keeper.status()[0].behind == {"parts": 1}
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
        check_recovered(keeper)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights(spark: SparkSession, tmp_path: Path) -> None:
    keeper = filled(spark, tmp_path / "lake")
    keeper.apply("parts", updates=[{"pid": 3, "price": 1}])
    folders = [each for each in (tmp_path / "lake").rglob("*") if each.is_dir()]
    for folder in (tmp_path / "lake", *folders):
        folder.chmod(0o555)
    try:
        check_refused(keeper, "(?i)permission denied")
    finally:
        for folder in (tmp_path / "lake", *folders):
            folder.chmod(0o755)
    check_recovered(keeper)


def test_errors_of_storage(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What storage may answer, where nothing can be mounted."""
    keeper = filled(spark, tmp_path / "lake")
    keeper.apply("parts", updates=[{"pid": 3, "price": 1}])

    def full(*given: Any, **named: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    def full_log(*given: Any, **named: Any) -> Any:
        raise DeltaError("Generic LocalFileSystem error: No space left on device")

    module = "viewkeep.tables.log.deltalake_commits"
    for owner, target in ((pq.ParquetWriter, "write_table"), (os, "link"), (write_entry, "_write")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, target, full)
            check_refused(keeper, "No space left on device")
    with monkeypatch.context() as patch:
        patch.setattr("viewkeep.tables.log.delta.put_entry", lambda *given: None)
        patch.setattr(f"{module}.create_table_with_add_actions", full_log)
        patch.setattr(DeltaTable, "create_write_transaction", full_log)
        check_refused(keeper, "No space left on device")
    check_recovered(keeper)
