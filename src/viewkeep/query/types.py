"""Scalar types, with Spark SQL's names."""

import re
from dataclasses import dataclass

from viewkeep.errors import SchemaError, did_you_mean


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar type; only decimals have a precision and a scale.

    >>> print(DECIMAL(10, 2), BIGINT)
    decimal(10, 2) bigint
    """

    name: str
    precision: int | None = None
    scale: int | None = None

    def __str__(self) -> str:
        if self.precision is None:
            return self.name
        return f"{self.name}({self.precision}, {self.scale})"


def DECIMAL(precision: int, scale: int) -> Type:  # noqa: N802 - reads like the constants beside it
    """The exact decimal type with `precision` digits, `scale` of them after the point."""
    return Type("decimal", precision, scale)


BOOLEAN = Type("boolean")
TINYINT = Type("tinyint")
SMALLINT = Type("smallint")
INT = Type("int")
BIGINT = Type("bigint")
FLOAT = Type("float")
DOUBLE = Type("double")
STRING = Type("string")
BINARY = Type("binary")
DATE = Type("date")
TIMESTAMP = Type("timestamp")
VOID = Type("void")
"""The type of a bare NULL, which fits every other type."""

INTEGRAL = (TINYINT, SMALLINT, INT, BIGINT)
"""The integer types, narrowest first."""

MAX_PRECISION = 38
"""The most digits a decimal can have."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table or of an operator's output.

    >>> print(Field("price", DECIMAL(10, 2), nullable=False))
    price decimal(10, 2) not null
    """

    name: str
    type: Type
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'' if self.nullable else ' not null'}"


_SIMPLE = {t.name: t for t in (BOOLEAN, *INTEGRAL, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP)}
_SYNONYMS = {
    "bool": BOOLEAN,
    "byte": TINYINT,
    "short": SMALLINT,
    "integer": INT,
    "long": BIGINT,
    "real": FLOAT,
    "double precision": DOUBLE,
    "text": STRING,
    "varchar": STRING,
    "char": STRING,
}
_WITH_LENGTH = ("varchar", "char")
_DECIMALS = ("decimal", "numeric", "dec")
_TYPE_FORM = re.compile(r"\s*([a-z]\w*(?: precision)?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*")


def parse_type(text: str) -> Type:
    """Read a type as Spark SQL writes it.

    >>> print(parse_type("INTEGER"), parse_type("decimal(10,2)"), parse_type("varchar(20)"))
    int decimal(10, 2) string
    """
    match = _TYPE_FORM.fullmatch(text.lower())
    name, first, second = match.groups() if match else (text.strip(), None, None)
    if match and name in _DECIMALS:
        return _checked_decimal(int(first or 10), int(second or 0))
    known = _SIMPLE | _SYNONYMS
    if match is None or name not in known:
        raise SchemaError(f'unknown type "{text}"{did_you_mean(name, [*known, *_DECIMALS])}')
    if first is not None and name not in _WITH_LENGTH:
        raise SchemaError(f'unknown type "{text}": {name} takes no length')
    return known[name]


def _checked_decimal(precision: int, scale: int) -> Type:
    if not 1 <= precision <= MAX_PRECISION or scale > precision:
        raise SchemaError(
            f"decimal({precision}, {scale}): the precision must be between 1 and "
            f"{MAX_PRECISION} and the scale at most the precision"
        )
    return DECIMAL(precision, scale)
