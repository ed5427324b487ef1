"""Columns of nested values that views carry: arrays, structs, maps, and times without a zone."""

import os
import struct
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.keeper.lakes import check_verified, location, set_driver_bytes
from viewkeep import Keeper, SchemaError, ViewkeepError
from viewkeep.execute.spark.files import read_frame
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import parse_type
from viewkeep.sql.parse import parse_view
from viewkeep.tables.arrow_rows import arrow_type, declared_type, to_arrow, to_rows

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
NESTED = {
    "tags": "array<string>",
    "at": "timestamp_ntz",
    "place": "struct<x:int,`y z`:array<decimal(6,2)>,seen:timestamp>",
    "counts": "map<string,int>",
    "deep": "array<map<int,struct<a:date,b:binary>>>",
}
ITEMS = Table({"id": "int", "g": "int", **NESTED}, key=["id"])
GROUPS = Table({"g": "int", "name": "string", "extra": "map<string,array<int>>"}, key=["g"])

VIEWS = {
    "stars": "SELECT * FROM items",
    "some": "SELECT i.* FROM items i WHERE i.g > 1 AND i.tags IS NOT NULL",
    "joined": "SELECT i.id, i.place, i.counts, g.g, g.name, g.extra "
    "FROM items i JOIN groups g ON i.g = g.g",
    "outer_joined": "SELECT i.id, i.deep, i.at, g.extra "
    "FROM items i LEFT JOIN groups g ON i.g = g.g",
    "both": "SELECT id, g, tags, counts FROM items WHERE g < 3 UNION ALL "
    "SELECT id, g, tags, counts FROM items WHERE g > 1",
    "above": "SELECT s.id, s.counts, s.place, g.extra FROM stars s JOIN groups g ON s.g = g.g",
    "counted": "SELECT g, count(tags) AS n, count(*) AS m FROM items GROUP BY g",
    "by_nested": "SELECT tags, place, count(*) AS n FROM items GROUP BY tags, place",
    "without": "SELECT i.* FROM items i WHERE NOT EXISTS (SELECT 1 FROM groups g WHERE g.g = i.g)",
}  # fmt: skip


def random_value(rng: Random, type_: Any) -> Any:
    """A value in the form of rows; NULL now and then, also inside."""
    if rng.random() < 0.15:
        return None
    match type_.name:
        case "array":
            return tuple(random_value(rng, type_.parts[0].type) for _ in range(rng.randint(0, 2)))
        case "struct":
            return tuple(random_value(rng, part.type) for part in type_.parts)
        case "map":
            keys = rng.sample(range(4), rng.randint(0, 2))
            named = [f"k{k}" if type_.parts[0].type.name == "string" else k for k in keys]
            return tuple((k, random_value(rng, type_.parts[1].type)) for k in named)
    return {
        "int": lambda: rng.randint(0, 3),
        "string": lambda: rng.choice(["", "a", "é, -> b"]),
        "decimal": lambda: rng.choice([0, 1]) + Decimal("0.25"),
        "binary": lambda: rng.choice([b"", b"\xff"]),
        "date": lambda: datetime(2026, 1, rng.randint(1, 2)).date(),
        "timestamp": lambda: datetime(2026, 1, 1, 0, 0, 0, rng.choice([0, 1])),
        "timestamp_ntz": lambda: datetime(1900, 1, 1, 0, 0, 0, rng.choice([0, 1])),
    }[type_.name]()


def random_row(rng: Random, table: Table, key: int) -> tuple[Any, ...]:
    values = [random_value(rng, field.type) for field in table.columns[1:]]
    return (key, *values)


def rows_of(place: str | Path, names: Any = None) -> Counter[Any]:
    table = DeltaTable(place).to_pyarrow_table()
    shown = [n for n in table.column_names if not n.startswith("#")]
    return Counter(to_rows(table.select(names or shown)))


def expected(keeper: Keeper, sql: str) -> Counter[Any]:
    """What Spark answers over the newest versions of all that the SQL may name."""
    own = keeper._engines.spark
    for name in ("items", "groups", "stars"):
        if name in (*keeper.tables, *keeper.views):
            table = keeper._lake.at(location(keeper, name))
            snapshot = table.snapshot()
            read_frame(own, table, snapshot, snapshot.files).createOrReplaceTempView(name)
    return Counter(to_rows(own.sql(sql).toArrow()))


class Others:
    """Another writer of a registered table: whole rows replaced by deltalake."""

    def __init__(self, place: Path, table: Table, rows: dict[int, Any], feed: bool) -> None:
        self.place, self.table, self.rows = place, table, rows
        settings = {"delta.enableChangeDataFeed": "true"} if feed else {}
        write_deltalake(place, self._arrow(), configuration=settings)

    def _arrow(self) -> pa.Table:
        return to_arrow(self.table.columns, list(self.rows.values()))

    def change(self, changed: dict[int, Any]) -> None:
        for key, row in changed.items():
            self.rows.pop(key, None)
            if row is not None:
                self.rows[key] = row
        write_deltalake(self.place, self._arrow(), mode="overwrite")


def random_changes(rng: Random, rows: dict[int, Any], table: Table) -> dict[int, Any]:
    """New rows by key: inserts, deletes (None), and updates of one nested column alone."""
    changed: dict[int, Any] = {}
    for key in rng.sample(range(12), 4):
        old = rows.get(key)
        if old is None:
            changed[key] = random_row(rng, table, key)
        elif rng.random() < 0.3:
            changed[key] = None
        else:
            place = rng.randrange(1, len(old))
            new = list(old)
            new[place] = random_value(rng, table.columns[place].type)
            changed[key] = tuple(new)
    return changed


def applied(keeper: Keeper, rows: dict[int, Any], changed: dict[int, Any]) -> None:
    names = GROUPS.names
    keeper.apply(
        "groups",
        inserts=[row for key, row in changed.items() if row is not None and key not in rows],
        updates=[
            dict(zip(names, row, strict=True))
            for key, row in changed.items()
            if row and key in rows
        ],
        deletes=[(key,) for key, row in changed.items() if row is None],
    )
    rows.update({key: row for key, row in changed.items() if row is not None})
    for key in [key for key, row in changed.items() if row is None]:
        del rows[key]


@pytest.mark.parametrize(("feed", "driver_bytes"), [(True, 1 << 20), (False, 0)])
def test_carried_columns_against_spark(
    spark: SparkSession, tmp_path: Path, feed: bool, driver_bytes: int
) -> None:
    rng = Random(driver_bytes)
    items = {key: random_row(rng, ITEMS, key) for key in range(6)}
    groups = {key: random_row(rng, GROUPS, key) for key in range(3)}
    others = Others(tmp_path / "items", ITEMS, items, feed)
    keeper = Keeper(tmp_path / "lake", spark)
    set_driver_bytes(keeper, driver_bytes)
    keeper.register_table("items", tmp_path / "items", key=["id"])
    keeper.create_table("groups", GROUPS, rows=list(groups.values()))
    assert keeper.tables["items"].columns == ITEMS.columns
    views = (
        VIEWS
        if LONG or driver_bytes
        else {n: VIEWS[n] for n in ("stars", "joined", "above", "by_nested")}
    )
    for name, sql in views.items():
        keeper.create_view(name, sql)
    for _ in range(5 if LONG else 2 if driver_bytes else 1):
        others.change(random_changes(rng, items, ITEMS))
        applied(keeper, groups, random_changes(rng, groups, GROUPS))
        strategies = {report.view: report.strategy for report in keeper.refresh()}
        assert set(strategies.values()) <= {"id", "none"}, strategies
        for name, sql in views.items():
            assert rows_of(location(keeper, name)) == expected(keeper, sql), name
    if LONG or not driver_bytes:
        check_verified(keeper)


def test_a_nested_value_is_kept_or_refused(spark: SparkSession, tmp_path: Path) -> None:
    """As it is given by Python, Arrow, pandas or Spark; what is inside fits as columns do."""
    table = Table({"s": "struct<x:int,y:float>", "id": "int", "l": "array<date>"}, key=["id"])
    keeper = Keeper(tmp_path, spark)
    row = {"s": {"x": 1, "y": 0.1}, "id": 1, "l": [date(2026, 1, 2), None]}
    frame = pd.DataFrame([row | {"id": 2}])
    arrow = pa.Table.from_pylist([row | {"id": 3}])
    ddl = "s struct<x:int,y:float>, id int, l array<date>"
    keeper.create_table("t", table, rows=spark.createDataFrame([tuple(row.values())], ddl))
    keeper.apply("t", inserts=frame)
    keeper.apply("t", inserts=arrow)
    keeper.apply("t", inserts=[tuple((row | {"id": 4}).values()), (None, 5, None)])
    near = struct.unpack("f", struct.pack("f", 0.1))[0]
    same = [((1, near), id_, (date(2026, 1, 2), None)) for id_ in (1, 2, 3, 4)]
    assert rows_of(tmp_path / "t", table.names) == Counter([*same, (None, 5, None)])
    assert keeper.apply("t", updates=[row]) == 3, "nothing has changed"
    assert keeper.apply("t", updates=[{"id": 5, "l": []}], deletes=[(1,)]) == 4
    assert rows_of(tmp_path / "t", table.names) == Counter([*same[1:], (None, 5, ())])
    for bad, said in (
        ({"x": 1.5, "y": 0.0}, r'column "s" .*1.5 is no whole number'),
        ({"x": 1, "y": 1e300}, r"too large for a float"),
        ({"x": 1}, r"give a dict with x, y"),
        ([1], r"give a dict with x, y"),
        (5, r"of type int; give a dict with x, y"),
    ):
        with pytest.raises(SchemaError, match=said):
            keeper.apply("t", updates=[{"id": 2, "s": bad}])
    with pytest.raises(SchemaError, match=r"give a datetime.date"):
        keeper.apply("t", updates=[{"id": 2, "l": [datetime(2026, 1, 2)]}])


REFUSED = {
    "SELECT DISTINCT counts FROM items": r'"counts" is map<string,int>, and rows would be compared',
    "SELECT deep FROM items UNION SELECT deep FROM items": r'column "deep" is array<map<int',
    "SELECT counts FROM items EXCEPT SELECT counts FROM items": r'column "counts" is map<string',
    "SELECT a.id FROM items a JOIN items b ON a.deep = b.deep": r"a.deep` is array<map<int",
    "SELECT a.id FROM items a JOIN items b USING (counts)": r"a.counts` is map<string,int>",
    "SELECT id FROM items WHERE deep IN (SELECT deep FROM items)": r"items.deep` is array<map<int",
    "SELECT counts, count(*) AS n FROM items GROUP BY counts": r"items.counts` is map<string,int>",
    "SELECT count(DISTINCT counts) AS m FROM items": r"items.counts` is map<string,int>",
    "SELECT cast(tags AS string) AS t FROM items": r"items.tags` is array<string>",
    "SELECT coalesce(tags, deep) AS t FROM items": r"types must fit together",
    "SELECT tags FROM items UNION ALL SELECT id FROM items": r'column "tags" is array<string> on',
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_a_view_cannot_compute_is_named(sql: str) -> None:
    with pytest.raises(ViewkeepError, match=REFUSED[sql]):
        parse_view(sql, {"items": ITEMS})


TEXTS = st.recursive(
    st.sampled_from(["int", "decimal(6, 2)", "string", "timestamp_ntz", "binary"]),
    lambda inner: st.one_of(
        st.builds("array<{}>".format, inner),
        st.builds("map<string,{}>".format, inner),
        st.builds("struct<a:{},`b ``,>`:{}>".format, inner, inner),
    ),
    max_leaves=5,
)


@given(TEXTS)
def test_types_are_printed_as_they_are_read(text: str) -> None:
    type_ = parse_type(text)
    assert str(type_) == text
    assert declared_type(arrow_type(type_)) == type_
    assert parse_type(text.upper().replace("A:", "a:").replace("`B ``,>`", "`b ``,>`")) == type_
