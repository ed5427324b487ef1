"""The larger examples run, in small."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from docs.make_notebooks import NOTEBOOKS, refreshed_notebook
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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_cells_of_a_notebook_show_what_is_stored(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == refreshed_notebook(text), "run `make docs`, and read what changed"


def test_other_output_of_a_cell_is_noticed() -> None:
    cell = {"cell_type": "code", "source": ["x = 2\n", "print(x)\n", "x + 1"]}
    shown = refreshed_notebook(json.dumps({"cells": [cell]}))
    assert '"2\\n"' in shown
    assert '"text/plain": [\n       "3"' in shown
    assert refreshed_notebook(shown.replace('"3"', '"4"')) == shown
