"""What Spark and DuckDB compute of expressions, for every row: a value, or that it fails."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.errors import QueryError
from viewkeep.execute.duckdb.dialect.python_functions import register_python_functions
from viewkeep.execute.duckdb.dialect.queries import DUCKDB
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.spark.driver.collect import CollectedRows
from viewkeep.query.evaluate.compile import compile_expression
from viewkeep.query.expressions import Expression
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.inference import Schema, type_of
from viewkeep.sql.expression_text import expression as spark_text
from viewkeep.tables.arrow_rows import to_arrow

Row = tuple[Any, ...]

FAILS = "fails"
"""In place of a value."""

_CHUNK = 200
_ERROR = re.compile(r"\berror\('(?:[^']|'')*'\)")
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY = 86_400_000_000
OUTSIDE = "outside"
"""A day that is in none of the years 1 to 9999."""


@dataclass(frozen=True)
class Answer:
    """The type of an expression in an engine and its values; no type if it was refused."""

    type: str
    values: tuple[Any, ...]


class SparkEngine:
    """Expressions over rows in Spark, many by one job."""

    def __init__(self, spark: SparkSession, schema: Schema, rows: Sequence[Row]) -> None:
        session = spark.newSession()
        # Otherwise an expression gets the value of one that is the same but for its order.
        session.conf.set("spark.sql.subexpressionElimination.enabled", "false")
        self._frame = CollectedRows(session, schema, to_arrow(schema, rows)).frame
        jvm: Any = spark._jvm
        self._expressions = getattr(
            getattr(jvm.org.apache.spark.sql.classic, "ExpressionUtils$"), "MODULE$"
        )
        self._try = jvm.org.apache.spark.sql.catalyst.expressions.TryEval

    def answers(self, expressions: Sequence[Expression]) -> list[Answer]:
        """What it computes."""
        return self.answers_to_texts([spark_text(each) for each in expressions])

    def answers_to_texts(self, texts: Sequence[str]) -> list[Answer]:
        """What it computes of SQL as users write it."""
        found: list[Answer] = []
        for start in range(0, len(texts), _CHUNK):
            found += self._chunk(texts[start : start + _CHUNK])
        return found

    def _chunk(self, texts: Sequence[str]) -> list[Answer]:
        """Analysis refuses a whole statement for one of its columns."""
        columns = [self._guarded(text).alias(f"c{i}") for i, text in enumerate(texts)]
        try:
            rows = self._frame.select(*columns)
        except PySparkException:
            if len(texts) == 1:
                return [Answer("", ())]
            half = len(texts) // 2
            return [*self._chunk(texts[:half]), *self._chunk(texts[half:])]
        return [_tried(column.combine_chunks()) for column in rows.toArrow().columns]

    def _guarded(self, text: str) -> SparkColumn:
        """An array of the value, or NULL where it fails."""
        value = F.expr(f"array({text})")
        tried = self._try(self._expressions.expression(value._jc))  # type: ignore[attr-defined]
        return type(value)(self._expressions.column(tried))


class DuckdbEngine:
    """Expressions over rows in DuckDB."""

    def __init__(self, schema: Schema, rows: Sequence[Row]) -> None:
        self._schema = schema
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
        register_python_functions(self._connection)
        self._connection.create_function("fail", _fail, ["BIGINT"], "BOOLEAN")
        self._connection.register("given", to_arrow(schema, rows))
        leaves = [f"{DUCKDB.leaf_column(f.name, f.type)} AS {quote_name(f.name)}" for f in schema]
        number = 'row_number() OVER () - 1 AS "#"'
        columns = ", ".join([*leaves, number])
        self._connection.execute(f"CREATE TABLE rows AS SELECT {columns} FROM given")

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()

    def answers(self, expressions: Sequence[Expression]) -> list[Answer]:
        """What it computes."""
        found: list[Answer] = []
        for start in range(0, len(expressions), 20):
            texts = [DUCKDB.value(e, self._schema) for e in expressions[start : start + 20]]
            found += self._chunk(texts)
        return found

    def _chunk(self, texts: Sequence[str]) -> list[Answer]:
        try:
            return [_answer(column) for column in self._columns(texts, "TRUE")]
        except duckdb.Error:
            if len(texts) > 1:
                return [each for text in texts for each in self._chunk([text])]
        return [self._with_failures(texts[0])]

    def _with_failures(self, text: str) -> Answer:
        """The values of the rows for which it has one, and that it fails for the others."""
        fails = self._failing_rows(text)
        good = ", ".join(str(i) for i, failed in enumerate(fails) if not failed)
        [column] = self._columns([text], f'"#" IN ({good or -1})')
        answer = _answer(column)
        values = iter(answer.values)
        return Answer(answer.type, tuple(FAILS if failed else next(values) for failed in fails))

    def _failing_rows(self, text: str) -> list[bool]:
        """By TRY, which takes nothing volatile; if that does not work, row by row."""
        stable = _ERROR.sub('CASE WHEN fail("#") THEN NULL END', text)
        stable = stable.replace("current_query_id() IS NOT NULL", '"#" >= 0')
        tried = f"TRY(struct_pack(v := {stable})) IS NULL"
        try:
            [column] = self._columns([tried], "TRUE")
            return list(column.to_pylist())
        except duckdb.Error:
            [(count,)] = self._connection.execute("SELECT count(*) FROM rows").fetchall()
            return [self._fails(text, i) for i in range(count)]

    def _fails(self, text: str, row: int) -> bool:
        try:
            self._columns([text], f'"#" = {row}')
        except duckdb.Error:
            return True
        return False

    def _columns(self, texts: Sequence[str], condition: str) -> list[pa.Array]:
        columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))
        query = f'SELECT {columns} FROM rows WHERE {condition} ORDER BY "#"'
        table = self._connection.sql(query).to_arrow_table()
        assert table is not None
        return [column.combine_chunks() for column in table.columns]


def _fail(row: int) -> bool:
    raise ValueError(row)


def python_answer(expression: Expression, schema: Schema, rows: Sequence[Row]) -> Answer:
    """What Python computes of an expression."""
    compute = compile_expression(expression, [field.name for field in schema])
    fails, values = [], []
    for row in rows:
        try:
            values.append((compute(row),))
        except QueryError:
            fails.append(len(fails) + len(values))
    result = Field("v", type_of(expression, schema).type)
    answer = _answer(to_arrow((result,), values).column(0).combine_chunks())
    rest = iter(answer.values)
    given = tuple(FAILS if i in fails else next(rest) for i in range(len(rows)))
    return Answer(answer.type, given)


def _answer(column: pa.Array) -> Answer:
    return Answer(_plain_type(column.type), tuple(_plain_values(column)))


def _tried(column: pa.ListArray) -> Answer:
    """The values in a column of arrays; it fails where there is none."""
    answer = _answer(column.flatten())
    values = iter(answer.values)
    valid = column.is_valid().to_pylist()
    return Answer(answer.type, tuple(next(values) if ok else FAILS for ok in valid))


def _plain_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{_plain_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{part.name}: {_plain_type(part.type)}' for part in kind)}>"
    name = str(kind).replace(", tz=UTC", "")
    return name.removeprefix("large_").removesuffix("_view")


def _plain_values(values: pa.Array) -> list[Any]:
    """Values that are equal exactly if they are the same: NaN is, 0.0 and -0.0 are not."""
    kind = values.type
    if pa.types.is_floating(kind):
        return [None if v is None else float.hex(v) for v in values.to_pylist()]
    if pa.types.is_date(kind):
        return [_within(v, 1) for v in values.cast(pa.int32()).to_pylist()]
    if pa.types.is_timestamp(kind):
        return [_within(v, _DAY) for v in values.cast(pa.int64()).to_pylist()]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return list(values.cast(pa.binary()).to_pylist())
    return [_plain_nested(value) for value in values.to_pylist()]


def _plain_nested(value: Any) -> Any:
    """As `_plain_values`, inside of arrays, structs and maps."""
    match value:
        case float():
            return float.hex(value)
        case list() | tuple():
            return [_plain_nested(each) for each in value]
        case dict():
            return {name: _plain_nested(each) for name, each in value.items()}
    return value


def _within(value: int | None, day: int) -> int | str | None:
    if value is not None and not _FIRST_DAY <= value // day <= _LAST_DAY:
        return OUTSIDE
    return value
