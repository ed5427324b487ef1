"""Look-ups that several statements of a script make are made once."""

from pathlib import Path

import duckdb
import pytest

from viewkeep import Keeper
from viewkeep.diffs.script import Script
from viewkeep.execute.duckdb import statements
from viewkeep.execute.duckdb.file_schemas import FileSchemas
from viewkeep.execute.duckdb.look_ups import share_look_ups
from viewkeep.execute.duckdb.statements import QueryText
from viewkeep.query.algebra import Leaf, Stored
from viewkeep.query.traversal import walk

TABLES = {
    "parts": ({"pid": "int", "price": "int"}, ["pid"]),
    "uses": ({"did": "int", "pid": "int", "n": "int"}, ["did", "pid"]),
}
COST = "SELECT did, sum(price) AS cost FROM uses JOIN parts USING (pid) GROUP BY did"


def _script(folder: Path, sql: str) -> Script:
    keeper = Keeper(folder)
    for name, (columns, key) in TABLES.items():
        keeper.create_table(name, columns, key, rows=[])
    keeper.create_view("v", sql)
    return keeper.script("v")


def _readers(script: Script, name: str) -> list[str]:
    """The statements that read a relation."""
    return [
        each.name
        for each in script.computes()
        if any(isinstance(leaf, Stored) and leaf.name == name for leaf in walk(each.query))
    ]


def test_rows_of_caches_and_views_are_looked_up_once(tmp_path: Path) -> None:
    script = _script(tmp_path, COST)
    shared = share_look_ups(script)
    for kept in script.materialized:
        looked_up = [name for name in _readers(shared.script, kept.name) if " near " in name]
        assert _readers(shared.script, kept.name) == looked_up, "nothing else reads the files"
    [cache] = script.caches
    by_target = {each.target: each for each in script.applies() if each in shared.sources}
    assert by_target.keys() == {cache.name, script.view.name}


def test_look_ups_come_after_the_diffs_that_they_read(tmp_path: Path) -> None:
    shared = share_look_ups(_script(tmp_path, COST)).script
    names = [each.name for each in shared.computes()]
    for number, statement in enumerate(shared.computes()):
        leaves = {each.name for each in walk(statement.query) if isinstance(each, Stored)}
        assert leaves & set(names) <= set(names[:number]), statement.name


def test_what_is_applied_once_is_not_looked_up_before(tmp_path: Path) -> None:
    script = _script(tmp_path, "SELECT did, pid, n, price FROM uses JOIN parts USING (pid)")
    shared = share_look_ups(script)
    assert (list(shared.script.computes()), shared.sources) == (list(script.computes()), {})


def test_columns_of_files_are_asked_once(tmp_path: Path) -> None:
    connection, paths = duckdb.connect(), [str(tmp_path / f"{n}.parquet") for n in "ab"]
    nested = "{'x': 1, 'y': [1]} AS s, map {1: 2} AS m"
    for path, columns in zip(paths, (f"1 AS a, {nested}, 2 AS e", "1::BIGINT AS a"), strict=True):
        connection.execute(f"COPY (SELECT {columns}) TO '{path}'")
    schemas = FileSchemas(most=2)
    found = schemas.get(paths)
    assert [[name for name, _ in each] for each in found] == [["a", "s", "m", "e"], ["a"]]
    assert found[1] == (("a", "int64"),)
    connection.close()
    assert schemas.get(paths) == found, "no file is read again"
    Path(paths[1]).unlink()
    with pytest.raises(FileNotFoundError):
        schemas.get(paths)


def test_the_text_of_a_query_is_made_once_for_relations_anywhere(tmp_path: Path) -> None:
    definition = _script(tmp_path, COST).caches[0].definition
    text = QueryText.of(definition)
    for place in ("here", "there"):

        def resolve(leaf: Leaf, place: str = place) -> str:
            return f"{place}.{leaf.name}"

        assert text.text(resolve) == statements.query(definition, resolve)
