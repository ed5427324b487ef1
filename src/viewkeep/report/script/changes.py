"""Which changes a script is wanted for, as people say it: `parts.price`, `parts+`, `parts-`."""

from collections.abc import Iterable

from viewkeep.diffs.id_plan import id_plan
from viewkeep.diffs.model import DELETE, INSERT, UPDATE
from viewkeep.diffs.passes.identify import IdPlan
from viewkeep.diffs.schemas import update_sets
from viewkeep.errors import QueryError, did_you_mean
from viewkeep.query.algebra import Node, Scan
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk

KINDS = {"+": INSERT, "-": DELETE}

Kinds = list[tuple[str, frozenset[str]]]


def read_changes(view: Node, texts: Iterable[str]) -> dict[str, Kinds]:
    """The kinds of changes by table; columns that no condition tells apart change together.

    A table that only stands in a part of the view that has no rows is left out.
    """
    plan = id_plan(view)
    read = {node.name for node in plan.nodes if isinstance(node, Scan)}
    tables = {node.name: node.table for node in walk(view) if isinstance(node, Scan)}
    rows: dict[str, Kinds] = {}
    columns: dict[str, set[str]] = {}
    for text in (part.strip() for each in texts for part in each.split(",")):
        table, what = _split(text, tables)
        rows.setdefault(table, [])
        if what in KINDS:
            rows[table].append((KINDS[what], frozenset()))
        else:
            columns.setdefault(table, set()).add(what)
    return {
        table: [*dict.fromkeys(kinds), *_updates(plan, table, columns.get(table, set()))]
        for table, kinds in rows.items()
        if table in read
    }


def _updates(plan: IdPlan, table: str, columns: set[str]) -> Kinds:
    own_columns = (columns & together for together in update_sets(plan, table))
    return [(UPDATE, frozenset(each)) for each in own_columns if each]


def _split(text: str, tables: dict[str, Table]) -> tuple[str, str]:
    """The table, and the sign or the column."""
    name, what = (text[:-1], text[-1]) if text[-1:] in KINDS else _around_dot(text)
    if name not in tables:
        raise QueryError(
            f'--changes "{text}": no table "{name}" in the view ({", ".join(tables)})'
            + did_you_mean(name, tables)
        )
    table = tables[name]
    if what in KINDS:
        return name, what
    if what not in table.names:
        raise QueryError(
            f'--changes "{text}": column "{what}" is not in {name} ({", ".join(table.names)})'
            + did_you_mean(what, table.names)
        )
    if not table.key:
        raise QueryError(
            f'--changes "{text}": {name} has no key, and a change of a row is {name}- and {name}+'
        )
    if what in table.key:
        raise QueryError(
            f'--changes "{text}": {what} is in the key of {name}, and a change of it is '
            f"{name}- and {name}+"
        )
    return name, what


def _around_dot(text: str) -> tuple[str, str]:
    name, dot, column = text.rpartition(".")
    if not dot:
        raise QueryError(
            f'--changes "{text}": write {text}+ for inserts, {text}- for deletes, '
            f"{text}.column for updates of a column"
        )
    return name, column
