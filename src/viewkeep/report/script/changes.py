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


def read_change_kinds(view: Node, texts: Iterable[str]) -> dict[str, Kinds]:
    """The kinds of changes by table; columns that no condition tells apart change together.

    A table that only stands in a part of the view that has no rows is left out.
    """
    plan = id_plan(view)
    read = {node.name for node in plan.nodes if isinstance(node, Scan)}
    tables = {node.name: node.table for node in walk(view) if isinstance(node, Scan)}
    rows: dict[str, Kinds] = {}
    columns: dict[str, set[str]] = {}
    for text in (part.strip() for each in texts for part in each.split(",")):
        table, change = _table_and_change(text, tables)
        rows.setdefault(table, [])
        if change in KINDS:
            rows[table].append((KINDS[change], frozenset()))
        else:
            columns.setdefault(table, set()).add(change)
    return {
        table: [*dict.fromkeys(kinds), *_update_kinds(plan, table, columns.get(table, set()))]
        for table, kinds in rows.items()
        if table in read
    }


def _update_kinds(plan: IdPlan, table: str, columns: set[str]) -> Kinds:
    own_columns = (columns & together for together in update_sets(plan, table))
    return [(UPDATE, frozenset(each)) for each in own_columns if each]


def _table_and_change(text: str, tables: dict[str, Table]) -> tuple[str, str]:
    """The table, and the sign or the column."""
    name, change = (text[:-1], text[-1]) if text[-1:] in KINDS else _table_and_column(text)
    if name not in tables:
        raise QueryError(
            f'--changes "{text}": no table "{name}" in the view ({", ".join(tables)})'
            + did_you_mean(name, tables)
        )
    table = tables[name]
    if change in KINDS:
        return name, change
    if change not in table.names:
        raise QueryError(
            f'--changes "{text}": column "{change}" is not in {name} ({", ".join(table.names)})'
            + did_you_mean(change, table.names)
        )
    if not table.key:
        raise QueryError(
            f'--changes "{text}": {name} has no key, and a change of a row is {name}- and {name}+'
        )
    if change in table.key:
        raise QueryError(
            f'--changes "{text}": {change} is in the key of {name}, and a change of it is '
            f"{name}- and {name}+"
        )
    return name, change


def _table_and_column(text: str) -> tuple[str, str]:
    name, dot, column = text.rpartition(".")
    if not dot:
        raise QueryError(
            f'--changes "{text}": write {text}+ for inserts, {text}- for deletes, '
            f"{text}.column for updates of a column"
        )
    return name, column
