"""What the meaning of diffs makes unnecessary: the rules of figure 8, one by one."""

import pytest

import viewkeep as vk
from viewkeep.diffs.model import (
    DELETE,
    INSERT,
    UPDATE,
    DiffSchema,
    base_diff_columns,
    base_diff_name,
)
from viewkeep.diffs.passes.minimize import leave_out, minimize
from viewkeep.diffs.rules.build import project, semijoin
from viewkeep.diffs.rules.common import as_delete
from viewkeep.diffs.script import Apply, BaseDiff, Compute, Materialized, Script
from viewkeep.query.algebra import AntiJoin, Node, Project, Scan, Stored
from viewkeep.query.expressions import Column
from viewkeep.query.traversal import walk

PARTS = vk.Table({"maker": "int", "pid": "int", "price": "int"}, key=["maker", "pid"])
KEY = ("maker", "pid")
SCHEMAS = {
    INSERT: DiffSchema(INSERT, KEY, (), ("price",), ("price",)),
    DELETE: DiffSchema(DELETE, KEY, ("price",)),
    UPDATE: DiffSchema(UPDATE, KEY, ("price",), ("price",), ("price",)),
}


def scan(state: str) -> Scan:
    return Scan("parts", PARTS, "p", state)


def diff_keys(kind: str) -> tuple[BaseDiff, Node]:
    """A diff of the table, and its rows under the names of the scan."""
    diff = BaseDiff(base_diff_name("parts", kind), "parts", SCHEMAS[kind])
    leaf = Stored(diff.name, base_diff_columns(diff.schema, PARTS.columns))
    return diff, project(leaf, {f"p.{c}": Column(c) for c in KEY})


def minimized(query: Node, diff: BaseDiff) -> Script:
    """A script that deletes the rows of a query from a view."""
    schema, rows = as_delete(query, ("p.maker", "p.pid"), ("p.price",))
    view = Materialized("view", scan("post"), ("p.maker", "p.pid"))
    statements = (Compute("rows", rows, schema), Apply("rows", "view", schema))
    return minimize(Script(view, (), (diff,), statements, ()))


def reads_the_table(script: Script) -> bool:
    return any(isinstance(n, Scan) for c in script.computes() for n in walk(c.query))


@pytest.mark.parametrize(
    ("kind", "state", "law"),
    [(INSERT, "post", "C1"), (UPDATE, "post", "C3"), (UPDATE, "pre", "C3"), (DELETE, "pre", "C2")],
)
def test_rows_that_a_diff_names_are_taken_from_the_diff(kind, state, law):
    diff, keys = diff_keys(kind)
    script = minimized(semijoin(scan(state), keys, ("p.maker", "p.pid")), diff)
    [compute] = script.computes()
    assert not reads_the_table(script)
    assert isinstance(compute.query, Project)
    values = {o.name: o.expression for o in compute.query.outputs}
    assert values["p.price#pre"] == Column(f"price#{state}")
    [note] = script.notes
    assert law in note
    assert diff.name in note


@pytest.mark.parametrize(("kind", "state"), [(DELETE, "post"), (INSERT, "pre")])
def test_rows_that_cannot_be_there_are_not_looked_for(kind, state):
    diff, keys = diff_keys(kind)
    script = minimized(semijoin(scan(state), keys, ("p.maker", "p.pid")), diff)
    assert script.statements == ()


@pytest.mark.parametrize(("kind", "state"), [(DELETE, "post"), (INSERT, "pre")])
def test_leaving_out_rows_that_are_not_there_does_nothing(kind, state):
    diff, keys = diff_keys(kind)
    left_out = semijoin(scan(state), keys, ("p.maker", "p.pid"))
    without = AntiJoin(left_out.left, left_out.right, left_out.condition)
    [compute] = minimized(without, diff).computes()
    assert not any(isinstance(n, AntiJoin) for n in walk(compute.query))


def test_a_part_of_the_key_does_not_name_a_row():
    diff, keys = diff_keys(UPDATE)
    script = minimized(semijoin(scan("post"), keys, ("p.pid",)), diff)
    assert reads_the_table(script)
    assert script.notes == ()


def test_the_diff_of_another_table_tells_nothing():
    diff, keys = diff_keys(UPDATE)
    other = BaseDiff(diff.name, "others", diff.schema)
    assert reads_the_table(minimized(semijoin(scan("post"), keys, ("p.maker", "p.pid")), other))


def test_a_relation_that_is_left_out_takes_what_only_it_needs_along() -> None:
    diff, keys = diff_keys(DELETE)
    schema = SCHEMAS[DELETE]
    kept = [Materialized(name, scan("post"), KEY) for name in ("view", "cache")]
    first, second, third = (Compute(name, keys, schema) for name in ("first", "second", "third"))
    reads_second = Compute("third", Stored("second", keys.schema), third.schema)
    applies = (Apply("first", "cache", schema), Apply("third", "view", schema))
    script = Script(kept[0], (kept[1],), (diff,), (first, second, reads_second, *applies), ())
    names = [each.name for each in leave_out(script, {"cache"}).computes()]
    assert names == ["second", "third"]
    assert list(leave_out(script, {"cache"}).applies()) == [applies[1]]
    assert leave_out(script, ()) == script
