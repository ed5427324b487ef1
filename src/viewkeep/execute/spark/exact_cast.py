"""The definition of `changes.values` as Spark SQL, for DataFrames that the driver cannot hold.

Of every pair of types: whether a value fits, and the value in the declared type. Nothing here
depends on the settings of the session that the DataFrame belongs to.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from viewkeep.changes import MisfitError, column_converter
from viewkeep.changes.values import EXACT_INTS
from viewkeep.errors import SchemaError
from viewkeep.execute.spark.driver.collect import spark_type, type_text
from viewkeep.query.expressions import back_quote
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import Field

_INTS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_FLOATS = ("float", "double")
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


@dataclass(frozen=True)
class ExactColumn:
    """A column that is brought into its declared type: `fits` is SQL that is never NULL."""

    field: Field
    fits: str
    value: str

    @property
    def sql(self) -> str:
        """The value, or an error in the middle of the job."""
        if self.fits == "TRUE":
            return f"{self.value} AS {back_quote(self.field.name)}"
        error_text = "raise_error('a value does not fit its column')"
        guarded = f"CASE WHEN {self.fits} THEN {self.value} ELSE {error_text} END"
        return f"{guarded} AS {back_quote(self.field.name)}"


def exact_columns(frame: DataFrame, table: Table) -> list[ExactColumn]:
    """How the columns of a DataFrame become those of a table."""
    types = {field.name: field.dataType for field in frame.schema}
    return [
        _exact_column(field, types[field.name], field.name in table.key) for field in table.columns
    ]


def refuse_misfit(name: str, table: Table, frame: DataFrame) -> None:
    """Raise a `SchemaError` for a value that does not fit, if there is one."""
    for column in exact_columns(frame, table):
        if column.fits == "TRUE":
            continue
        field = column.field
        [*bad] = (
            frame.where(f"NOT ({column.fits})").select(back_quote(field.name)).limit(1).collect()
        )
        if not bad:
            continue
        try:
            column_converter(field, field.name in table.key)(bad[0][0])
            problem = f"a {frame.schema[field.name].dataType.simpleString()} does not fit"
        except MisfitError as misfit:
            problem = str(misfit)
        raise SchemaError(f'table "{name}", rows: column "{field.name}" ({field.type}): {problem}')


def _exact_column(field: Field, source: DataType, in_key: bool) -> ExactColumn:
    name = back_quote(field.name)
    fits, value = _exact_value(name, source, field)
    conditions = [] if fits == "TRUE" else [f"({name} IS NULL OR {fits})"]
    if in_key and field.type.name in _FLOATS:
        conditions.append(f"NOT isnan({name})")
    if fits == "TRUE" and field.type.name in ("date", "timestamp"):
        conditions.append(f"coalesce(year({name}) BETWEEN 1 AND 9999, TRUE)")
    return ExactColumn(field, " AND ".join(conditions) or "TRUE", value)


def _exact_value(name: str, source: DataType, field: Field) -> tuple[str, str]:
    """When a value that is not NULL fits, and the value."""
    spark_target = spark_type(field.type)
    target = field.type.name
    cast = f"CAST({name} AS {field.type})"
    kind = source.simpleString().partition("(")[0]
    if field.type.parts:
        same = type_text(source) == str(field.type)
        return ("TRUE", cast) if same else ("FALSE", f"CAST(NULL AS {field.type})")
    if source == spark_target or kind == "void":
        return "TRUE", name if source == spark_target else cast
    if kind in _INTS and target in _INTS:
        most = 2 ** (_INTS[target] - 1) - 1
        return f"{name} BETWEEN -{most}L - 1L AND {most}L", cast
    if kind in _INTS and target in _FLOATS:
        return f"{name} BETWEEN -{EXACT_INTS[target]}L AND {EXACT_INTS[target]}L", cast
    if kind in _FLOATS and target in _INTS:
        most = min(2 ** (_INTS[target] - 1), EXACT_INTS["double"])
        wide = f"CAST({name} AS DOUBLE)"
        top = f"{wide} {'<=' if target == 'bigint' else '<'} {most}D"
        return f"({wide} >= -{most}D AND {top} AND {wide} = floor({wide}))", cast
    if kind in _FLOATS and target in _FLOATS:
        return _narrowed_number(name) if target == "float" else "TRUE", cast
    if (kind in _INTS or kind == "decimal") and target == "decimal":
        tried = f"try_cast({name} AS {field.type})"
        # Compared in the given type: the common type of two decimals may have fewer digits.
        back = f"try_cast({tried} AS {source.simpleString()})"
        return f"coalesce({back} = {name}, FALSE)", tried
    if kind == "timestamp_ntz" and target == "timestamp":
        return "TRUE", f"timestamp_micros(timestampdiff(MICROSECOND, {_EPOCH}, {name}))"
    if target == "string" and kind in ("char", "varchar"):
        return "TRUE", cast
    return "FALSE", f"CAST(NULL AS {field.type})"


def _narrowed_number(name: str) -> str:
    single = f"CAST({name} AS FLOAT)"
    infinite = f"abs({name}) = double('infinity')"
    near = f"abs({single}) < float('infinity') AND ({name} = 0 OR {single} <> 0)"
    return f"(isnan({name}) OR {infinite} OR ({near}))"
