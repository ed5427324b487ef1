"""Types, with Spark SQL's names: scalars, and those that views carry without looking into them."""

import re
from dataclasses import dataclass

from viewkeep.errors import SchemaError, did_you_mean


@dataclass(frozen=True, slots=True)
class Type:
    """A type; only decimals have a precision and a scale, only nested types have parts.

    >>> print(DECIMAL(10, 2), ARRAY(BIGINT), STRUCT(Field("a b", INT)))
    decimal(10, 2) array<bigint> struct<`a b`:int>
    """

    name: str
    precision: int | None = None
    scale: int | None = None
    parts: tuple["Field", ...] = ()

    def __str__(self) -> str:
        if self.name == "struct":
            return (
                f"struct<{','.join(f'{_quoted_part_name(p.name)}:{p.type}' for p in self.parts)}>"
            )
        if self.parts:
            return f"{self.name}<{','.join(str(part.type) for part in self.parts)}>"
        if self.precision is None:
            return self.name
        return f"{self.name}({self.precision}, {self.scale})"

    @property
    def has_map(self) -> bool:
        """Whether there is a map in its values, which Spark cannot compare."""
        return self.name == "map" or any(part.type.has_map for part in self.parts)

    @property
    def has_float(self) -> bool:
        """Whether there is a floating-point number in its values."""
        return self.name in ("float", "double") or any(part.type.has_float for part in self.parts)

    @property
    def has_void(self) -> bool:
        """Whether it is the type of a bare NULL, or has it inside."""
        return self.name == "void" or any(part.type.has_void for part in self.parts)

    @property
    def is_nested(self) -> bool:
        """Whether its values have parts: arrays, structs and maps."""
        return self.name in NESTED


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

TIMESTAMP_NTZ = Type("timestamp_ntz")
MOMENTS = (DATE, TIMESTAMP_NTZ, TIMESTAMP)
"""The types of days and times, narrowest first: views are computed in UTC."""

NESTED = frozenset({"array", "map", "struct"})
"""The names of the types whose values have parts: views carry them, and compare them unless there
are maps in them."""


def ARRAY(element: Type) -> Type:  # noqa: N802 - as above
    """Lists of values."""
    return Type("array", parts=(Field("element", element),))


def MAP(key: Type, value: Type) -> Type:  # noqa: N802 - as above
    """Values by keys."""
    return Type("map", parts=(Field("key", key), Field("value", value)))


def STRUCT(*parts: "Field") -> Type:  # noqa: N802 - as above
    """Rows inside a row; that a part is never NULL is not kept."""
    return Type("struct", parts=tuple(Field(part.name, part.type) for part in parts))


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


_SCALARS = (BOOLEAN, *INTEGRAL, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ)
_SIMPLE = {t.name: t for t in (*_SCALARS, VOID)}
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
    >>> print(parse_type("ARRAY<STRUCT<a: INT, B: map<string, decimal(4, 1)> NOT NULL>>"))
    array<struct<a:int,B:map<string,decimal(4, 1)>>>
    """
    nested = _NESTED.fullmatch(text)
    if nested:
        return _nested_type(nested[1].lower(), _type_parts(nested[2]), text)
    match = _TYPE_FORM.fullmatch(text.lower())
    name, first, second = match.groups() if match else (text.strip(), None, None)
    if match and name in _DECIMALS:
        return _decimal_in_range(int(first or 10), int(second or 0))
    by_name = _SIMPLE | _SYNONYMS
    if match is None or name not in by_name:
        raise SchemaError(f'unknown type "{text}"{did_you_mean(name, [*by_name, *_DECIMALS])}')
    if first is not None and name not in _WITH_LENGTH:
        raise SchemaError(f'unknown type "{text}": {name} takes no length')
    return by_name[name]


_NESTED = re.compile(r"\s*(array|map|struct)\s*<(.*)>\s*", re.IGNORECASE | re.DOTALL)
_PART = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`|([^\s:`]+))\s*:?\s*(.+?)(?:\s+not\s+null)?(?:\s+comment\s+'.*')?\s*",
    re.IGNORECASE | re.DOTALL,
)
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _quoted_part_name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _nested_type(name: str, parts: list[str], text: str) -> Type:
    if len(parts) != {"array": 1, "map": 2}.get(name, len(parts)):
        raise SchemaError(
            f'unknown type "{text}"; write array<int>, map<string,int>, struct<a:int>'
        )
    if name == "array":
        return ARRAY(parse_type(parts[0]))
    if name == "map":
        return MAP(*map(parse_type, parts))
    return STRUCT(*(_struct_field(part, text) for part in parts))


def _struct_field(part: str, text: str) -> Field:
    match = _PART.fullmatch(part)
    if match is None:
        raise SchemaError(f'unknown type "{text}"; a struct is written struct<a:int,b:string>')
    return Field((match[1] or match[2]).replace("``", "`"), parse_type(match[3]))


_COLUMN = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`\s*:?|([^\s:`]+)(?:\s*:|\s))\s*(.+?)(\s+not\s+null)?"
    r"(?:\s+comment\s+'(?:[^'\\]|\\.)*')?\s*",
    re.IGNORECASE | re.DOTALL,
)


def parse_columns(text: str) -> tuple["Field", ...]:
    """Read a list of columns as Spark SQL declares them.

    >>> print(*parse_columns("pid INT NOT NULL, `a b` decimal(10, 2) COMMENT 'x, y'"), sep="; ")
    pid int not null; a b decimal(10, 2)
    """
    fields: dict[str, Field] = {}
    for part in _type_parts(text):
        match = _COLUMN.fullmatch(part)
        if match is None:
            raise SchemaError(f'"{text}" is no list of columns, as in "pid int, price double"')
        name = (match[1] or match[2]).replace("``", "`")
        if name in fields:
            raise SchemaError(f'"{text}": the column "{name}" stands twice; leave one out')
        try:
            fields[name] = Field(name, parse_type(match[3]), match[4] is None)
        except SchemaError as error:
            raise SchemaError(f'column "{name}": {error}') from None
    if not fields:
        raise SchemaError(f'"{text}" is no list of columns, as in "pid int, price double"')
    return tuple(fields.values())


def _type_parts(text: str) -> list[str]:
    """The parts between the commas that stand outside brackets and quotes."""
    parts, depth, quoted = [""], 0, ""
    for sign in text:
        if sign in "`'" and quoted in ("", sign):
            quoted = "" if quoted else sign
        depth += 0 if quoted else (sign in "<(") - (sign in ">)")
        if sign == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return parts if text.strip() else []


def _decimal_in_range(precision: int, scale: int) -> Type:
    if not 1 <= precision <= MAX_PRECISION or scale > precision:
        raise SchemaError(
            f"decimal({precision}, {scale}): the precision must be between 1 and "
            f"{MAX_PRECISION} and the scale at most the precision"
        )
    return DECIMAL(precision, scale)
