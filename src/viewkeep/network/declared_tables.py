"""The tables of a view in the forms that people have: text, types by column, schemas, frames."""

from collections.abc import Iterable, Mapping
from typing import Any

from viewkeep.engine.frames import as_table, is_pandas
from viewkeep.errors import MissingLibraryError, SchemaError, did_you_mean
from viewkeep.query.constraints import Key
from viewkeep.query.tables import HIDDEN, Table
from viewkeep.sql import read_schema

Tables = dict[str, Table]

FORMS = (
    'CREATE TABLE statements, or by name: {"parts": vk.Table({"pid": "int"}, key=["pid"])}, types '
    "by column, an Arrow schema, or a frame of pandas, Polars, Arrow or DuckDB"
)


def declare_tables(tables: Any, keys: Iterable[str] = (), static: Iterable[str] = ()) -> Tables:
    """The declared tables, with the keys `parts.pid` and the static ones that are told beside."""
    if isinstance(tables, str):
        declared = read_schema(tables)
    elif isinstance(tables, Mapping):
        declared = {_table_name(name): _declare_table(name, each) for name, each in tables.items()}
    else:
        raise SchemaError(f"tables={type(tables).__name__}: expected {FORMS}")
    for key in map(Key.parse, keys):
        declared[key.relation] = _with_changes(_find_table(key.relation, declared), key=key.columns)
    for name in static:
        declared[name] = _with_changes(_find_table(name, declared), static=True)
    return declared


def _table_name(name: object) -> str:
    if not isinstance(name, str) or not name or name.startswith(HIDDEN):
        raise SchemaError(f"tables: {name!r} is no name of a table")
    return name


def _find_table(name: str, tables: Mapping[str, Table]) -> Table:
    if name not in tables:
        hint = did_you_mean(name, tables)
        raise SchemaError(f'no table "{name}" ({", ".join(tables)}){hint}')
    return tables[name]


def _with_changes(table: Table, **changes: Any) -> Table:
    """The table with another key, or static."""
    parts = {"key": table.key, "foreign_keys": table.foreign_keys, "fds": table.fds}
    return Table(
        {field.name: field for field in table.columns},
        **{**parts, "static": table.static, **changes},
    )


def _declare_table(name: str, declaration: Any) -> Table:
    if isinstance(declaration, Table):
        return declaration
    if isinstance(declaration, Mapping):
        return Table(declaration)
    schema = _arrow_schema(name, declaration)
    if schema is None:
        raise SchemaError(f'table "{name}": {type(declaration).__name__} is none; expected {FORMS}')
    return _table_of_schema(name, schema)


def _arrow_schema(name: str, frame: Any) -> Any:
    """The Arrow schema of a schema or a frame, of which no row is read."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
    except ImportError:
        problem = f'table "{name}": a {type(frame).__name__} is read by pyarrow'
        raise MissingLibraryError(f"{problem}: pip install 'viewkeep[compiled]'") from None
    try:
        if is_pandas(frame):
            return pa.Schema.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "limit"):  # Polars, lazy or not, and DuckDB
            return getattr(as_table(frame.limit(0), name), "schema", None)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaError(f'table "{name}": Arrow cannot read its types: {error}') from error
    schemas = (each for each in (frame, getattr(frame, "schema", None)))
    return next((each for each in schemas if isinstance(each, pa.Schema)), None)


def _table_of_schema(name: str, schema: Any) -> Table:
    from viewkeep.tables.arrow_rows import declared_fields  # loads Arrow

    fields = {field.name: field for field in declared_fields(schema)}
    for column in schema:
        if column.name not in fields:
            raise SchemaError(
                f'table "{name}": column "{column.name}" has the type {column.type}, which views '
                "do not read; cast it, or leave it out"
            )
    return Table(fields)
