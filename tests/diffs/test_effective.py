"""Every diff of every operator tells the final state, and all of them together tell all of it
(id_based_ivm, section 2): not only those of the view."""

from collections import Counter
from collections.abc import Collection, Mapping
from random import Random
from typing import Any

import pytest

from tests.diffs.harness import PlayedView, as_bag, drawn_kinds, expect, explain, states
from tests.diffs.interpret import Row, Rows, apply_diff, evaluate, run_script
from tests.diffs.random_tables import Database, random_batch, random_database
from tests.diffs.views import TABLES, VIEWS
from viewkeep.diffs.caches import caches
from viewkeep.diffs.model import DELETE, INSERT, UPDATE
from viewkeep.diffs.rules.common import Change
from viewkeep.query.algebra import Node
from viewkeep.query.columns_read import needed_columns
from viewkeep.sql.parse import parse_view

BATCHES = 4


class States:
    """The rows of every operator before and after a batch."""

    def __init__(self, before: Database, after: Database) -> None:
        self._before, self._after = states(before, "post"), states(after, "post")

    def before(self, node: Node) -> Rows:
        return evaluate(node, self._before)

    def after(self, node: Node) -> Rows:
        return evaluate(node, self._after)


def meant(names: tuple[str, ...], rows: Rows, ids: tuple[str, ...]) -> dict[Row, list[Any]]:
    """Rows, as dictionaries, by the values of some IDs."""
    found: dict[Row, list[Any]] = {}
    for row in rows:
        values = dict(zip(names, row, strict=True))
        found.setdefault(tuple(values[name] for name in ids), []).append(values)
    return found


def check_effective(
    change: Change,
    node: Node,
    rows: Rows,
    state: States,
    alone: bool = True,
    read: Collection[str] | None = None,
) -> None:
    """`alone`: all changes of the operator come from one scan; only then is `exact` relied on.
    `read` are the columns that the view reads, all by default: of others diffs may tell anything.
    """
    read = node.names if read is None else read
    exact = change.exact and alone
    schema, where = change.schema, f"{change.name} {change.rule} {change.schema}"
    before = meant(node.names, state.before(node), schema.ids)
    after = meant(node.names, state.after(node), schema.ids)
    for row in rows:
        told = dict(zip(schema.columns, row, strict=True))
        key = tuple(told[name] for name in schema.ids)
        new = {name: told[f"{name}#post"] for name in schema.after if name in read}
        if schema.kind == INSERT:
            assert any(agrees(new, there) for there in after.get(key, ())), f"{where}: {told}"
        if schema.kind == DELETE:
            assert key not in after, f"{where}: {told} stays"
        if schema.kind == UPDATE:
            assert all(agrees(new, there) for there in after.get(key, ())), f"{where}: {told}"
        if schema.kind != INSERT:
            old = {name: told[f"{name}#pre"] for name in schema.before if name in read}
            assert all(agrees(old, there) for there in before.get(key, ())), f"{where}: {told}"
            if exact:
                assert len(before.get(key, ())) == 1, f"{where}: {told} is not one row"
        elif exact:
            assert key not in before, f"{where}: {told} was there"
    if exact:
        assert max(Counter(rows).values(), default=1) == 1, f"{where}: a row twice"


def agrees(told: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    return all(same(value, there[name]) for name, value in told.items())


def same(first: Any, second: Any) -> bool:
    floats = isinstance(first, float) and isinstance(second, float)
    return abs(first - second) < 1e-6 if floats else bool(first == second)


def play(view: PlayedView, rng: Random) -> None:
    """One batch; the diffs of each operator are checked, and applied in a random order."""
    before = view.database
    kinds = drawn_kinds(rng)
    batch = random_batch(before, view.tables, rng, rng.randint(1, 6), kinds)
    try:
        script, relations = view.prepare(batch, minimized=False)
        shuffled = rng.sample(list(script.applies()), len(list(script.applies())))
        view.kept, computed = run_script(script, relations, view.kept, shuffled)
        view.check()
        state = States(before, view.database)
        # Updates of columns that the view does not read are not told.
        needs = needed_columns(view.plan.root, caches(view.plan, tuple_based=False))
        for number, node in enumerate(view.plan.nodes):
            changes = view.dag.changes(number)
            alone = len({source for change in changes for source in change.sources}) == 1
            for change in changes:
                check_effective(change, node, computed[change.name], state, alone, needs[node])
            rows, ids = state.before(node), view.plan.ids[node]
            for change in rng.sample(changes, len(changes)):
                rows = apply_diff(rows, node.names, ids, change.schema, computed[change.name])
            wanted = [i for i, name in enumerate(node.names) if name in {*needs[node], *ids}]
            found, expected = (_picked(each, wanted) for each in (rows, state.after(node)))
            expect(f"operator {number}\n{node}\n", as_bag(found), as_bag(expected))
    except Exception as error:
        error.add_note(explain(0, 0, before, batch))
        raise


def _picked(rows: Rows, places: list[int]) -> Rows:
    return [tuple(row[i] for i in places) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_every_diff_is_effective_and_in_any_order_they_tell_all(name: str) -> None:
    seed = list(VIEWS).index(name) + 1000
    for tuple_based in (False, True):
        rng = Random(seed)
        database = random_database(TABLES, rng, rows=5)
        view = PlayedView(parse_view(VIEWS[name], TABLES), TABLES, database, tuple_based)
        for _ in range(BATCHES):
            play(view, rng)


@pytest.mark.parametrize(
    "name", ["selection", "join on a key", "left join", "aggregate over a union"]
)
def test_a_wrong_diff_is_found(name: str) -> None:
    """The check itself: a value that is not the final one fails it."""
    rng = Random(3)
    database = random_database(TABLES, rng, rows=6)
    view = PlayedView(parse_view(VIEWS[name], TABLES), TABLES, database)
    before = view.database
    batch = random_batch(before, TABLES, rng, 30, ["update"])
    script, relations = view.prepare(batch, minimized=False)
    _, computed = run_script(script, relations, view.kept)
    state, found = States(before, view.database), 0
    for change in view.dag.pieces:
        if isinstance(change, Change) and change.schema.kind == UPDATE and computed[change.name]:
            node = view.plan.nodes[change.operator]
            last = change.schema.columns.index(f"{change.schema.changed[-1]}#post")
            rows = [(*row[:last], "wrong", *row[last + 1 :]) for row in computed[change.name]]
            try:
                check_effective(change, node, rows, state)
            except AssertionError:
                found += 1
    assert found > 0
