"""The larger examples run, in small."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples import demo, in_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_the_demo_keeps_its_views_right(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    demo.main(["--rows", "10000", "--rounds", "2", "--lake", str(lake)])
    shown = capsys.readouterr().out
    assert re.search(r"lines +7,500 rows", shown)
    for view in demo.VIEWS:
        assert re.search(rf"{view} .*2 of 2", shown), shown
    assert (lake / "_viewkeep").is_dir()


def test_the_demo_refuses_a_folder_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        demo.main(["--lake", str(tmp_path)])
    assert "is there already" in capsys.readouterr().err


def test_the_example_in_one_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(in_process, "UPDATES", 1_000)
    in_process.main()
    shown = capsys.readouterr().out
    assert "19 -> 13" in shown
    assert "2 checks ok" in shown
