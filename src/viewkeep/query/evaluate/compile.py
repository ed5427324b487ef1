"""Scalar expressions compiled into Python functions of a row, with Spark SQL's ANSI semantics.

NULL is None. Most functions are NULL when an argument is, and do not compute the arguments after
the first NULL; the others, such as AND and CASE, have a form of their own. Values are not
converted to a common type: `coalesce(1, 2.5)` is the integer 1, and integers have no bounds.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter

from viewkeep.errors import QueryError, did_you_mean
from viewkeep.query.evaluate.casts import cast_to
from viewkeep.query.evaluate.forms import FORMS, Evaluator, Row, refuse, strict_evaluator, unary
from viewkeep.query.evaluate.functions import STRICT
from viewkeep.query.evaluate.tried import OVERFLOWING, TRIED_FUNCTIONS
from viewkeep.query.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OpaqueCall,
    conjuncts,
)
from viewkeep.query.types.functions import find_function
from viewkeep.query.types.signatures import FunctionSignature


def compile_expression(expression: Expression, names: Sequence[str]) -> Evaluator:
    """The function from a row over `names` to the value of the expression.

    >>> from viewkeep.query.expressions import literal
    >>> half = compile_expression(Call("/", (Column("b"), literal(2))), ["a", "b"])
    >>> half((7, 5)), half((7, None))
    (2.5, None)
    """
    match expression:
        case Column():
            return itemgetter(_column_position(expression.name, names))
        case Literal():
            value = expression.value
            return lambda row: value
        case Cast():
            argument = compile_expression(expression.argument, names)
            return unary(expression, cast_to(expression.type), argument)
        case Call():
            return _compile_untyped_call(expression, names)
        case OpaqueCall():
            raise QueryError(f"only Spark computes {expression}")


def compile_condition(
    expressions: Sequence[Expression], names: Sequence[str]
) -> Callable[[Row], bool]:
    """The function that tells whether all expressions are TRUE for a row: not FALSE, not NULL.

    >>> from viewkeep.query.expressions import literal
    >>> positive = compile_condition([Call(">", (Column("a"), literal(0)))], ["a"])
    >>> positive((1,)), positive((0,)), positive((None,))
    (True, False, False)
    """
    parts = [part for expression in expressions for part in conjuncts(expression)]
    tests = [(compile_expression(part, names), part) for part in parts]
    if len(tests) == 1:
        return _single_condition(*tests[0])

    def holds(row: Row) -> bool:
        for evaluate, part in tests:
            value = evaluate(row)
            if value is not True:
                return refuse(value, part)
        return True

    return holds


def _single_condition(evaluate: Evaluator, expression: Expression) -> Callable[[Row], bool]:
    def holds(row: Row) -> bool:
        value = evaluate(row)
        return value is True or refuse(value, expression)

    return holds


def _column_position(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise QueryError(f'no column "{name}" ({", ".join(names)}){did_you_mean(name, names)}')
    return names.index(name)


def _compile_untyped_call(call: Call, names: Sequence[str]) -> Evaluator:
    function = find_function(call.function)
    _check_argument_count(call, function)
    arguments = tuple(compile_expression(argument, names) for argument in call.arguments)
    form = FORMS.get(function.name)
    if form is not None:
        return form(call, arguments)
    if function.name in OVERFLOWING:
        raise QueryError(f"{call}: numbers have no bounds here, a lake computes it: Keeper(path)")
    values = TRIED_FUNCTIONS.get(function.name) or STRICT[function.name]
    return strict_evaluator(call, values, arguments)


def _check_argument_count(call: Call, function: FunctionSignature) -> None:
    count, least, most = len(call.arguments), function.least, function.most
    if count < least or (most is not None and count > most):
        bounds = f"at least {least}" if most is None else f"{least} to {most}"
        expected = f"{most}" if most == least else bounds
        plural = "" if expected.endswith("1") else "s"
        raise QueryError(
            f"{call}: {function.name}() takes {expected} argument{plural}, not {count}"
        )
