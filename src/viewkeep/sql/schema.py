"""CREATE TABLE statements to declared tables."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from viewkeep.errors import ParseError, QueryError, SchemaError, did_you_mean
from viewkeep.query.tables import Reference, Table
from viewkeep.query.types.data_types import Field
from viewkeep.sql.expressions.literals import read_type
from viewkeep.sql.source import Source


def read_schema(sql: str) -> dict[str, Table]:
    """The tables of CREATE TABLE statements, with their primary and foreign keys.

    What says nothing of types, NULLs and keys (comments, defaults, USING delta) is skipped.

    >>> tables = read_schema("CREATE TABLE parts (pid INT PRIMARY KEY, price INT NOT NULL)")
    >>> print(tables["parts"].key, *tables["parts"].columns)
    ('pid',) pid int not null price int not null
    """
    source = Source(sql)
    try:
        declared = _declarations(source)
        return {name: _with_references(name, declared, source) for name in declared}
    except RecursionError:
        raise QueryError("the schema is nested too deeply") from None


Declared = Mapping[str, tuple[Table, exp.Expr]]


def _declarations(source: Source) -> dict[str, tuple[Table, exp.Expr]]:
    declared: dict[str, tuple[Table, exp.Expr]] = {}
    for statement in source.statements():
        schema = statement.this if isinstance(statement, exp.Create) else None
        if not isinstance(schema, exp.Schema) or statement.args.get("kind") != "TABLE":
            problem = "expected CREATE TABLE name (column type, ...)"
            raise ParseError(problem, source.text, source.start_of(statement))
        name = _name_of_create(schema.this)
        if name.lower() in map(str.lower, declared):
            raise source.error(f'table "{name}" is declared twice', schema)
        declared[name] = (_table_of_create(schema, source), schema)
    return declared


def _name_of_create(node: exp.Expr) -> str:
    return ".".join(part.name for part in node.parts) if isinstance(node, exp.Table) else node.name


def _table_of_create(schema: exp.Schema, source: Source) -> Table:
    columns: dict[str, Field] = {}
    keys: list[tuple[str, ...]] = []
    references: list[Reference] = []
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            if part.name in columns:
                raise source.error(f'column "{part.name}" is declared twice', part)
            columns[part.name] = _column_of_create(part, source)
        for constraint in _constraints_of_create(part):
            _read_constraint(constraint, part, keys, references, source)
    if len(keys) > 1:
        raise source.error("a table has one primary key", schema)
    try:
        key = _names_as_declared(keys[0], columns) if keys else ()
        own = [
            replace(each, columns=_names_as_declared(each.columns, columns)) for each in references
        ]
        return Table(columns, key, own)
    except SchemaError as error:
        raise source.error(str(error), schema) from None


def _names_as_declared(names: tuple[str, ...], columns: Iterable[str]) -> tuple[str, ...]:
    """Names as they are declared: SQL does not mind their case."""
    declared = {column.lower(): column for column in columns}
    return tuple(declared.get(name.lower(), name) for name in names)


def _column_of_create(node: exp.ColumnDef, source: Source) -> Field:
    kind = node.args.get("kind")
    if not isinstance(kind, exp.DataType):
        raise source.error(f'column "{node.name}" has no type', node)
    required = any(
        isinstance(part.args.get("kind"), exp.NotNullColumnConstraint)
        and not part.args["kind"].args.get("allow_null")
        for part in node.args.get("constraints") or ()
    )
    return Field(node.name, read_type(kind, source), nullable=not required)


def _constraints_of_create(part: exp.Expr) -> Iterator[exp.Expr]:
    """The constraints in one entry: of a column, or of the table, named or not."""
    match part:
        case exp.ColumnDef():
            for constraint in part.args.get("constraints") or ():
                yield constraint.args["kind"]
        case exp.Constraint():
            yield from part.expressions
        case _:
            yield part


def _read_constraint(
    constraint: exp.Expr,
    part: exp.Expr,
    keys: list[tuple[str, ...]],
    references: list[Reference],
    source: Source,
) -> None:
    match constraint:
        case exp.PrimaryKeyColumnConstraint():
            keys.append((part.name,))
        case exp.PrimaryKey():
            keys.append(tuple(column.name for column in constraint.expressions))
        case exp.ForeignKey():
            columns = tuple(column.name for column in constraint.expressions)
            if constraint.args.get("reference") is None:
                raise source.error("a foreign key needs REFERENCES and a table", constraint)
            references.append(_foreign_key_reference(columns, constraint.args["reference"], source))
        case exp.Reference():
            references.append(_foreign_key_reference((part.name,), constraint, source))
        case exp.Identifier() | exp.Column():
            raise source.error(f'column "{constraint.name}" has no type', part)


def _foreign_key_reference(columns: tuple[str, ...], node: exp.Expr, source: Source) -> Reference:
    """REFERENCES other (columns); without columns, which the other table's key stands for."""
    target = node.this
    if not isinstance(target, exp.Schema):
        return Reference(columns, _name_of_create(target), ())
    names = tuple(column.name for column in target.expressions)
    if len(names) != len(columns):
        raise source.error("a foreign key has as many columns as what it refers to", node)
    return Reference(columns, _name_of_create(target.this), names)


def _with_references(name: str, declared: Declared, source: Source) -> Table:
    """The table with foreign keys that name their tables and columns as these are declared."""
    table, node = declared[name]
    resolved = [
        _resolved_reference(each, name, node, declared, source) for each in table.foreign_keys
    ]
    return Table({f.name: f for f in table.columns}, table.key, dict.fromkeys(resolved))


def _resolved_reference(
    reference: Reference, name: str, node: exp.Expr, declared: Declared, source: Source
) -> Reference:
    (other,) = _names_as_declared((reference.table,), declared)
    if other not in declared:
        hint = did_you_mean(other, declared)
        raise source.error(f'{name}: foreign key to unknown table "{other}"{hint}', node)
    table = declared[other][0]
    columns = _names_as_declared(reference.referenced_columns, table.names) or table.key
    if len(columns) != len(reference.columns):
        problem = f'{name}: foreign key to "{other}", whose key has {len(columns)} columns'
        raise source.error(f"{problem}, not {len(reference.columns)}", node)
    for column in columns:
        if column not in table.names:
            hint = did_you_mean(column, table.names)
            problem = f'{name}: foreign key to "{other}.{column}", which is not there'
            raise source.error(problem + hint, node)
    return Reference(reference.columns, other, columns)
