"""Keeps a view by delta scripts through random batches, and compares it with recomputation."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from random import Random
from typing import Any, Protocol

from tests.diffs.diff_columns import delete_columns, insert_columns, update_columns
from tests.diffs.interpret import Relations, Rows, evaluate, run_script
from tests.diffs.random_tables import (
    Database,
    apply_batches,
    random_batch,
)
from viewkeep.changes import ChangeBatch
from viewkeep.diffs.model import DELETE, INSERT, UPDATE
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.compose import compose
from viewkeep.diffs.passes.identify import IdPlan, identify
from viewkeep.diffs.passes.instantiate import RuleDag, instantiate
from viewkeep.diffs.passes.minimize import minimize
from viewkeep.diffs.schemas import base_diffs, every_change, update_sets
from viewkeep.diffs.script import BaseDiff, Script
from viewkeep.query.algebra import Node, Scan, Window
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk

Kinds = dict[str, list[tuple[str, frozenset[str]]]]
Bag = Counter[tuple[Any, ...]]

SIZE = 4
"""The most changes of a batch."""


@dataclass(frozen=True)
class BaseChanges:
    """The changes of a batch that concern a view: their kinds, and the rows of each diff."""

    kinds: Kinds
    diffs: Mapping[str, tuple[Table, dict[str, list[Any]]]]


def base_changes(plan: IdPlan, batches: Mapping[str, ChangeBatch]) -> BaseChanges:
    """The diffs that a script for just these changes reads."""
    read_tables = {node.name for node in walk(plan.root) if isinstance(node, Scan)}
    kinds: Kinds = {}
    columns: dict[tuple[str, str, frozenset[str]], dict[str, list[Any]]] = {}
    for name, batch in batches.items():
        if name not in read_tables:
            continue
        nothing, table = frozenset[str](), batch.table
        if batch.inserts:
            columns[name, INSERT, nothing] = insert_columns(table, batch.inserts)
        if batch.deletes:
            columns[name, DELETE, nothing] = delete_columns(table, batch.deletes)
        for changed, updates in batch.by_changed(update_sets(plan, name)).items():
            columns[name, UPDATE, changed] = update_columns(table, updates)
    for name, kind, changed in columns:
        kinds.setdefault(name, []).append((kind, changed))
    diffs: list[BaseDiff] = list(base_diffs(plan, kinds))
    rows = dict(zip((d.name for d in diffs), columns.values(), strict=True))
    return BaseChanges(kinds, {d.name: (batches[d.table].table, rows[d.name]) for d in diffs})


def expect(name: str, found: Bag, expected: Bag) -> None:
    """Two bags are equal; what is too much and what is missing is told."""
    assert found == expected, f"{name}: too much {found - expected}, missing {expected - found}"


_DIGITS, _WIDE = Decimal("0.000001"), Context(prec=60)


def rounded(bag: Bag) -> Bag:
    """Numbers with a fraction with the digits that are sure: quotients of decimals have no scale in
    Python."""
    return _mapped(bag, _rounded)


def _rounded(value: Any) -> Any:
    if isinstance(value, Decimal) and value.is_finite():
        return value.quantize(_DIGITS, context=_WIDE)
    return round(value, 6) + 0 if isinstance(value, float) else value


def plain(bag: Bag) -> Bag:
    """All numbers as rounded floats: DuckDB's own answer has other number types."""
    return _mapped(bag, lambda v: round(float(v), 4) + 0.0 if _is_number(v) else v)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _mapped(bag: Bag, change: Any) -> Bag:
    result: Bag = Counter()
    for row, count in bag.items():
        result[tuple(map(change, row))] += count
    return result


@dataclass
class PlayedView:
    """A view and its caches in Python, which runs scripts faster on small tables."""

    node: Node
    tables: Mapping[str, Table]
    database: Database
    tuple_based: bool = False
    optimized: bool = True

    def __post_init__(self) -> None:
        self.plan = identify(optimize(self.node) if self.optimized else self.node)
        full = instantiate(
            self.plan, base_diffs(self.plan, every_change(self.plan)), self.tuple_based
        )
        self.materialized = compose(full).materialized
        self.kept = self._recomputed()
        self._scripts: dict[str, tuple[RuleDag, Script]] = {}

    def refresh(self, batches: Mapping[str, ChangeBatch], minimized: bool = True) -> None:
        """Change the tables, and the view by the script for the kinds of changes there are."""
        script, relations = self.prepare(batches, minimized)
        self.kept, _ = run_script(script, relations, self.kept)

    def prepare(
        self, batches: Mapping[str, ChangeBatch], minimized: bool = True
    ) -> tuple[Script, Relations]:
        """Change the tables; the script that follows, and what it reads."""
        changes = base_changes(self.plan, batches)
        before, self.database = self.database, apply_batches(self.database, batches)
        read_ = {
            name: list(zip(*columns.values(), strict=True))
            for name, (_, columns) in changes.diffs.items()
        }
        relations = {**states(before, "pre"), **states(self.database, "post"), **read_}
        return self._script(changes.kinds, minimized), relations

    def _script(self, kinds: Kinds, minimized: bool) -> Script:
        known = str((kinds, minimized))
        if known not in self._scripts:
            dag = instantiate(self.plan, base_diffs(self.plan, kinds), self.tuple_based)
            script = compose(dag)
            self._scripts[known] = dag, minimize(script) if minimized else script
        self.dag, script = self._scripts[known]
        return script

    def check(self) -> None:
        """The view and all caches equal their definitions, and the view its first tree."""
        self.check_kept()
        if is_determined(self.node):
            answer = evaluate(self.node, self._current())
            expect("visible", as_bag(self.visible()), as_bag(answer))

    def check_kept(self) -> None:
        """The view and all caches equal their definitions, but for rows of a reserve."""
        expected: dict[Any, Any] = self._current()
        for each in self.materialized:
            rows = evaluate(each.definition, expected)
            expected[each.name] = without_reserve(each.definition, rows, self.kept[each.name])
            expect(each.name, as_bag(self.kept[each.name]), as_bag(expected[each.name]))

    def visible(self) -> Rows:
        """The rows of the view as its SQL has them."""
        names = self.materialized[-1].definition.names
        places = [names.index(stored) for _, stored in self.plan.visible]
        return [tuple(row[i] for i in places) for row in self.kept["view"]]

    def _current(self) -> dict[Any, Any]:
        return states(self.database, "post")

    def _recomputed(self) -> dict[str, Rows]:
        found: dict[Any, Any] = self._current()
        return {
            m.name: found.setdefault(m.name, evaluate(m.definition, found))
            for m in self.materialized
        }


def without_reserve(definition: Node, rows: Rows, kept: Rows) -> Rows:
    """The rows of a definition; of first rows with a reserve as many of each partition as are
    kept, if these are no fewer than the definition asks for."""
    if not isinstance(definition, Window) or not definition.reserve:
        return rows
    assert definition.limit is not None
    least, places = definition.limit - definition.reserve, definition.names.index
    by, number = list(map(places, definition.partition_by)), places(definition.columns[0].name)
    counts = Counter(tuple(row[i] for i in by) for row in kept)
    return [row for row in rows if row[number] <= max(least, counts[tuple(row[i] for i in by)])]


def is_determined(node: Node) -> bool:
    """Whether a view has one answer: no function tells rows apart that are equal in its order."""
    windows = [each for each in walk(node) if isinstance(each, Window)]
    return not any(column.is_by_place for each in windows for column in each.columns)


def states(database: Database, state: str) -> dict[Any, Any]:
    """The tables of a database as scans name them."""
    return {(name, state): list(rows.values()) for name, rows in database.items()}


def as_bag(rows: Rows) -> Bag:
    """Rows as a bag that can be compared."""
    return rounded(Counter(rows))


class KeptView(Protocol):
    """A view that follows the changes of its tables."""

    tables: Mapping[str, Table]
    database: Database

    def refresh(self, batches: Mapping[str, ChangeBatch], minimized: bool = True) -> None: ...

    def check(self) -> None: ...


def keep_through_batches(view: KeptView, seed: int, batches: int, composed: int = 2) -> None:
    """Refresh a view often and check it each time; every second script, or the one of so many that
    `composed` says, is not minimized."""
    rng = Random(seed)
    view.check()
    for number in range(batches):
        count = rng.randint(1, SIZE)
        changes = random_batch(view.database, view.tables, rng, count, drawn_kinds(rng))
        before = view.database
        try:
            view.refresh(changes, minimized=bool((number + seed) % composed))
            view.check()
        except Exception as error:
            error.add_note(explain(seed, number, before, changes))
            raise


def drawn_kinds(rng: Random) -> list[str]:
    """Mostly all kinds of changes, sometimes only one or two."""
    kinds = ["insert", "delete", "update"]
    return rng.choice([kinds, kinds, [rng.choice(kinds)], rng.sample(kinds, 2)])


def explain(seed: int, number: int, database: Database, changes: Mapping[str, ChangeBatch]) -> str:
    """What it takes to repeat a failure."""
    told = [f"seed {seed}, batch {number}"]
    told += [f"{name}: {list(rows.values())}" for name, rows in database.items()]
    for name, batch in changes.items():
        told += [f"{name} {k}: {getattr(batch, k)}" for k in ("inserts", "deletes", "updates")]
    return "\n".join(told)
