"""Scalar types, with Spark SQL's names."""

from dataclasses import dataclass


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
