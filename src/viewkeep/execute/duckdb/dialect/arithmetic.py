"""Arithmetic as Spark computes it in ANSI mode, in DuckDB's text.

DuckDB finds the overflow of integers and decimals itself. A division by zero is an error here. A
decimal that Spark rounds, because no decimal has digits enough, is computed in Python.
"""

from dataclasses import replace

from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.text import Text, error, strict_text, string, type_name
from viewkeep.query.types.data_types import (
    BIGINT,
    DATE,
    DECIMAL,
    INT,
    INTEGRAL,
    MAX_PRECISION,
    VOID,
    Type,
)
from viewkeep.query.types.rules import common_type, decimal_type, digits, is_decimal

_JAVA_DIGITS = 34
"""Spark rounds the negative of a decimal with more."""
_WORD_DIGITS = 18
_RIGHT_FIRST = (1, 0)
"""Spark looks at the divisor first."""


def arithmetic(operator: str, arguments: list[Text], result: Type, total: bool = False) -> Text:
    """`+ - * / %` of two numbers, or a date moved by days.

    In a total text, no operator of DuckDB fails: only its casts do, and what we call.
    """
    left, right = arguments
    if left.type == DATE:
        days = cast(right, INT)
        return strict_text([left, days], f"({{}} {operator} {{}})".format, DATE, fails=True)
    if is_decimal(result):
        left, right = _decimal_operands(left, right)
        if total and not _has_room(operator, left.type, right.type):
            return _python_arithmetic_sql(operator, left, right, result, result)
        return _decimal_arithmetic_sql(operator, left, right, result)
    if total and result in INTEGRAL and operator in ("+", "-", "*"):
        left, right = (_plain_cast_sql(each, "HUGEINT") for each in (left, right))
        form = f"CAST({{}} {operator} {{}} AS {type_name(result)})"
        return strict_text([left, right], form.format, result, True)
    left, right = cast(left, result), cast(right, result)
    if operator in ("/", "%"):
        return _division_sql(operator, left, right, result)
    fails = result in INTEGRAL
    return strict_text([left, right], f"({{}} {operator} {{}})".format, result, fails)


def _plain_cast_sql(text: Text, name: str) -> Text:
    return replace(text, sql=f"CAST({text.sql} AS {name})")


def _has_room(operator: str, first: Type, second: Type) -> bool:
    """Whether the decimal that DuckDB computes has all digits of every result."""
    match operator:
        case "+" | "-":
            common = _wide_decimal_type(first, second)
            return common is not None and digits(common)[0] < MAX_PRECISION
        case "*":
            return digits(_two_word_decimal(first))[0] + digits(second)[0] <= MAX_PRECISION
    return True


def whole_quotient(arguments: list[Text]) -> Text:
    """`div`: the quotient without its fraction."""
    left, right = arguments
    if left.type in INTEGRAL and right.type in INTEGRAL:
        return _division_sql("//", cast(left, BIGINT), cast(right, BIGINT), BIGINT)
    left, right = _decimal_operands(left, right)
    return _python_arithmetic_sql("div", left, right, DECIMAL(MAX_PRECISION, 0), BIGINT)


def negative_text(argument: Text) -> Text:
    """The number with the other sign."""
    type_ = argument.type
    if is_decimal(type_) and digits(type_)[0] > _JAVA_DIGITS:
        return _python_arithmetic_sql("negate", argument, argument, type_, type_)
    return strict_text([argument], "(-{})".format, type_, type_ in INTEGRAL)


def absolute(argument: Text) -> Text:
    """The number without its sign."""
    other = negative_text(argument)
    if other.fails and is_decimal(argument.type):

        def build(sql: str) -> str:
            return f"CASE WHEN {sql} < 0 THEN {other.sql} ELSE {sql} END"

        return strict_text([argument], build, argument.type, True)
    return strict_text([argument], "abs({})".format, argument.type, argument.type in INTEGRAL)


def quotient(left: Text, right: Text, result: Type) -> Text:
    """An exact quotient, rounded half up to the digits of a decimal."""
    return _decimal_arithmetic_sql("/", left, right, result)


def operand(text: Text, other: Text) -> Text:
    """A literal beside a decimal as the decimal that has only its digits."""
    if isinstance(text.value, int) and text.type in INTEGRAL and is_decimal(other.type):
        return cast(text, DECIMAL(len(str(abs(text.value))), 0))
    return text


def _decimal_operands(left: Text, right: Text) -> tuple[Text, Text]:
    """Both sides as decimals; a bare NULL as one of the other's type."""
    first, second = operand(left, right), operand(right, left)
    one = second if first.type == VOID else first
    other = first if second.type == VOID else second
    return cast(first, decimal_type(one.type)), cast(second, decimal_type(other.type))


def _division_sql(operator: str, left: Text, right: Text, result: Type) -> Text:
    """A division by zero is an error, but NULL divided by zero is NULL."""
    form = f"({{0}} {operator} {{1}})"
    if not right.value:
        zero = "{1} = 0 AND {0} IS NOT NULL" if left.nullable else "{1} = 0"
        one = "WHEN {1} = -1 THEN {0} - {0} " if operator == "%" and result in INTEGRAL else ""
        form = f"CASE WHEN {zero} THEN {error('division by zero')} {one}ELSE {form} END"
    return strict_text([left, right], form.format, result, True, _RIGHT_FIRST)


def _decimal_arithmetic_sql(operator: str, left: Text, right: Text, result: Type) -> Text:
    match operator:
        case "+" | "-":
            common = _wide_decimal_type(left.type, right.type)
            if common is not None and digits(common)[1] == digits(result)[1]:
                sides = [cast(left, common), cast(right, common)]
                form = f"CAST({{}} {operator} {{}} AS {type_name(result)})"
                return strict_text(sides, form.format, result, True)
        case "*":
            if digits(left.type)[1] + digits(right.type)[1] == digits(result)[1]:
                left = cast(left, _two_word_decimal(left.type))
                form = f"CAST({{}} * {{}} AS {type_name(result)})"
                return strict_text([left, right], form.format, result, True)
        case "%":
            common = common_type(left.type, right.type)
            if common is not None and digits(common)[1] == digits(result)[1]:
                divided = _division_sql("%", cast(left, common), cast(right, common), common)
                return strict_text(
                    [divided], f"CAST({{}} AS {type_name(result)})".format, result, True
                )
        case "/":
            exact = _quotient_sql(left, right, result)
            if exact is not None:
                return exact
    return _python_arithmetic_sql(operator, left, right, result, result)


def _wide_decimal_type(first: Type, second: Type) -> Type | None:
    """The decimal type with all digits of two others, if there is one."""
    (p1, s1), (p2, s2) = digits(first), digits(second)
    scale = max(s1, s2)
    precision = max(p1 - s1, p2 - s2) + scale
    return DECIMAL(precision, scale) if precision <= MAX_PRECISION else None


def _two_word_decimal(type_: Type) -> Type:
    """DuckDB multiplies decimals of up to 18 digits in one word, and fails where that is full."""
    precision, scale = digits(type_)
    return DECIMAL(max(precision, _WORD_DIGITS + 1), scale)


_QUOTIENT = (
    "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN {zero} ELSE CAST(CAST("
    "CASE WHEN ({0} < 0) = ({1} < 0) THEN 1 ELSE -1 END "
    "* ((2 * abs({a}) + abs({b})) // (2 * abs({b}))) AS DECIMAL(38, 0)) "
    "* CAST('1e-{scale}' AS DECIMAL(38, {scale})) AS {type}) END"
)


def _quotient_sql(left: Text, right: Text, result: Type) -> Text | None:
    """The quotient of the integers without the points, where these fit into 127 bits.

    Spark first rounds to 39 digits, which changes nothing if they do.
    """
    (p1, s1), (p2, s2) = digits(left.type), digits(right.type)
    scale = digits(result)[1]
    shift = scale + s2 - s1
    if max(p1 + max(shift, 0), p2 + max(-shift, 0)) >= MAX_PRECISION:
        return None
    if max(p1 + s1, p2 + s2) > MAX_PRECISION:
        return None  # without their points, as DuckDB moves them

    def build(first: str, second: str) -> str:
        return _QUOTIENT.format(
            first,
            second,
            zero=error("division by zero"),
            a=_unscaled_sql(first, s1, max(shift, 0)),
            b=_unscaled_sql(second, s2, max(-shift, 0)),
            scale=scale,
            type=type_name(result),
        )

    return strict_text([left, right], build, result, True, _RIGHT_FIRST)


def _unscaled_sql(value: str, scale: int, shift: int) -> str:
    """A decimal as an integer, times a power of ten."""
    whole = f"CAST({value} * CAST({10**scale} AS DECIMAL(38, 0)) AS HUGEINT)"
    return f"({whole} * CAST({10**shift} AS HUGEINT))" if shift else whole


def _python_arithmetic_sql(
    operator: str, left: Text, right: Text, result: Type, final: Type
) -> Text:
    precision, scale = digits(result)
    form = (
        f"CAST(viewkeep_arithmetic({string(operator)}, CAST({{}} AS VARCHAR), "
        f"CAST({{}} AS VARCHAR), {precision}, {scale}) AS {type_name(final)})"
    )
    order = _RIGHT_FIRST if operator in ("/", "%", "div") else None
    return strict_text([left, right], form.format, final, True, order)
