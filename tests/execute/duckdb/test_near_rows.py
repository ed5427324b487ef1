"""Scripts run row by row over relations whose rows are looked up by keys, against recomputation."""

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from random import Random
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pytest

from tests.diffs.harness import (
    Bag,
    as_bag,
    expect,
    keep_through_batches,
    rounded,
    states,
    without_reserve,
)
from tests.diffs.in_duckdb import classes, diff_rows, tables_of
from tests.diffs.interpret import evaluate
from tests.diffs.random_tables import Database, apply_batches, as_arrow, random_database
from tests.diffs.views import TABLES, VIEWS
from viewkeep.changes import ChangeBatch
from viewkeep.diffs.generate import generate
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.identify import identify
from viewkeep.diffs.schemas import base_diffs, update_sets
from viewkeep.execute import few_rows
from viewkeep.execute.duckdb.backend import DuckdbBackend
from viewkeep.execute.duckdb.key_look_ups import KeyLookUps
from viewkeep.execute.few_rows import FewRowsRun, LeftToEngineError, PrunedQueries, is_small
from viewkeep.execute.near_rows import KeyValues, NearRowsEvaluation, UnboundedError
from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    GroupBy,
    Join,
    Leaf,
    Node,
    Stored,
    Window,
)
from viewkeep.query.evaluate.rows import Rows
from viewkeep.query.expressions import Call, Column
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import INT, Field
from viewkeep.query.windows import WindowColumn
from viewkeep.sql.parse import parse_view
from viewkeep.tables.arrow_rows import to_arrow, to_rows

BATCHES = 6
LOOKED_UP = Counter[str]()
"""How many runs were done row by row, and how many were left to DuckDB."""


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relations of one row are large."""
    monkeypatch.setattr(few_rows, "ALL_ROWS", -1)
    monkeypatch.setattr(few_rows, "WHOLE_ROWS", 0)


class KeptByKeys:
    """A view and its caches as rows in memory."""

    def __init__(self, node: Node, tables: Mapping[str, Table], database: Database) -> None:
        self.tables, self.database, self._node = tables, database, node
        self._plan = identify(optimize(node))
        self._sets = {name: update_sets(self._plan, name) for name in tables}
        self._kept = generate(node, {}).script
        self._rows: dict[str, Rows] = {}
        self._compute()
        self._backend = DuckdbBackend()

    def _compute(self) -> None:
        relations: dict[Any, Any] = dict(states(self.database, "post"))
        for kept in self._kept.materialized:
            self._rows[kept.name] = relations[kept.name] = evaluate(kept.definition, relations)

    def refresh(self, batches: Mapping[str, ChangeBatch], minimized: bool = True) -> None:
        """Change the tables, and what is kept by the script that fits the changes."""
        after = apply_batches(self.database, batches)
        kinds: dict[str, list[tuple[str, frozenset[str]]]] = {}
        for table, kind, changed in classes(self._sets, batches):
            kinds.setdefault(table, []).append((kind, changed))
        script = generate(self._node, kinds).script
        relations = self._relations(after)
        relations |= diff_rows(self._sets, base_diffs(self._plan, kinds), batches)
        with self._backend.run(script, relations) as done:
            LOOKED_UP[type(done).__name__] += 1
            for name, changes in done.rows.items():
                assert changes is not None
                rows = Counter(self._rows[name])
                rows.subtract(to_rows(changes.old_rows))
                rows.update(to_rows(changes.new_rows))
                assert min(rows.values(), default=0) >= 0, "a row that was not there is gone"
                self._rows[name] = list(rows.elements())
        self.database = after

    def _relations(self, after: Database) -> dict[Any, pa.Table]:
        found: dict[Any, pa.Table] = {}
        for state, database in (("pre", self.database), ("post", after)):
            for name, table in self.tables.items():
                found[name, state] = as_arrow(table, database[name].values())
        for kept in self._kept.materialized:
            found[kept.name] = to_arrow(kept.definition.schema, self._rows[kept.name])
        return found

    def check(self) -> None:
        """All that is kept equals its definition, but for rows of a reserve."""
        relations: dict[Any, Any] = dict(states(self.database, "post"))
        for kept in self._kept.materialized:
            rows: Rows = evaluate(kept.definition, relations)
            relations[kept.name] = without_reserve(kept.definition, rows, self._rows[kept.name])
            found: Bag = rounded(Counter(self._rows[kept.name]))
            expect(kept.name, found, as_bag(relations[kept.name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_every_batch(name: str) -> None:
    seed = 1000 + list(VIEWS).index(name)
    node = parse_view(VIEWS[name], TABLES)
    tables = tables_of(node, TABLES)
    view = KeptByKeys(node, tables, random_database(tables, Random(seed), rows=6))
    keep_through_batches(view, seed, BATCHES)


def test_most_are_run_row_by_row() -> None:
    """Where the tests above were run in the same process."""
    if LOOKED_UP.total() > 100:
        assert LOOKED_UP["FewRowsRun"] > 5 * LOOKED_UP["DuckdbRun"]


class _Leaves:
    """Relations that note what was looked up."""

    def __init__(self, small: str) -> None:
        self._small = small
        self.asked: list[tuple[str, tuple[str, ...], frozenset[Any]]] = []

    def is_large(self, leaf: Leaf) -> bool:
        return leaf.name != self._small

    def whole(self, leaf: Leaf) -> Rows:
        return [(1, 2), (1, None)]

    def near(self, leaf: Leaf, keys: KeyValues) -> Rows:
        self.asked.append((leaf.name, keys.names, keys.values))
        return [(2, 5), (2, 6)]


A, B = (Stored(name, (Field(f"{name}.x", INT), Field(f"{name}.y", INT))) for name in "ab")
EQUAL = Call("=", (Column("a.y"), Column("b.x")))


def test_rows_name_the_keys_of_the_other_side() -> None:
    leaves = _Leaves("a")
    sums = GroupBy(B, ("b.x",), (AggregateColumn("n", "count"),))
    assert NearRowsEvaluation(leaves, 10).rows(Join(sums, A, EQUAL)) == [(2, 2, 1, 2)]
    assert leaves.asked == [("b", ("b.x",), frozenset([(2,)]))], "NULL equals nothing"


@pytest.mark.parametrize(
    "query",
    [
        AntiJoin(B, A, EQUAL),
        Join(GroupBy(B, (), (AggregateColumn("b.x", "count"),)), A, EQUAL),
        Join(A, B, Call("<", (Column("a.y"), Column("b.x")))),
        Join(Window(B, (WindowColumn("n", "row_number"),), ("b.y",)), A, EQUAL),
    ],
)
def test_queries_that_need_all_of_a_large_relation(query: Node) -> None:
    with pytest.raises(UnboundedError):
        NearRowsEvaluation(_Leaves("a"), 10).rows(query)


PAIRS = {"t": Table({"k": INT, "x": INT}, key=["k"])}


def test_a_script_that_met_too_many_rows_is_tried_again_with_half_of_the_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(few_rows, "MOST_ROWS", 20)
    node = parse_view("SELECT a.k, b.k AS other FROM t a JOIN t b ON a.x = b.x", PAIRS)
    script = generate(node, {"t": [("insert", frozenset())]}).script
    [diff] = script.diffs
    queries = PrunedQueries(script)

    def relations(changes: int) -> dict[Any, pa.Table]:
        rows = [(key, 1) for key in range(10 + changes)]
        found: dict[Any, pa.Table] = {
            ("t", "pre"): as_arrow(PAIRS["t"], rows[:10]),
            ("t", "post"): as_arrow(PAIRS["t"], rows),
            diff.name: as_arrow(PAIRS["t"], rows[10:]).rename_columns(["k", "x#post"]),
        }
        for kept in script.materialized:
            found[kept.name] = to_arrow(kept.definition.schema, [])
        return found

    four = relations(4)
    assert is_small(queries, four)
    with ExitStack() as stack, pytest.raises(LeftToEngineError, match="too many rows"):
        FewRowsRun(queries, four, KeyLookUps(four, stack))
    assert [is_small(queries, relations(count)) for count in (1, 2, 3)] == [True, True, False]
