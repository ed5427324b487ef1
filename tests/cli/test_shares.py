"""`viewkeep view create --share TABLE=PART`, and what is refused of it."""

from pathlib import Path

import pytest

from tests.cli.lakes import done, viewkeep, write
from viewkeep import Keeper

SCHEMA = "CREATE TABLE r (id INT PRIMARY KEY, y INT); CREATE TABLE s (id INT PRIMARY KEY, y INT);"
VIEW = "SELECT r.y, count(*) AS n FROM r JOIN s ON r.y = s.y GROUP BY r.y"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "lake"
    monkeypatch.setenv("VIEWKEEP_LAKE", str(path))
    done("init", path)
    done("table", "create", "--schema", write(tmp_path / "tables.sql", SCHEMA))
    return path


def test_expected_changes_are_part_of_the_definition(lake: Path) -> None:
    done("view", "create", "v", VIEW, "--share", "r=0.25", "--share", "s=0")
    definition = Keeper(lake)._lake.catalog.read().views["v"]
    assert dict(definition.shares) == {"r": 0.25, "s": 0.0}


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (["r"], '"r": expected a name and a value, as in --share orders=0.01'),
        (["=0.1"], '"=0.1": expected a name and a value'),
        (["r=much"], "--share r=much: expected a number, as in --share orders=0.01"),
        (["r=0.1", "r=0.2"], '--share r=0.2: "r" has a part already'),
        (["r=2"], 'shares["r"]: expected a part from 0 to 1, not 2.0'),
        (["r=nan"], "--share r=nan: expected a number, as in --share orders=0.01"),
        (["t=0.1"], 'shares: view "v" does not read "t"'),
    ],
)
def test_bad_shares_define_nothing(lake: Path, shares: list[str], message: str) -> None:
    options = [word for share in shares for word in ("--share", share)]
    answer = viewkeep("view", "create", "v", VIEW, *options)
    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err
    assert Keeper(lake).views == {}
