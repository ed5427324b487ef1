"""The columns of tables that the SQL of a view sees: those that the view was defined over.

A column that a table gets later is not seen by views that are there, so that `SELECT *`, NATURAL
JOIN and names without a table go on to mean what they meant. A column that is gone, or has another
type, is lost: it stops the views that read it, and no others.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from viewkeep.errors import SchemaError
from viewkeep.lake.catalog import Catalog, ViewDefinition, typed_columns
from viewkeep.query.algebra import Scan
from viewkeep.query.columns_read import needed_columns
from viewkeep.query.tables import Table
from viewkeep.query.verbatim import Query, Verbatim
from viewkeep.sql.named_columns import may_name_column


class LostColumnError(SchemaError):
    """A view reads a column that its table has no longer, or has with another type."""


def readable_tables(catalog: Catalog, definition: ViewDefinition) -> dict[str, Table]:
    """The tables and views that the SQL of a view may name, with the columns that it sees and that
    are still there."""
    tables = {n: table for n, table in catalog.declared().items() if n != definition.name}
    for name, columns in definition.sees:
        if name in tables:
            now = typed_columns(tables[name])
            tables[name] = table_part(
                tables[name], [n for n, kind in columns if now.get(n) == kind]
            )
    return tables


def tables_as_defined(catalog: Catalog, definition: ViewDefinition) -> dict[str, Table]:
    """The same, also with the columns that are lost, as they were."""
    tables = readable_tables(catalog, definition)
    for name, columns in definition.sees:
        if name in tables:
            now = tables[name]
            tables[name] = Table(dict(columns), now.key, now.foreign_keys, now.fds, now.static)
    return tables


def lost_columns(catalog: Catalog, definition: ViewDefinition) -> dict[str, dict[str, str]]:
    """By table: the columns that a view sees and that are lost, with the type that they have now,
    if they are there."""
    lost: dict[str, dict[str, str]] = {}
    for name, columns in definition.sees:
        now = typed_columns(catalog.entries[name].table)
        changed = {each: now.get(each, "") for each, kind in columns if now.get(each) != kind}
        if changed:
            lost[name] = changed
    return lost


def check_lost_columns(catalog: Catalog, definition: ViewDefinition, query: Query) -> None:
    """Refuse a view that reads a lost column; `query` is its own over `tables_as_defined`."""
    for table, columns in lost_columns(catalog, definition).items():
        for column in columns_read(query, table, columns):
            seen, now = dict(dict(definition.sees)[table])[column], columns[column]
            problem = f"is {now} now, and was {seen}" if now else "is gone"
            raise LostColumnError(
                f'"{definition.name}" reads column "{column}" of table "{table}", which {problem}; '
                "its rows stay as they are: create the view again with replace=True, drop it, or "
                "bring the column back"
            )


def columns_read(query: Query, table: str, names: Iterable[str]) -> list[str]:
    """Those of some columns of a table that a query reads, or may read."""
    if isinstance(query, Verbatim):
        return [name for name in names if may_name_column(query.text, name)]
    read: set[str] = set()
    for node, needed in needed_columns(query).items():
        if isinstance(node, Scan) and node.name == table:
            read |= {name.removeprefix(f"{node.alias}.") for name in needed}
    return [name for name in names if name in read]


def table_part(table: Table, names: Collection[str]) -> Table:
    """A table with some of its columns, and what is declared of these.

    >>> parts = Table({"pid": "int", "price": "int"}, key=["pid"], fds=["price -> pid"])
    >>> print(*table_part(parts, ["price"]).columns, table_part(parts, ["price"]).key)
    price int ()
    """
    fields = {field.name: field for field in table.columns}
    return Table(
        {name: fields[name] for name in names},
        table.key if set(table.key) <= set(names) else (),
        [each for each in table.foreign_keys if set(each.columns) <= set(names)],
        [each for each in table.fds if {*each.determinant, *each.dependent} <= set(names)],
        table.static,
    )


def with_seen_columns(
    definition: ViewDefinition, table: str, columns: Mapping[str, str], now: Mapping[str, str]
) -> ViewDefinition:
    """A view that sees these columns of a table, which has others `now`."""
    sees = {name: dict(seen) for name, seen in definition.sees} | {table: dict(columns)}
    if list(columns.items()) == list(now.items()):
        del sees[table]
    return replace(definition, sees=tuple((n, tuple(each.items())) for n, each in sees.items()))
