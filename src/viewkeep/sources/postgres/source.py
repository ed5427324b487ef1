"""A table of PostgreSQL: its columns and key, and what they are in a lake."""

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import sql

from viewkeep.errors import SchemaError
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import (
    ARRAY,
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRAL,
    MAX_PRECISION,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Field,
    Type,
)
from viewkeep.sources.postgres.server import Connection, SourceError, Text, told_errors

_TYPES: Mapping[str, Type] = {
    "bool": BOOLEAN,
    "int2": SMALLINT,
    "int4": INT,
    "int8": BIGINT,
    "float4": FLOAT,
    "float8": DOUBLE,
    "text": STRING,
    "varchar": STRING,
    "bpchar": STRING,
    "name": STRING,
    "uuid": STRING,
    "json": STRING,
    "jsonb": STRING,
    "bytea": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP_NTZ,
    "timestamptz": TIMESTAMP,
}
_IN_ARRAYS = (BOOLEAN, *INTEGRAL, STRING)

_TABLE = """
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass(%s)
"""
_COLUMNS = """
WITH RECURSIVE column_types AS (
    SELECT a.attnum, a.attname, a.attnotnull, a.atttypid AS type, a.atttypmod AS modifier,
           (SELECT format('%%I.%%I', n.nspname, t.typname) FROM pg_type t
            JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid = a.atttypid) AS declared
    FROM pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT d.attnum, d.attname, d.attnotnull, t.typbasetype,
           CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE d.modifier END, d.declared
    FROM column_types d JOIN pg_type t ON t.oid = d.type WHERE t.typtype = 'd'
)
SELECT k.attname, t.typname, t.typtype::text, t.typcategory::text, e.typname, k.modifier,
       format_type(k.type, k.modifier),
       k.declared, coalesce(array_position((i.indkey::int2[])[0:i.indnkeyatts - 1], k.attnum), -1)
FROM column_types k JOIN pg_type t ON t.oid = k.type
LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
LEFT JOIN pg_index i ON i.indrelid = %s AND i.indisprimary
WHERE t.typtype <> 'd' ORDER BY k.attnum
"""


@dataclass(frozen=True)
class SourceColumn:
    """A column: the name of its type, and the type that it has in a lake, if there is one."""

    name: str
    type_name: str
    type: Type | None
    is_array: bool
    is_numeric: bool
    key_place: int
    cast: str
    """Its type as a cast names it, quoted."""

    def fits(self, declared: Type) -> bool:
        """Whether its values can be read as those of a type that a user has declared."""
        if declared in (self.type, STRING):
            return True
        if self.is_numeric:
            return declared.name == "decimal"
        integral = self.type in INTEGRAL and declared in INTEGRAL
        return integral and INTEGRAL.index(self.type) <= INTEGRAL.index(declared)

    def text(self, of: str) -> Text:
        """Its value as text, in a query over `of`."""
        column = sql.Identifier(of, self.name)
        if self.is_array:
            return sql.SQL("array_to_json({})::text").format(column)
        form = "encode({}, 'hex')" if self.type == BINARY else "{}::text"
        return sql.SQL(form).format(column)


@dataclass(frozen=True)
class SourceTable:
    """A table of PostgreSQL."""

    oid: int
    schema: str
    name: str
    columns: tuple[SourceColumn, ...]

    @property
    def identifier(self) -> Text:
        """Its name in a query."""
        return sql.Identifier(self.schema, self.name)

    @property
    def key(self) -> tuple[SourceColumn, ...]:
        """The columns of its primary key, in their order there."""
        return tuple(sorted((c for c in self.columns if c.key_place >= 0), key=_key_place))

    @property
    def key_needs_settings(self) -> bool:
        """Whether the text of a key depends on settings of the session."""
        plain = (BOOLEAN, *INTEGRAL, STRING)
        return not all(each.type in plain or each.is_numeric for each in self.key)

    def __str__(self) -> str:
        return f'"{self.schema}.{self.name}" of PostgreSQL'


def _key_place(column: SourceColumn) -> int:
    return column.key_place


def find_table(connection: Connection, name: str) -> SourceTable:
    """A table by its name as SQL has it, with its schema or without."""
    with told_errors(f'cannot look up "{name}"'):
        row = connection.execute(_TABLE, (name,)).fetchone()
        if row is None:
            raise SourceError(f'PostgreSQL has no table "{name}" that this user can see')
        oid, schema, table, kind = row
        columns = connection.execute(_COLUMNS, (oid, oid)).fetchall()
    if kind != "r":
        what = "is partitioned; name its partitions" if kind == "p" else "is no table"
        raise SourceError(f'"{schema}.{table}" of PostgreSQL {what}')
    return SourceTable(oid, schema, table, tuple(_column(*each) for each in columns))


def _column(
    name: str,
    type_: str,
    form: str,
    category: str,
    element: str,
    modifier: int,
    full: str,
    cast: str,
    key: int,
) -> SourceColumn:
    is_array, is_numeric = category == "A", type_ == "numeric"
    if is_array:
        inner = _TYPES.get(element)
        found = ARRAY(inner) if inner in _IN_ARRAYS and element not in ("json", "jsonb") else None
    elif is_numeric:
        found = _decimal(modifier)
    else:
        found = STRING if form == "e" else _TYPES.get(type_)
    return SourceColumn(name, full, found, is_array, is_numeric, key, cast)


def _decimal(modifier: int) -> Type | None:
    """The type of a numeric column; None if it has no precision, or one that no type has."""
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    is_known = modifier >= 4 and precision <= MAX_PRECISION and scale <= precision
    return DECIMAL(precision, scale) if is_known else None


def lake_table(source: SourceTable) -> Table:
    """The table that a lake has of one of PostgreSQL; what it cannot have is refused by name."""
    if not source.key:
        raise SchemaError(f"{source} has no primary key, by which changes name rows; give it one")
    for each in source.columns:
        if each.type is None:
            raise SchemaError(
                f'{source}, column "{each.name}": {_refusal(each)}, or make the table in the lake '
                "first (create_table), without the column or with a type that you choose"
            )
    names = {each.name for each in source.key}
    fields = {
        each.name: Field(each.name, each.type, nullable=each.name not in names)
        for each in source.columns
        if each.type is not None
    }
    return Table(fields, [each.name for each in source.key])


def _refusal(column: SourceColumn) -> str:
    if column.is_numeric:
        return f"{column.type_name} has no fixed digits; declare them, as in numeric(12, 2)"
    return f"no type of a lake holds a {column.type_name}; convert it"


def check_columns_of_source(name: str, table: Table, source: SourceTable) -> tuple[str, ...]:
    """Refuse a table of a lake that the columns of PostgreSQL do not fit; those that are left out.

    A table that was made before it captures may have fewer columns, and text for any of them.
    """
    by_name = {each.name: each for each in source.columns}
    for field in table.columns:
        column = by_name.get(field.name)
        if column is None:
            raise SchemaError(f'table "{name}": {source} has no column "{field.name}" any more')
        if not column.fits(field.type):
            raise SchemaError(
                f'table "{name}", column "{field.name}" ({field.type}): it is {column.type_name} '
                f"in {source}, which does not fit"
            )
    key = tuple(each.name for each in source.key)
    if set(key) != set(table.key):
        raise SchemaError(
            f'table "{name}" has the key ({", ".join(table.key)}), but {source} has '
            f"({', '.join(key)})"
        )
    return tuple(each for each in by_name if each not in table.names)
