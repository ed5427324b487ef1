"""Values of every type at which engines differ, and every expression of the front end over them."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Context, Decimal
from itertools import product
from math import inf, nan
from random import Random
from typing import Any

from viewkeep.errors import QueryError
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal, literal
from viewkeep.query.types.data_types import DOUBLE, FLOAT, INT, STRING, Field, parse_type
from viewkeep.query.types.functions import FUNCTIONS, UNITS_OF_A_DAY
from viewkeep.query.types.inference import Schema, type_of
from viewkeep.query.types.internal_functions import COMPARABLE, PARTS, SINGLE, TRIED, TRY_CAST
from viewkeep.query.types.signatures import OF_NESTED

Row = tuple[Any, ...]

_NUMBERS = [0, 1, -1, 2, 3, 7]
_WORDS = r"""ab B a_b Äß zz % a% a\b \ abc 10 -7 +3 1.5 1e3 + 1_0 00012 -.5 5. 1d 0x10 0x1p3 1e5f
NaN -Infinity 1e400 1e-400 1e38 3.4028236e38 16777217.0000001 1.5e-3 1.0049 99999999999999999999
123456789012345678901234567890123456789 true 2024-02-29 2023-02-29 2024-02-30 9999-12-31 2024
2024-1 +2024-01-01 -0001-01-01 10000-01-01 12:30 é 😀x ΑΣ ΣΑ İ ŉ ǆ ﬁ"""
_TEXTS = [*_WORDS.split(), "\u0661", "", " ", " 1 ", " ab ", "\t 2\n", "\x1f7\x7f", "\u00a0x"]
_TEXTS += [" NO ", " +inf ", "a\x00b", "2024-2-9 ", "2024-02-29 10:00", "0." + "0" * 40 + "1"]
_DOUBLES = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.25, 0.1, 1.005, 2.675, 0.125, 99.995, 0.045]
_DOUBLES += [1e300, -1e300, 1e-300, 5e-324, 1.7976931348623157e308, inf, -inf, nan, 1e-5, -1e-4]
_DOUBLES += [2.0**63, -(2.0**63), 2147483647.5, -128.9, 1e22, 1e16, 123456.789, 1e15 + 0.5]
_DOUBLES += [1803499683514013e1, 4503599627370497.5]
_SINGLES = [0.0, -0.0, 1.5, -2.25, 16777216.0, 3.4028234663852886e38, 2.0**-149, inf, -inf, nan]
_SINGLES += [0.10000000149011612, 2.0**63, 2147483648.0]

_TIMES = [
    *(datetime(2024, 2, 29, 23, 30), datetime(1970, 1, 1), datetime(1, 1, 1)),
    *(datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2023, 1, 31, 1, 2, 3, 500000)),
    *(datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1582, 10, 4, 12)),
]

VALUES: dict[str, list[Any]] = {
    "tinyint": [*_NUMBERS, -128, 127],
    "smallint": [*_NUMBERS, 32767, -32768],
    "int": [*_NUMBERS, 2**31 - 1, -(2**31), 100_000, 15, -25, -1250],
    "bigint": [*_NUMBERS, 2**63 - 1, -(2**63), 2**53 + 1, 10**10],
    "decimal(5, 2)": ["0.00", "1.50", "-1.50", "999.99", "-999.99", "0.05", "0.01", "2.25"],
    "decimal(2, 2)": ["0.00", "0.50", "-0.99", "0.05"],
    "decimal(15, 2)": ["0.00", "1.00", "-3.00", "9999999999999.99", "0.07"],
    "decimal(20, 4)": ["0.0000", "1.5000", "-7.1250", "9999999999999999.9999", "-0.0001"],
    "decimal(38, 0)": ["0", "1", "-3", "9" * 38, "7", "1" + "0" * 36 + "5", "-" + "9" * 38],
    "decimal(38, 10)": [
        *("0", "1.5", "0.0000000001", "12345678901234567890.1234567895"),
        *("-9999999999999999999999999999.9999999999", "9999999999999999999999999999.5"),
    ],
    "decimal(38, 38)": ["0." + "0" * 38, "0." + "9" * 38, "-0." + "0" * 37 + "5", "0.5"],
    "double": _DOUBLES,
    "float": _SINGLES,
    "string": _TEXTS,
    "date": [
        *(date(2024, 2, 29), date(2023, 12, 31), date(1999, 1, 1), date(1970, 1, 1)),
        *(date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), date(1900, 2, 28)),
        *(date(2000, 1, 31), date(1582, 10, 10)),
    ],
    "boolean": [True, False],
    "timestamp": _TIMES,
    "timestamp_ntz": _TIMES,
    "binary": [b"", b"a", b"\xff", b"ab", b"\x00"],
}
"""By type; decimals as their texts."""

NAMES = list(VALUES)
SCHEMA: Schema = tuple(Field(f"{name}.{i}", parse_type(name)) for name in NAMES for i in (1, 2))
"""Two columns of every type."""

_DIGITS = Context(prec=38)
_FIRST, _SECOND = SCHEMA[::2], SCHEMA[1::2]
_NUMBER_NAMES = NAMES[: NAMES.index("string")]


def edge_rows(count: int, seed: int = 7) -> list[Row]:
    """Rows in which the first column of a type has all of its values, if there are enough."""
    rng = Random(seed)
    return [tuple(_value(field, i, rng) for field in SCHEMA) for i in range(count)]


def _value(field: Field, row: int, rng: Random) -> Any:
    name, _, number = field.name.rpartition(".")
    values = [None, *VALUES[name]]
    value = values[row] if number == "1" and row < len(values) else rng.choice(values)
    if field.type.name == "decimal" and value is not None:
        return Decimal(value).quantize(Decimal(1).scaleb(-(field.type.scale or 0)), context=_DIGITS)
    return value


NESTED = (*PARTS, "sequence", *OF_NESTED - {"concat", "reverse"})
"""Functions of nested values, which `tests/diffs/test_operators.py` and `test_exact_arrays.py`
compare: there are none here, and between edge values lie too many others."""


_OF_LITERALS = (
    *("timestampadd", "case", "round", "date_trunc", "substring_index", "sha2"),
    *("lpad", "rpad", "repeat", "rlike", "regexp_extract", "regexp_replace", "split"),
    TRY_CAST,
)
"""Functions that ask for literals, or make texts as long as an argument says."""


def expressions() -> Iterator[Expression]:
    """Every function, operator and cast, with columns of all types that fit, and literals."""
    for expression in (*_calls(), *_casts(), *_with_literals(), *_texts(), *_nested()):
        try:
            type_of(expression, SCHEMA)
        except QueryError:
            continue
        yield expression


def _calls() -> Iterator[Expression]:
    for function in FUNCTIONS.values():
        if function.name in (COMPARABLE, SINGLE, *NESTED, *_OF_LITERALS):
            continue
        for arity in range(function.least, min(function.most or 3, 3) + 1):
            for a, b in product(_FIRST, _SECOND if arity > 1 else _SECOND[:1]):
                one, two = Column(a.name), Column(b.name)
                if arity == 3:
                    yield Call(function.name, (one, one, two))
                yield Call(function.name, (one, two, two)[:arity])
    for a, places in product(_FIRST, (None, 0, 1, 2, 3, -1, -2, -3, 20, -40)):
        digits = () if places is None else (literal(places),)
        yield Call("round", (Column(a.name), *digits))
    for a, b in product(_FIRST, _SECOND):
        yield Call("case", (Column("boolean.1"), Column(a.name), Column(b.name)))
    for unit, count in product(("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"), (0, -1, 13)):
        yield Call("timestampadd", (literal(unit), literal(count), Column("timestamp.1")))
    for unit in UNITS_OF_A_DAY:
        yield Call("date_trunc", (literal(unit), Column("timestamp.1")))
    for month, day in product(("tinyint.1", "int.2"), ("smallint.1", "int.1")):
        yield Call("make_date", (literal(2024), Column(month), Column(day)))


def _casts() -> Iterator[Expression]:
    for field, target in product(_FIRST, (*NAMES, "decimal(3, 1)", "decimal(30, 5)")):
        yield Cast(Column(field.name), parse_type(target))
        yield Call(TRY_CAST, (Column(field.name), literal(target)))


def _with_literals() -> Iterator[Expression]:
    numbers = (2, -3, 0, 10**10, 0.5, Decimal("1.50"), Decimal("-0.001"), None)
    for operator in ("+", "-", "*", "/", "%", "div", "=", "<", "<=>", "nullif", "coalesce", *TRIED):
        for number, name in product(numbers, _NUMBER_NAMES):
            yield Call(operator, (Column(f"{name}.1"), literal(number)))
            yield Call(operator, (literal(number), Column(f"{name}.1")))


def _texts() -> Iterator[Expression]:
    text = Column("string.1")
    for start in (2, 0, -1, -3, 2**31 - 1, -(2**31)):
        yield Call("substring", (text, literal(start)))
        yield Call("left", (text, literal(start)))
        yield Call("right", (text, literal(start)))
        for length in (0, 1, 3, -1, 2**31 - 1, -(2**31)):
            yield Call("substring", (text, literal(start), literal(length)))
    for pattern in ("a%", "%b", "_", "%", "", "a\\%", "\\\\", "Ä_", "%_x", "__"):
        yield Call("like", (text, literal(pattern)))
    for old, new in (("a", "xx"), ("", "y"), ("ß", "ss"), ("b", "")):
        yield Call("replace", (text, literal(old), literal(new)))
        yield Call("locate", (literal(old), text))
    for name, (length, pad) in product(("lpad", "rpad"), product((0, 5, -3, 2), ("", "*-", "ß"))):
        yield Call(name, (text, literal(length)))
        yield Call(name, (text, literal(length), literal(pad)))
        yield Call(name, (text, Column("tinyint.1"), Column("string.2")))
    for count in (0, 3, -1):
        yield Call("repeat", (text, literal(count)))
        yield from (Call("substring_index", (text, literal(d), literal(count))) for d in ".-1b")
    for old, new in (("ab1", "xyz"), ("a.b", "x"), ("aa", "xy"), ("", "x"), ("Äß😀", "aß")):
        yield Call("translate", (text, literal(old), literal(new)))
    for delimiter, place in product((".", "-", "", "ab", "0"), (1, 2, -1, 0, 9)):
        yield Call("split_part", (text, literal(delimiter), literal(place)))
    for pattern in ("a", "^a", "b$", "^.$", "[0-9]+", r"\\s", r"^\\w*$", "(a|b)_?", "x{2}", "Ä|ß"):
        yield Call("rlike", (text, literal(pattern)))
    for pattern, group in (("(a)(b)?", 1), ("(a)|(b)", 2), (r"(\\d+)\\.(\\d)", 2), ("[a-z]+", 0)):
        yield Call("regexp_extract", (text, literal(pattern), literal(group)))
    for pattern, new in (("[0-9]+", "#"), ("(a)(b)", "<$2$1>"), (r"\\s", ""), ("^.", "ß")):
        yield Call("regexp_replace", (text, literal(pattern), literal(new)))
    for pattern in (".", "a", "-", "ab", "\\.", "[.]", "0", " ", "{"):
        yield Call("split", (text, literal(pattern)))
    for value, bits in product((text, Column("binary.1")), (0, 256)):
        yield Call("sha2", (value, literal(bits)))
    yield Call(
        "concat_ws", (literal(", "), text, Column("string.2"), Cast(Column("int.1"), STRING))
    )


def _nested() -> Iterator[Expression]:
    """What fails inside of what need not be computed, and what is computed of the computed."""
    a, b, text = Column("int.1"), Column("int.2"), Column("string.1")
    cents, price = Column("decimal(5, 2).1"), Column("decimal(15, 2).1")
    share, read = Call("/", (literal(1), b)), Cast(text, INT)
    positive, zero = Call(">", (share, literal(0))), Call("=", (b, literal(0)))
    for function in ("+", "-", "*", "%", "=", "<", "<=>", "in", "nullif", "coalesce", "greatest"):
        yield from (Call(function, (a, right)) for right in (Cast(share, INT), read))
        if function != "nullif":  # whose first argument Spark computes where no error is caught
            yield Call(function, (read, a))
    yield from (Call("/", sides) for sides in ((a, share), (share, Cast(a, DOUBLE)), (read, b)))
    for function in ("and", "or"):
        for left, right in ((zero, positive), (Call("not", (zero,)), positive), (positive, zero)):
            yield Call(function, (left, right))
    yield Call("case", (zero, literal(0.0), share))
    yield Call("case", (positive, literal(1), zero, literal(2), read))
    yield Call("coalesce", (Cast(a, DOUBLE), share, Column("double.1")))
    yield from (Call("in", (a, *more)) for more in ((literal(1), read), (read, literal(1))))
    yield Call("in", (a, literal(1), literal(None), b))
    yield Call("in", (text, literal("ab"), literal("B")))
    yield from (Call(f, (share,)) for f in ("isnull", "isnotnull"))
    yield Call("concat", (text, Cast(read, STRING)))
    yield from (Call("substring", (text, *more)) for more in ((read, a), (a, read)))
    yield Call("like", (text, Cast(read, STRING)))
    yield Call("-", (Call("*", (cents, a)), Call("+", (cents, cents))))
    yield Call("/", (Call("+", (cents, cents)), Call("-", (cents, literal(1)))))
    net = Call("*", (price, Call("-", (literal(1), Column("decimal(15, 2).2")))))
    yield Call("*", (net, Call("+", (literal(1), cents))))
    yield Cast(Call("*", (net, cents)), INT)
    yield Call("date_add", (Column("date.1"), read))
    for function in TRIED:
        yield from (Call(function, (a, right)) for right in (b, share, read, cents))
        yield Call(function, (Call(TRY_CAST, (text, literal("int"))), Call("try_add", (a, b))))
    yield from (Call(TRY_CAST, (each, literal("tinyint"))) for each in (share, read, net))
    yield Call("greatest", (Literal(0.0, DOUBLE), Column("double.1"), Literal(-0.0, DOUBLE)))
    yield Call("least", (Literal(0.0, FLOAT), Column("float.1"), Literal(-0.0, FLOAT)))


def family(expression: Expression) -> str:
    """The function or cast on the outside, with the kinds of its arguments' types."""
    match expression:
        case Cast(argument, target):
            return f"cast {_kind(argument)} {target.name}"
        case Call("try_cast", (argument, Literal(target))):
            return f"try_cast {_kind(argument)} {target}"
        case Call(function, arguments):
            return f"{function} {' '.join(map(_kind, arguments))}"
    return str(expression)


def _kind(argument: Expression) -> str:
    kind = type_of(argument, SCHEMA).type.name
    return kind if isinstance(argument, Column) else f"{kind}*"
