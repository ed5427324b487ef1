"""The casts that Spark SQL (ANSI mode) adds to arguments whose types do not fit.

text beside a number, date or Boolean   the text is read: as bigint beside whole numbers, as double
                                        beside others, else as the type beside it
an argument that must be text           any value is written as text
a number, date or Boolean expected      text is read as one; a place or count is cut to int

Widening among numbers and among moments needs no cast: the type rules know it. So only texts are
cast beside other values, and indexes and files are looked up by columns as they are.
"""

from collections.abc import Sequence

from viewkeep.query.types.data_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    VOID,
    Type,
)
from viewkeep.query.types.functions import FUNCTIONS
from viewkeep.query.types.rules import common_type, is_numeric
from viewkeep.query.types.signatures import TypedValue

Casts = list[Type | None]
"""For each argument the type that it is cast to, or None."""

_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "div"})
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})
_LOGIC = frozenset({"and", "or"})
_OF_COMMON_TYPE = frozenset({"coalesce", "case", "in", "array"})
_NUMBER_FUNCTIONS = (
    "negate abs round floor ceil sqrt ln exp power sign sum avg try_sum try_avg stddev_samp "
    "stddev_pop var_samp var_pop median skewness kurtosis"
)
_OF_DOUBLES = frozenset(_NUMBER_FUNCTIONS.split())
_OF_BYTES = frozenset({"md5", "sha1", "sha2", "base64", "hex"})
"""What is no text has other bytes than those of its text, or is refused."""
_OF_TEXT_OR_BYTES = frozenset({"reverse", "substring", "left", "right"})
"""Bytes stay bytes."""
_BYTES = {BINARY, VOID}
_EXACT_DAYS = frozenset({"date_add", "date_sub", "timestampadd"})
"""Their numbers are not cut."""
_EXACT_MOMENTS = frozenset({"unix_seconds", "unix_millis", "unix_micros"})
_WIDE_NUMBERS = frozenset({"timestamp_seconds", "timestamp_millis", "timestamp_micros"})


def implicit_casts(function: str, arguments: Sequence[TypedValue]) -> Casts | None:
    """The casts with which a call is what Spark makes of it; None if Spark adds none either.

    >>> from viewkeep.query.types.data_types import DECIMAL
    >>> text, number, price = (TypedValue(t, True) for t in (STRING, INT, DECIMAL(9, 2)))
    >>> [str(each) for each in implicit_casts("=", [text, number])]
    ['bigint', 'None']
    >>> [str(each) for each in implicit_casts("coalesce", [price, text])]
    ['None', 'double']
    >>> [str(each) for each in implicit_casts("concat", [text, number])]
    ['None', 'string']
    >>> implicit_casts("+", [text, text])
    """
    types = [each.type for each in arguments]
    if any(each.is_nested for each in types) or (function == "concat" and {*types} <= _BYTES):
        return None
    if function in _ARITHMETIC or function in _COMPARISONS or function in _LOGIC:
        casts = _casts_of_operator(function, types)
    elif function in _OF_COMMON_TYPE:
        casts = _casts_to_common_type(function, types)
    elif function in _OF_DOUBLES:
        casts = [DOUBLE if each == STRING else None for each in types]
    else:
        casts = [_cast_to_expected(function, *each) for each in enumerate(types)]
    return casts if any(casts) else None


def _casts_of_operator(function: str, types: Sequence[Type]) -> Casts:
    others = [each for each in types if each not in (STRING, VOID)]
    if STRING not in types or len(others) != 1:
        return []
    [other] = others
    if (function in _ARITHMETIC and not is_numeric(other)) or (
        function in _LOGIC and other != BOOLEAN
    ):
        return []
    return [_promoted_type(other) if each == STRING else None for each in types]


def _casts_to_common_type(function: str, types: Sequence[Type]) -> Casts:
    places = list(range(len(types)))
    if function == "case":  # its conditions are Boolean already
        places = [*places[1::2], *places[len(places) & ~1 :]]
    common: Type | None = VOID
    for place in places:
        common = None if common is None else wider_type(common, types[place])
    if common is None or STRING not in (types[place] for place in places):
        return []
    return [common if i in places and each == STRING else None for i, each in enumerate(types)]


def wider_type(first: Type, second: Type) -> Type | None:
    """The type that both fit, if need be by reading text.

    >>> print(wider_type(STRING, INT), wider_type(DATE, INT))
    bigint None
    """
    common = common_type(first, second)
    if common is not None or STRING not in (first, second):
        return common
    return _promoted_type(second if first == STRING else first)


def _promoted_type(other: Type) -> Type:
    """What text beside a value of this type is read as."""
    if other in INTEGRAL:
        return BIGINT
    return DOUBLE if is_numeric(other) else other


def _cast_to_expected(function: str, place: int, type_: Type) -> Type | None:
    signature = FUNCTIONS.get(function)
    expected = signature.expected(place) if signature else ()
    if not expected or type_ in expected or type_ == VOID:
        return None
    if STRING in expected:
        keeps_bytes = type_ == BINARY and function in _OF_TEXT_OR_BYTES
        return None if keeps_bytes or function in _OF_BYTES else STRING
    if INT in expected:
        is_cut = is_numeric(type_) and function not in _EXACT_DAYS
        return INT if function not in _WIDE_NUMBERS and (type_ == STRING or is_cut) else None
    if DATE in expected:
        return DATE if type_ == STRING else None
    if TIMESTAMP in expected:
        is_read = type_ in (STRING, DATE) and function not in _EXACT_MOMENTS
        return TIMESTAMP if is_read else None
    return BOOLEAN if BOOLEAN in expected and type_ == STRING else None
