"""Scalar expressions compiled into Python with exactly the values that Spark SQL computes.

`evaluate/compile.py` needs no types: its integers have no bounds, its decimals no
scale. Here every value has the form of its expression's type, as in Spark, and what Python would
compute otherwise is refused with `InexactError`: when an expression is compiled if no values could
be right (singles, time zones), when a row is evaluated if only these values are not
(overflow, NaN, text outside of ASCII in other case). Whoever gets the error asks Spark.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from math import isfinite
from operator import itemgetter
from typing import Any

from viewkeep.query.evaluate.casts import cast_to
from viewkeep.query.evaluate.decimals import decimal_arithmetic, negative_decimal
from viewkeep.query.evaluate.forms import FORMS, Evaluator, Row, strict_evaluator
from viewkeep.query.evaluate.functions import STRICT
from viewkeep.query.evaluate.tried import without_failure
from viewkeep.query.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OpaqueCall,
    conjuncts,
)
from viewkeep.query.types.data_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRAL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    Type,
)
from viewkeep.query.types.functions import find_function
from viewkeep.query.types.inference import Schema, type_of
from viewkeep.query.types.internal_functions import COMPARABLE, PARTS, SINGLE, TRIED, TRY_CAST
from viewkeep.query.types.rules import common_type, decimal_type, digits, is_decimal

Convert = Callable[[Any], Any]
"""From a value that is not NULL to one in the form of a type."""

_JAVA_DIGITS = 34
"""Spark rounds the negative of a decimal with more."""
_BITS = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}
_PLAIN = ("and", "or", "not", "isnull", "isnotnull", COMPARABLE, SINGLE, *PARTS)
_ALIKE = ("=", "<>", "<", "<=", ">", ">=", "<=>", "in", "coalesce", "greatest", "least")
_ARITHMETIC = ("+", "-", "*", "/", "%", "div")
_TEXT = (
    *("like", "length", "substring", "concat", "left", "right", "locate", "startswith"),
    *("endswith", "trim", "ltrim", "rtrim"),
)
_CASES = ("upper", "lower")
_DAYS = (
    *("year", "quarter", "month", "day", "dayofweek", "dayofyear", "weekofyear"),
    *("date_add", "date_sub", "datediff", "add_months", "last_day"),
)


class InexactError(Exception):
    """Python does not compute this as Spark does."""


def compile_exact(expression: Expression, schema: Schema) -> Evaluator:
    """The function from a row to the value of the expression.

    >>> from viewkeep.query.expressions import literal
    >>> from viewkeep.query.types.data_types import Field
    >>> half = Call("/", (Column("a"), literal(2)))
    >>> compile_exact(half, (Field("a", INT),))((3,))
    1.5
    >>> compile_exact(half, (Field("a", Type("decimal", 4, 2)),))((Decimal("0.03"),))
    Decimal('0.015000')
    >>> compile_exact(half, (Field("a", FLOAT),))
    Traceback (most recent call last):
    ...
    viewkeep.query.evaluate.exact.InexactError: a / 2
    """
    match expression:
        case Column():
            return itemgetter([field.name for field in schema].index(expression.name))
        case Literal():
            return _exact_constant(expression)
        case Cast():
            return _compile_exact_cast(expression, schema)
        case Call():
            return _compile_exact_call(expression, schema)
        case OpaqueCall():
            raise InexactError(f"only Spark computes {expression}")


def compile_exact_condition(condition: Expression, schema: Schema) -> Callable[[Row], bool]:
    """The function that tells whether a condition is TRUE for a row."""
    parts = [compile_exact(part, schema) for part in conjuncts(condition)]
    return lambda row: all(part(row) is True for part in parts)


def fit_to_type(type_: Type) -> Convert:
    """The function that passes values of a type on, and refuses what Spark could not store.

    >>> fit_to_type(TINYINT)(127)
    127
    >>> fit_to_type(TINYINT)(128)
    Traceback (most recent call last):
    ...
    viewkeep.query.evaluate.exact.InexactError: 128 is not a tinyint
    """
    if type_ in INTEGRAL:
        return partial(_in_integer_range, type_, 1 << _BITS[type_] - 1)
    if is_decimal(type_):
        return partial(_decimal_of_digits, type_, cast_to(type_))
    return _finite_double if type_ in (DOUBLE, FLOAT) else _value_as_it_is


def _exact_constant(expression: Literal) -> Evaluator:
    if expression.type == TIMESTAMP:
        raise InexactError(f"{expression} has no time zone")
    value = expression.value
    if value is not None and expression.type in (DOUBLE, FLOAT):
        value = float(value)  # type: ignore[arg-type]  # a number
    return lambda row: value


def _compile_exact_cast(cast: Cast, schema: Schema) -> Evaluator:
    source = type_of(cast.argument, schema).type
    convert = _exact_conversion(source, cast.type, cast)
    return _with_conversion(compile_exact(cast.argument, schema), convert)


def _compile_exact_try_cast(call: Call, schema: Schema) -> Evaluator:
    argument, target = call.arguments[0], type_of(call, schema).type
    convert = _exact_conversion(type_of(argument, schema).type, target, call)

    def converted(value: Any) -> Any:
        try:
            return convert(value)
        except InexactError:  # no value of the type: CAST would fail
            return None

    return _with_conversion(compile_exact(argument, schema), converted)


def _compile_exact_call(call: Call, schema: Schema) -> Evaluator:
    name = find_function(call.function).name
    if name == TRY_CAST:
        return _compile_exact_try_cast(call, schema)
    types = [type_of(argument, schema).type for argument in call.arguments]
    result = type_of(call, schema).type
    targets = _exact_argument_types(call, name, types, result)
    checks = _ASCII if name in _CASES else _NEAR if name in _TEXT else {}
    arguments = [
        _with_conversion(
            compile_exact(argument, schema), checks.get(want) or _exact_conversion(have, want, call)
        )
        for argument, have, want in zip(call.arguments, types, targets, strict=True)
    ]
    form = FORMS.get(name)
    if form is not None:
        return _with_conversion(form(call, arguments), fit_to_type(result))
    rounded = _rounded_operation(TRIED.get(name, name), types, result)
    function = rounded or STRICT[TRIED.get(name, name)]
    if name in TRIED:
        function = without_failure(function)
    evaluate = strict_evaluator(call, function, arguments)
    return evaluate if rounded is not None else _with_conversion(evaluate, fit_to_type(result))


def _exact_argument_types(call: Call, name: str, types: list[Type], result: Type) -> Sequence[Type]:
    """What the arguments are converted to before the function is applied."""
    if name in _PLAIN:
        return types
    if name in _ALIKE or (name == "nullif" and types[0] == types[1]):
        return [_exact_common_type(call, types)] * len(types)
    if name in ("array", "sequence"):
        return [result.parts[0].type] * len(types)
    if name == "case":
        odd = [] if len(types) % 2 == 0 else [result]
        return [BOOLEAN, result] * (len(types) // 2) + odd
    if name in ("negate", "abs") and result != FLOAT:
        return [result]
    if TRIED.get(name, name) in _ARITHMETIC:
        return _exact_operand_types(call, TRIED.get(name, name), types, result)
    text = name in (*_TEXT, *_CASES) and all(t == STRING or t in INTEGRAL for t in types)
    days = name in _DAYS and all(t == DATE or t in INTEGRAL for t in types)
    if text or days:
        return types
    raise InexactError(str(call))


def _exact_operand_types(call: Call, name: str, types: list[Type], result: Type) -> Sequence[Type]:
    if result == DATE or (result in INTEGRAL and all(t in INTEGRAL for t in types)):
        return types
    if result == DOUBLE and FLOAT not in types and name in ("+", "-", "*", "/"):
        return [DOUBLE, DOUBLE]
    if is_decimal(result) and all(t in INTEGRAL or is_decimal(t) for t in types):
        return types
    raise InexactError(str(call))


def _rounded_operation(name: str, types: list[Type], result: Type) -> Callable[..., Any] | None:
    """An operation on decimals whose result Spark rounds; None where the exact one is its own."""
    if not is_decimal(result):
        return None
    precision, scale = digits(result)
    if name in ("negate", "abs"):
        few = precision <= _JAVA_DIGITS
        return None if few else partial(_rounded_negative, name == "abs", precision, scale)
    if name not in _ARITHMETIC:
        return None
    scales = [digits(each)[1] for each in types]
    if scale == {"+": max(scales), "-": max(scales), "*": sum(scales)}.get(name):
        return None  # Python adds integers to decimals as Spark does
    return partial(_rounded_arithmetic, name, precision, scale)


def _rounded_arithmetic(name: str, precision: int, scale: int, left: Any, right: Any) -> Decimal:
    return decimal_arithmetic(name, precision, scale, Decimal(left), Decimal(right))


def _rounded_negative(to_positive: bool, precision: int, scale: int, value: Decimal) -> Decimal:
    return value if to_positive and value >= 0 else negative_decimal(precision, scale, value)


def _exact_common_type(call: Call, types: list[Type]) -> Type:
    common = VOID
    for each in types:
        wider = common_type(common, each)
        if wider is None:
            raise InexactError(str(call))
        common = wider
    if is_decimal(common) and any(
        _digits_before_point(each) > _digits_before_point(common) for each in types
    ):
        raise InexactError(str(call))  # no decimal has digits enough for all of them
    return common


def _digits_before_point(type_: Type) -> int:
    precision, scale = digits(decimal_type(type_))
    return precision - scale


def _exact_conversion(source: Type, target: Type, where: Expression) -> Convert:
    """How a value of one type becomes one of another, where Python does it as Spark does."""
    numbers = source in INTEGRAL or is_decimal(source)
    if source in (target, VOID):
        return _value_as_it_is
    if source in INTEGRAL and target in INTEGRAL:
        return fit_to_type(target)
    if numbers and is_decimal(target):
        return partial(_rounded_decimal, cast_to(target))
    if target == DOUBLE and (numbers or source == FLOAT):
        return float
    if target == STRING and (source in INTEGRAL or source == DATE):
        return str
    raise InexactError(str(where))


def _with_conversion(evaluate: Evaluator, convert: Convert) -> Evaluator:
    if convert is _value_as_it_is:
        return evaluate

    def converted(row: Row) -> Any:
        value = evaluate(row)
        return None if value is None else convert(value)

    return converted


def _value_as_it_is(value: Any) -> Any:
    return value


def _in_integer_range(type_: Type, bound: int, value: int) -> int:
    if not -bound <= value < bound:
        raise InexactError(f"{value} is not a {type_}")
    return value


def _rounded_decimal(cast: Convert, value: Decimal | int) -> Decimal:
    try:
        fitted: Decimal = cast(value)
    except (ValueError, ArithmeticError) as error:
        raise InexactError(str(error)) from error
    return fitted


def _decimal_of_digits(type_: Type, cast: Convert, value: Decimal | int) -> Decimal:
    fitted = _rounded_decimal(cast, value)
    if fitted != value:
        raise InexactError(f"{value} has more digits than {type_}")
    return fitted


def _finite_double(value: float) -> float:
    if not isfinite(value):
        raise InexactError(f"{value} is not a number")
    return value


def _ascii_text(value: str) -> str:
    if not value.isascii():
        raise InexactError(f"{value!r} in other case")
    return value


_ASCII = {STRING: _ascii_text}
_NEAR = dict.fromkeys(INTEGRAL, partial(_in_integer_range, INT, 1 << 30))
"""Places in a text; sums of larger ones overflow in Spark."""
