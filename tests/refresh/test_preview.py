"""When two texts are taken for one query: only if they give the same columns and rows."""

from itertools import combinations, product
from pathlib import Path
from random import Random

import viewkeep as vk
from viewkeep.refresh.preview import query_key
from viewkeep.sql.parse import parse_view

SELECTS = (
    "{x}.g, {x}.v",
    "{x}.g, {x}.v AS w",
    "{x}.v AS g, {x}.g AS v",
    "{x}.g, {x}.v AS `{x}.v`",
    "DISTINCT {x}.g, {x}.v",
    "{x}.g, {x}.v + 1 AS v",
    "{x}.g, {x}.v + 1.0 AS v",
    "{x}.g, '1' AS v",
    "{x}.g, 1 AS v",
)
WHERES = ("", "WHERE {x}.v > 2", "WHERE {x}.v >= 2", "WHERE NOT {x}.v <= 2", "WHERE {x}.g > 2")
JOINS = (
    "t {x}",
    "t {x} JOIN t {y} ON {x}.id = {y}.id",
    "t {x} JOIN t {y} ON {x}.id = {y}.v",
    "t {x}, t {y} WHERE {x}.id = {y}.v AND",
    "t {x} LEFT JOIN t {y} ON {x}.id = {y}.v",
    "t {x} LEFT SEMI JOIN t {y} ON {x}.id = {y}.v",
    "t {x} LEFT ANTI JOIN t {y} ON {x}.id = {y}.v",
)


def texts() -> list[str]:
    """Queries in several writings: other names for tables, other places for conditions."""
    found = []
    for select, join, where, names in product(SELECTS, JOINS, WHERES, (("a", "b"), ("p", "q"))):
        if join.endswith("AND"):
            join, where = (join, where[5:]) if where else (join[:-3], "")
        x, y = names
        found.append(f"SELECT {select} FROM {join} {where}".format(x=x, y=y))
    return found


def test_texts_with_one_key_give_the_same_rows(tmp_path: Path) -> None:
    keeper, random = vk.Keeper(tmp_path / "lake", durable=False), Random(3)
    rows = [(i, random.randint(0, 4), random.choice([None, *range(6)])) for i in range(40)]
    keeper.create_table("t", {"id": "int", "g": "int", "v": "int"}, key=["id"], rows=rows)
    by_key: dict[str, list[str]] = {}
    for text in texts():
        by_key.setdefault(query_key(parse_view(text, keeper.readable)), []).append(text)
    assert len(by_key) > 100, "different queries have different keys"
    assert sum(len(each) > 1 for each in by_key.values()) > 100, "other writings have the same"
    for alike in Random(5).sample(list(by_key.values()), 40):
        answers = [keeper.query(text) for text in alike]
        for first, second in combinations(answers, 2):
            assert first.schema.equals(second.schema)
            assert sorted(map(str, first.to_pylist())) == sorted(map(str, second.to_pylist()))


def test_names_of_columns_tell_queries_apart() -> None:
    tables = {"t": vk.Table({"a": "int"}, key=["a"])}
    keys = {
        query_key(parse_view(f"SELECT {x}.a AS `{x}.a` FROM t {x}", tables)) for x in ("p", "q")
    }
    assert len(keys) == 2
