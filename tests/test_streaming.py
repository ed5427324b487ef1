"""Queries inside Spark's stateful operator: at every batch what the query gives from scratch."""

import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from tests.oracle import recompute
from viewkeep import Keeper, Table, ViewkeepError, from_sql, maintain, parse, streaming
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.streaming import (
    DELETE,
    GroupStep,
    KeyedQuery,
    check_spread,
    key_places,
    maintain_stream,
    net_changes,
    operation_name,
    shared_variables,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
ROUNDS = 300 if LONG else 15
QUERIES = {
    "Q(a, b, c) = R(a, b) * S(a, c)": ("a",),
    "Q(a, c) = R(a, b) * S(a, c)": ("a",),
    "Q(a; sum(b), count()) = R(a, b) * S(a, c)": ("a",),
    "Q(a; min(c), max(b)) = R(a, b) * S(a, c)": ("a",),
    "Q(a, b) = R(a, b) * R(a, c)": ("a",),
    "Q(a, b) = R(a, b) * S(b, a)": ("a", "b"),
    "Q(b, a) = R(a, b) * S(a, c)": ("a",),
}
Row = tuple[Any, ...]
Change = tuple[str, Row, int]


class FakeState:
    """The state of a group as Spark hands it over."""

    def __init__(self) -> None:
        self.exists, self.get = False, (b"",)

    def update(self, value: tuple[bytes]) -> None:
        self.exists, self.get = True, value

    def remove(self) -> None:
        self.exists, self.get = False, (b"",)

    def copy(self) -> "FakeState":
        other = FakeState()
        other.exists, other.get = self.exists, self.get
        return other


def frame(query: ConjunctiveQuery, changes: list[Change]) -> pd.DataFrame:
    """Changes as Spark hands them over: a column of rows for each relation."""
    columns: dict[str, list[Any]] = {"multiplicity": [sign for _, _, sign in changes]}
    for number, name in enumerate(query.relations):
        columns[f"row{number}"] = [
            {f"c{n}": value for n, value in enumerate(row)} if relation == name else None
            for relation, row, _ in changes
        ]
    return pd.DataFrame(columns)


def random_changes(random: Random, query: ConjunctiveQuery, rows: list[Change]) -> list[Change]:
    """Inserts, and deletes of rows that are there; some rows come and go in one batch."""
    changes = []
    for _ in range(random.randrange(1, 6)):
        if rows and random.random() < 0.4:
            relation, row, _ = rows.pop(random.randrange(len(rows)))
            changes.append((relation, row, -1))
        else:
            relation = random.choice(query.relations)
            width = len(query.columns_of(relation))
            row = tuple(random.randrange(3) for _ in range(width))
            rows.append((relation, row, 1))
            changes.append((relation, row, 1))
    return changes


def fold(output: dict[Row, Any], told: pd.DataFrame, width: int) -> None:
    """Bring told changes of the output in."""
    for row in told.itertuples(index=False):
        head, payload = tuple(row[:width]), tuple(row[width:-1])
        if row[-1] == DELETE:
            assert head in output, "what is deleted was there"
            del output[head]
        else:
            output[head] = payload


@pytest.mark.parametrize("text", QUERIES)
def test_groups_with_states_of_spark(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, random = parse(text), Random(text)
    by = shared_variables(query)
    assert by == QUERIES[text]
    places = {name: key_places(query, name, by) for name in query.relations}
    width = len(query.outputs)
    columns = tuple(f"o{n}" for n in range(width + (len(query.aggregates) or 1)))
    step = GroupStep(KeyedQuery(query, maintain(query).program), columns)
    monkeypatch.setattr(streaming, "KEPT_GROUPS", 2)
    monkeypatch.setattr(streaming, "_KEPT", streaming.OrderedDict())
    states: dict[Row, FakeState] = {}
    rows: list[Change] = []
    output: dict[Row, Any] = {}
    for _ in range(ROUNDS):
        groups: dict[Row, list[Change]] = {}
        for change in random_changes(random, query, rows):
            key = tuple(change[1][place] for place in places[change[0]])
            groups.setdefault(key, []).append(change)
        for key, changes in groups.items():
            state, frames = states.setdefault(key, FakeState()), [frame(query, changes)]
            tried = [*step(key, frames, state.copy())]  # a task that fails later on
            if random.random() < 0.3:
                streaming._KEPT.clear()  # another worker goes on
            [told] = step(key, frames, state)
            assert sorted(tried[0].to_numpy().tolist(), key=str) == sorted(
                told.to_numpy().tolist(), key=str
            )
            fold(output, told, width)
        database: dict[str, Counter[Row]] = {name: Counter() for name in query.relations}
        for relation, row, _ in rows:
            database[relation][row] += 1
        scratch = recompute(query, database)
        expected = {r: p if isinstance(p, tuple) else (p,) for r, p in scratch.items()}
        assert output == expected
    live = {tuple(row[place] for place in places[name]) for name, row, _ in rows}
    assert {key for key, state in states.items() if state.exists} == live


def test_changes_of_a_batch_are_netted() -> None:
    query = parse("Q(a) = R(a, b) * S(a)")
    changes = [("R", (1, 2), 1), ("S", (1,), 1), ("R", (1, 2), -1)]
    assert net_changes(query.relations, [frame(query, changes)]) == {"S": {(1,): 1}}
    assert operation_name(["a", "OP"]) == "_op"


@pytest.mark.parametrize(
    ("text", "by", "reason"),
    [
        ("Q() = R(a, b) * S(a)", (), "no output is in all atoms"),
        ("Q(b) = R(a, b) * S(a)", ("a",), "which the head has to have"),
        ("Q(a, b) = R(a, b) * S(b)", ("a",), r"but S\(b\) has no a"),
        ("Q(b) = R(a, b) * R(b, c)", ("b",), "at several places of R"),
        ("Q(b | a) = R(a, b)", ("b",), "has inputs"),
    ],
)
def test_queries_that_cannot_be_spread(text: str, by: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ViewkeepError, match=reason):
        check_spread(parse(text), by)


def test_streams_that_are_not_there() -> None:
    frame = SimpleNamespace(columns=["a"])
    with pytest.raises(ViewkeepError, match='no stream of the relation "S"'):
        maintain_stream("Q(a) = R(a) * S(a)", {"R": frame}, "a int, n bigint")
    with pytest.raises(ViewkeepError, match='there is no relation "T"'):
        maintain_stream("Q(a) = R(a)", {"R": frame, "T": frame}, "a int, n bigint")
    with pytest.raises(ViewkeepError, match='"R" has no column "b"'):
        maintain_stream("Q(a) = R(a, b)", {"R": frame}, "a int, n bigint")


# --- on Spark -------------------------------------------------------------------------------------

TABLES = {
    "orders": Table({"oid": "int", "cid": "int", "price": "bigint"}, key=["oid"]),
    "customers": Table({"cid": "int", "name": "string"}, key=["cid"]),
}
SQL = """
    SELECT o.cid, c.name, sum(o.price) AS total, count(*) AS orders
    FROM orders o JOIN customers c ON o.cid = c.cid GROUP BY o.cid, c.name
"""
BIG = 2**53 + 1
"""More than a double holds."""


class Shop:
    """Tables whose changes lie in files, as streams of Spark."""

    def __init__(self, spark: "SparkSession", place: Path, seed: int) -> None:
        self.spark, self.place, self.random = spark, place, Random(seed)
        self.rows: dict[str, dict[int, Row]] = {"orders": {}, "customers": {}}
        for name in TABLES:
            (place / name).mkdir()

    def change(self, batch: int, count: int) -> None:
        """Write files of random changes."""
        for name in TABLES:
            told = [line for _ in range(count) for line in self._change(name)]
            text = "".join(json.dumps(line) + "\n" for line in told)
            (self.place / name / f"{batch}.json").write_text(text)

    def _change(self, name: str) -> list[dict[str, Any]]:
        key, rows, told = self.random.randrange(6), self.rows[name], []
        if key in rows:
            told.append({**self._document(name, rows.pop(key)), "multiplicity": -1})
        if self.random.random() < 0.7:
            more = (f"n{key % 2}",) if name == "customers" else self._order()
            rows[key] = (key, *more)
            told.append({**self._document(name, rows[key]), "multiplicity": 1})
        return told

    def _order(self) -> Row:
        return self.random.choice([None, 0, 1, 2, 3]), BIG * self.random.randrange(1, 4)

    @staticmethod
    def _document(name: str, row: Row) -> dict[str, Any]:
        return dict(zip(TABLES[name].names, row, strict=True))

    def streams(self) -> dict[str, "DataFrame"]:
        """The changes of the tables."""
        return {
            name: self.spark.readStream.schema(
                ", ".join(f"{c.name} {c.type}" for c in table.columns) + ", multiplicity int"
            )
            .option("maxFilesPerTrigger", 1)
            .json(str(self.place / name))
            for name, table in TABLES.items()
        }

    def expected(self) -> list[Row]:
        """The rows of the view."""
        groups: dict[Row, list[int]] = {}
        for _, cid, price in self.rows["orders"].values():
            if cid in self.rows["customers"]:
                groups.setdefault(self.rows["customers"][cid], []).append(price)
        return sorted((*key, sum(prices), len(prices)) for key, prices in groups.items())


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    keeper = Keeper(tmp_path / "lake", durable=False)
    columns = {"cid": "int", "name": "string", "total": "bigint", "orders": "bigint"}
    keeper.create_table("totals", columns, ["cid", "name"])
    return keeper


@pytest.mark.skipif("VIEWKEEP_CONNECT" in os.environ, reason="the worker is that of the server")
def test_a_view_from_streams_into_a_table_with_deaths(
    spark: "SparkSession", keeper: Keeper, tmp_path: Path
) -> None:
    shop = Shop(spark, tmp_path, 9)
    query = from_sql(SQL, TABLES)
    schema = "cid int, name string, total bigint, orders bigint"
    view = maintain_stream(query, shop.streams(), schema)
    assert view.columns == ["cid", "name", "total", "orders", "op"]
    sink = keeper.sink("totals", query="totals")

    def run(dies: bool) -> None:
        def take_in(batch: Any, batch_id: int) -> None:
            if dies and batch_id // 2 % 2:
                raise ValueError("dies before it is in the table")
            sink(batch, batch_id)
            if dies:
                raise ValueError("dies before its checkpoint")

        writer = view.writeStream.foreachBatch(take_in).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    for batch in range(12 if LONG else 2):
        shop.change(batch, 8)
        if batch % 2:
            with pytest.raises(Exception, match="dies before"):
                run(dies=True)
            streaming._KEPT.clear()
        run(dies=False)
        rows = sorted(tuple(row.values()) for row in keeper.read("totals").to_pylist())
        assert rows == shop.expected()
    assert rows, "something was kept"
    assert keeper.quarantine("totals").num_rows == 0
