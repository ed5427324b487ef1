"""Values of Debezium's JSON in the types of declared columns.

Dates are days since 1970, times numbers of a unit that the schema tells, decimals and binary values
base64. Without a schema, a number for a timestamp is refused: its unit is not known.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from viewkeep.errors import SchemaError
from viewkeep.query.types.data_types import BINARY, DATE, Field
from viewkeep.sources.json_values import ReadJson, json_reader

_DAYS = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")
_UNITS = {
    "io.debezium.time.Timestamp": 1_000_000,
    "org.apache.kafka.connect.data.Timestamp": 1_000_000,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1,
}
"""The nanoseconds in which a kind of time is counted."""
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_ANY_DECIMAL = "io.debezium.data.VariableScaleDecimal"


@dataclass(frozen=True)
class ColumnSchema:
    """What the schema of an envelope tells of a column: a name of what it means, and a scale."""

    name: str = ""
    scale: int = 0

    @staticmethod
    def of(field: Mapping[str, Any]) -> "ColumnSchema":
        """The schema of a field in JSON."""
        scale = (field.get("parameters") or {}).get("scale", 0)
        return ColumnSchema(field.get("name") or "", int(scale))


@lru_cache(1024)
def value_reader(field: Field, schema: ColumnSchema | None) -> ReadJson:
    """The function from a value of an envelope to one of the column; exact, or a `SchemaError`.

    >>> value_reader(Field("day", DATE), None)(1)
    datetime.date(1970, 1, 2)
    """
    kind = schema or ColumnSchema()
    read_encoded = _encoded_value_reader(field, kind)
    read_plain = json_reader(field)

    def read(value: Any) -> Any:
        try:
            if read_encoded is not None and value is not None and _is_encoded(value, field):
                return read_encoded(value)
        except (ValueError, TypeError, OverflowError, KeyError, binascii.Error) as error:
            raise SchemaError(f'column "{field.name}" ({field.type}): {error}') from None
        return read_plain(value)

    return read


def _is_encoded(value: Any, field: Field) -> bool:
    """Whether a value is in Debezium's form, not text that says what it is."""
    return isinstance(value, int | dict) or field.type == BINARY or field.type.name == "decimal"


def _encoded_value_reader(field: Field, schema: ColumnSchema) -> Callable[[Any], Any] | None:
    if schema.name == _DECIMAL:
        return lambda value: _decode_decimal(value, schema.scale)
    if schema.name == _ANY_DECIMAL:
        return lambda value: _decode_decimal(value["value"], int(value["scale"]))
    if schema.name in _UNITS:
        return lambda value: _moment_from_units(value, _UNITS[schema.name])
    if schema.name in _DAYS or (field.type == DATE and not schema.name):
        return lambda value: date(1970, 1, 1) + timedelta(days=value)
    if field.type == BINARY:
        return lambda value: b64decode(value, validate=True)
    return None


def _decode_decimal(text: str, scale: int) -> Decimal:
    number = int.from_bytes(b64decode(text, validate=True), "big", signed=True)
    return Decimal(number).scaleb(-scale)


def _moment_from_units(value: int, unit: int) -> datetime:
    micros, rest = divmod(value * unit, 1_000)
    if rest:
        raise ValueError(f"{value} has parts of a microsecond")
    return datetime(1970, 1, 1) + timedelta(microseconds=micros)
