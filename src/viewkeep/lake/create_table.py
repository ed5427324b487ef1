"""New tables: their columns and rows from what a user gives, and keys that are checked first."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import StructType

from viewkeep.changes import ChangeError
from viewkeep.errors import SchemaError
from viewkeep.execute.spark.collect import type_text
from viewkeep.execute.spark.exact_cast import exact_columns, refuse_misfit
from viewkeep.execute.spark.report import SPARK_ERRORS, named
from viewkeep.query.expressions import quote
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import declared_fields, to_rows
from viewkeep.tables.delta import DataFile, LakeTable, Snapshot
from viewkeep.tables.key_index import KeyIndex
from viewkeep.tables.parquet import WRITE_SETTINGS, Folder, read_frame, write_frame
from viewkeep.tables.user_rows import check_columns, given_rows

Constraints = Mapping[str, Any]


def declared_table(data: Any, key: Sequence[str], constraints: Constraints) -> Table:
    """The columns of what a user gives: a schema in any form, or rows that have one."""
    if isinstance(data, Table):
        return data if data.key else Table({f.name: f for f in data.columns}, key, **constraints)
    return Table(_columns(data), key, **constraints)


def _columns(data: Any) -> Mapping[str, Any]:
    match data:
        case Mapping():
            return data
        case str():
            return _spark_columns(_ddl(data))
        case StructType():
            return _spark_columns(data)
        case DataFrame():
            return _spark_columns(data.schema)
    if hasattr(data, "iterrows"):
        data = pa.Table.from_pandas(data, preserve_index=False)
    if not hasattr(data, "__arrow_c_stream__"):
        raise SchemaError(
            f"{type(data).__name__} has no columns; give a DataFrame, an Arrow table, "
            'or a schema as in {"pid": "int", "price": "double"}'
        )
    return dict(map(_arrow_column, pa.table(data).schema))


def _ddl(text: str) -> StructType:
    try:
        columns = StructType.fromDDL(text)
    except SPARK_ERRORS:
        columns = None
    if not isinstance(columns, StructType):
        raise SchemaError(f'"{text}" is no list of columns, as in "pid int, price double"')
    return columns


def _arrow_column(field: pa.Field) -> tuple[str, Field]:
    kind = pa.timestamp("us", "UTC") if pa.types.is_timestamp(field.type) else field.type
    found = declared_fields(pa.schema([field.with_type(kind)]))
    if not found:
        raise SchemaError(
            f'column "{field.name}" has the type {field.type}, which views cannot read; '
            "convert it or leave it out"
        )
    return field.name, found[0]


def _spark_columns(schema: Any) -> dict[str, str]:
    return {
        field.name: type_text(field.dataType) + ("" if field.nullable else " not null")
        for field in schema
    }


def has_rows(data: Any) -> bool:
    """Whether rows were given, and not only columns."""
    return not isinstance(data, Table | Mapping | str | StructType)


def write_rows(
    spark: SparkSession, name: str, declared: Table, data: Any, table: LakeTable
) -> list[DataFile]:
    """The rows of a new table in files, with keys that are checked; not committed yet."""
    if isinstance(data, DataFrame):
        return _write_frame(spark, name, declared, data, table)
    rows = given_rows(name, "rows", data, declared, declared.names)
    _check_rows(name, declared, rows)
    return [Folder(table).write(rows)] if rows.num_rows else []


def _write_frame(
    spark: SparkSession, name: str, declared: Table, data: DataFrame, table: LakeTable
) -> list[DataFile]:
    """In the order of the key, so that changes of neighbouring keys touch few files."""
    check_columns(f'table "{name}", rows', data.columns, declared, declared.names)
    rows = data.selectExpr(*(column.sql for column in exact_columns(data, declared)))
    with named(f'table "{name}"'), _misfits_named(name, declared, data):
        ordered = rows.repartitionByRange(*(F.col(quote(each)) for each in declared.key))
        with _write_settings(data.sparkSession):
            files = write_frame(ordered, table, declared.key)
        written = Snapshot(table.uri, 0, declared.columns, tuple(files))
        check_frame(name, declared, read_frame(spark, written, files))
    return files


@contextmanager
def _write_settings(session: SparkSession) -> Iterator[None]:
    """A DataFrame is written under the settings of its own session, which is the user's."""
    before = {name: session.conf.get(name) or "" for name in WRITE_SETTINGS}
    try:
        for name, value in WRITE_SETTINGS.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


@contextmanager
def _misfits_named(name: str, declared: Table, data: DataFrame) -> Iterator[None]:
    """After a failure, look for a value that does not fit: its name says more than the job's."""
    try:
        yield
    except SPARK_ERRORS:
        refuse_misfit(name, declared, data)
        raise


def check_frame(name: str, declared: Table, rows: DataFrame) -> None:
    """Refuse keys that stand twice, and NULL where there must be none."""
    keys = [F.col(quote(each)) for each in declared.key]
    twice = rows.groupBy(*keys).count().where("count > 1").limit(1).collect()
    if twice:
        _refuse_repeated(name, declared, tuple(twice[0])[:-1])
    needed = [field.name for field in declared.columns if not field.nullable]
    for found in rows.where(" OR ".join(f"{quote(n)} IS NULL" for n in needed)).limit(1).collect():
        _refuse_null(name, [n for n in needed if found[n] is None])


def check_keys(
    name: str, declared: Table, table: LakeTable, snapshot: Snapshot, spark: SparkSession | None
) -> None:
    """Refuse a version with keys that stand twice, or NULL where there must be none."""
    if spark is not None:
        check_frame(name, declared, read_frame(spark, snapshot, snapshot.files))
        return
    rows = Folder(table).read(snapshot.files, declared.columns)
    _check_rows(name, declared, rows)
    needed = [f.name for f in declared.columns if not f.nullable and rows[f.name].null_count]
    if needed:
        _refuse_null(name, needed)


def _check_rows(name: str, declared: Table, rows: pa.Table) -> None:
    keys = KeyIndex(rows.select(list(declared.key)))
    if keys.repeated is not None:
        _refuse_repeated(name, declared, to_rows(keys.keys.slice(keys.repeated, 1))[0])


def _refuse_repeated(name: str, declared: Table, key: tuple[Any, ...]) -> None:
    said = ", ".join(f"{n} = {value!r}" for n, value in zip(declared.key, key, strict=True))
    raise ChangeError(f'table "{name}", key ({said}): two rows have this key; keep one of them')


def _refuse_null(name: str, columns: Sequence[str]) -> None:
    raise ChangeError(
        f'table "{name}": NULL in {", ".join(columns)}; keys and NOT NULL columns need values'
    )
