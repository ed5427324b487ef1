"""How calls are compiled: strict functions, which are NULL when an argument is, and the others."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

from viewkeep.errors import QueryError
from viewkeep.query.evaluate.functions import STRICT, like_pattern, midnight
from viewkeep.query.evaluate.order import sort_value
from viewkeep.query.expressions import Call, Expression, Literal
from viewkeep.query.types.internal_functions import SINGLE

Row: TypeAlias = tuple[Any, ...]
Evaluator: TypeAlias = Callable[[Row], Any]
"""The value of one expression for a row."""

_FAILURES = (TypeError, ValueError, ArithmeticError, AttributeError)
"""What Python raises for values of a wrong type, or outside of a function's domain."""


def refuse(value: Any, expression: Expression) -> bool:
    """False for a value that is not TRUE, if it is a truth value at all."""
    if value is not True and value is not False and value is not None:
        raise QueryError(f"the condition {expression} must be boolean, but it is {value!r}")
    return False


def _evaluation_error(
    expression: Expression, values: Sequence[Any], error: Exception
) -> QueryError:
    value_texts = ", ".join(map(repr, values))
    match error:
        case ZeroDivisionError():
            reason = "division by zero"
        case ArithmeticError():
            reason = "the result is out of range"
        case _:
            reason = str(error)
    return QueryError(f"cannot compute {expression} for ({value_texts}): {reason}")


# Comparisons.


def comparison(operation: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """A Python comparison with Spark's order: NaN equals itself and is above all other numbers.

    >>> comparison(gt)(float("nan"), float("inf"))
    True
    """

    def compare(left: Any, right: Any) -> bool:
        kind = type(left)
        if kind is tuple and type(right) is tuple:
            return operation(sort_value(left), sort_value(right))
        if kind is type(right) and (kind is not float or (left == left and right == right)):
            return operation(left, right)
        return operation(*_comparable_values(left, right))

    return compare


equal = comparison(eq)
"""Whether two values are the same; those of unrelated types never are."""


def _comparable_values(left: Any, right: Any) -> tuple[Any, Any]:
    if isinstance(left, float) or isinstance(right, float):
        if isinstance(left, Decimal) or isinstance(right, Decimal):
            left, right = float(left), float(right)
        if left != left or right != right:
            return left != left, right != right
    elif isinstance(left, datetime) != isinstance(right, datetime):
        return midnight(left), midnight(right)
    return left, right


# Functions that are NULL when an argument is.


def strict_evaluator(
    expression: Expression, function: Callable[..., Any], arguments: Sequence[Evaluator]
) -> Evaluator:
    """A function of values that are not NULL, made NULL when an argument is."""
    match arguments:
        case (argument,):
            return unary(expression, function, argument)
        case (left, right):
            return _binary_evaluator(expression, function, left, right)

    def evaluate(row: Row) -> Any:
        values: list[Any] = []
        for argument in arguments:
            value = argument(row)
            if value is None:
                return None
            values.append(value)
        try:
            return function(*values)
        except _FAILURES as error:
            raise _evaluation_error(expression, values, error) from error

    return evaluate


def unary(expression: Expression, function: Callable[[Any], Any], argument: Evaluator) -> Evaluator:
    """`strict_evaluator` for one argument."""

    def evaluate(row: Row) -> Any:
        value = argument(row)
        if value is None:
            return None
        try:
            return function(value)
        except _FAILURES as error:
            raise _evaluation_error(expression, (value,), error) from error

    return evaluate


def _binary_evaluator(
    expression: Expression, function: Callable[[Any, Any], Any], left: Evaluator, right: Evaluator
) -> Evaluator:
    def evaluate(row: Row) -> Any:
        first = left(row)
        if first is None:
            return None
        second = right(row)
        if second is None:
            return None
        try:
            return function(first, second)
        except _FAILURES as error:
            raise _evaluation_error(expression, (first, second), error) from error

    return evaluate


def _comparison_evaluator(
    operation: Callable[[Any, Any], bool], call: Call, arguments: Sequence[Evaluator]
) -> Evaluator:
    """A comparison; one with a literal skips the general rules for values of the literal's type."""
    compare = comparison(operation)
    general = _binary_evaluator(call, compare, *arguments)
    match call.arguments[1]:
        case Literal(None):
            return lambda row: None
        case Literal(constant) if not isinstance(constant, float):
            first, kind = arguments[0], type(constant)
        case _:
            return general

    def evaluate(row: Row) -> Any:
        value = first(row)
        if type(value) is not kind:
            return general(row)
        try:
            return operation(value, constant)
        except _FAILURES as error:
            raise _evaluation_error(call, (value, constant), error) from error

    return evaluate


def _like_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    """LIKE; a literal pattern is read once."""
    match call.arguments[1]:
        case Literal(str(pattern)):
            try:
                fullmatch = like_pattern(pattern).fullmatch
            except ValueError as error:
                raise QueryError(f"{call}: {error}") from error
            return unary(call, lambda text: fullmatch(text) is not None, arguments[0])
    return strict_evaluator(call, STRICT["like"], arguments)


# Functions that look at NULLs, or need not compute all of their arguments.


def _and_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    left, right = arguments

    def evaluate(row: Row) -> Any:
        first = left(row)
        if first is False:
            return False
        second = right(row)
        if first is True and (second is True or second is False):
            return second
        _check_truth_values(call, first, second)
        return False if second is False else None

    return evaluate


def _or_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    left, right = arguments

    def evaluate(row: Row) -> Any:
        first = left(row)
        if first is True:
            return True
        second = right(row)
        if first is False and (second is True or second is False):
            return second
        _check_truth_values(call, first, second)
        return True if second is True else None

    return evaluate


def _check_truth_values(call: Call, *values: Any) -> None:
    for value, argument in zip(values, call.arguments, strict=True):
        refuse(value, argument)


def _null_safe_equal_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    left, right = arguments

    def evaluate(row: Row) -> bool:
        first, second = left(row), right(row)
        if first is None or second is None:
            return first is second
        return equal(first, second)

    return evaluate


def _is_null_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    [argument] = arguments
    return lambda row: argument(row) is None


def _is_not_null_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    [argument] = arguments
    return lambda row: argument(row) is not None


def _null_if_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    left, right = arguments

    def evaluate(row: Row) -> Any:
        first, second = left(row), right(row)
        if first is None or (second is not None and equal(first, second)):
            return None
        return first

    return evaluate


def _coalesce_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    def evaluate(row: Row) -> Any:
        for argument in arguments:
            value = argument(row)
            if value is not None:
                return value
        return None

    return evaluate


def _single_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    value, count = arguments

    def evaluate(row: Row) -> Any:
        if (count(row) or 0) > 1:
            raise QueryError("a scalar subquery has more than one row")
        return value(row)

    return evaluate


def _case_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    """Conditions and results alternate; the odd one at the end is ELSE."""
    branches = list(zip(arguments[:-1:2], arguments[1::2], call.arguments[:-1:2], strict=True))
    otherwise = arguments[-1] if len(arguments) % 2 else None

    def evaluate(row: Row) -> Any:
        for condition, result, expression in branches:
            truth = condition(row)
            if truth is True or refuse(truth, expression):
                return result(row)
        return None if otherwise is None else otherwise(row)

    return evaluate


def _in_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    """IN; a list of literals of one type is looked up at once by values of that type."""
    item, *choices = arguments
    literals = [choice for choice in call.arguments[1:] if isinstance(choice, Literal)]
    constants = {choice.value for choice in literals if choice.value is not None}
    kinds = {type(constant) for constant in constants}
    kind = kinds.pop() if len(kinds) == 1 and len(literals) == len(choices) else None
    absent = None if any(choice.value is None for choice in literals) else False

    def evaluate(row: Row) -> Any:
        value = item(row)
        if value is None:
            return None
        if type(value) is kind and kind is not float:
            return True if value in constants else absent
        return _in_values((choice(row) for choice in choices), value)

    return evaluate


def _in_values(choices: Iterable[Any], value: Any) -> bool | None:
    absent: bool | None = False
    for choice in choices:
        if choice is None:
            absent = None
        elif equal(value, choice):
            return True
    return absent


def _extreme_evaluator(
    operation: Callable[[Any, Any], bool], call: Call, arguments: Sequence[Evaluator]
) -> Evaluator:
    """GREATEST or LEAST, which pass over NULLs."""
    beats = comparison(operation)

    def evaluate(row: Row) -> Any:
        best = None
        for argument in arguments:
            value = argument(row)
            try:
                if best is None or (value is not None and beats(value, best)):
                    best = value
            except _FAILURES as error:
                raise _evaluation_error(call, (value, best), error) from error
        return best

    return evaluate


def _array_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    return lambda row: tuple([argument(row) for argument in arguments])


def _named_struct_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    """A struct of names and values that alternate."""
    return _array_evaluator(call, arguments[1::2])


def _array_append_evaluator(at_end: bool, call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    """An array with one more element, which may be NULL."""

    def evaluate(row: Row) -> Any:
        array, element = (argument(row) for argument in arguments)
        if array is None:
            return None
        return (*array, element) if at_end else (element, *array)

    return evaluate


def _array_repeat_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    element, count = arguments

    def evaluate(row: Row) -> Any:
        times = count(row)
        return None if times is None else (element(row),) * times

    return evaluate


def _concat_ws_evaluator(call: Call, arguments: Sequence[Evaluator]) -> Evaluator:
    """Texts that are NULL are left out."""

    def evaluate(row: Row) -> Any:
        separator = arguments[0](row)
        if separator is None:
            return None
        texts = [argument(row) for argument in arguments[1:]]
        return str.join(separator, (text for text in texts if text is not None))

    return evaluate


FORMS: dict[str, Callable[[Call, Sequence[Evaluator]], Evaluator]] = {
    "array": _array_evaluator,
    "array_append": partial(_array_append_evaluator, True),
    "array_prepend": partial(_array_append_evaluator, False),
    "array_repeat": _array_repeat_evaluator,
    "named_struct": _named_struct_evaluator,
    "=": partial(_comparison_evaluator, eq),
    "<>": partial(_comparison_evaluator, ne),
    "<": partial(_comparison_evaluator, lt),
    "<=": partial(_comparison_evaluator, le),
    ">": partial(_comparison_evaluator, gt),
    ">=": partial(_comparison_evaluator, ge),
    "<=>": _null_safe_equal_evaluator,
    "and": _and_evaluator,
    "or": _or_evaluator,
    "isnull": _is_null_evaluator,
    "isnotnull": _is_not_null_evaluator,
    "in": _in_evaluator,
    "like": _like_evaluator,
    "case": _case_evaluator,
    SINGLE: _single_evaluator,
    "coalesce": _coalesce_evaluator,
    "nullif": _null_if_evaluator,
    "concat_ws": _concat_ws_evaluator,
    "greatest": partial(_extreme_evaluator, gt),
    "least": partial(_extreme_evaluator, lt),
}
"""How the calls that are more than a function of values are compiled."""
