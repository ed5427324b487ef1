"""Values of JSON in the types of declared columns; what JSON has no type for stands as text."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from viewkeep.csv_input import read_field
from viewkeep.errors import SchemaError
from viewkeep.query.types.data_types import STRING, TIMESTAMP, Field

ReadJson = Callable[[Any], Any]

_ZONED_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""A moment with its zone, as programs write it."""


class Fraction(str):
    """A number with a fraction or exponent, as it is written: no digit of a decimal gets lost."""


_DECODER = json.JSONDecoder(parse_float=Fraction)
"""Made once: `json.loads` makes one for every line."""


def json_line(line: str) -> Any:
    """The value of a line."""
    try:
        return _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"not JSON: {error}") from None


def json_reader(field: Field) -> ReadJson:
    """The function from a value of JSON to one of the column; exact, or a `SchemaError`.

    >>> from viewkeep.query.types.data_types import DECIMAL
    >>> json_reader(Field("price", DECIMAL(8, 2)))(json_line("1.10"))
    Decimal('1.10')
    """
    read_text = read_field(field)
    is_text, is_nested = field.type == STRING, bool(field.type.parts)

    def read(value: Any) -> Any:
        if isinstance(value, Fraction) and is_text:
            raise SchemaError(f'column "{field.name}" (string): {value} is a number; quote it')
        if isinstance(value, str) and field.type == TIMESTAMP and _ZONED_MOMENT.fullmatch(value):
            return _moment_from_text(value, field)
        if isinstance(value, str) and not is_text:
            return read_text(value)
        return fractions_as_numbers(value, field) if is_nested else value

    return read


def fractions_as_numbers(value: Any, field: Field) -> Any:
    """A nested value whose fractions are numbers of the kind that its type has."""
    kind = Decimal if "decimal" in str(field.type) else float
    if isinstance(value, Fraction):
        return kind(value)
    if isinstance(value, dict):
        return {name: fractions_as_numbers(each, field) for name, each in value.items()}
    return (
        [fractions_as_numbers(each, field) for each in value] if isinstance(value, list) else value
    )


def _moment_from_text(text: str, field: Field) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise SchemaError(f'column "{field.name}" ({field.type}): {error}') from None
