"""Type rules of functions and aggregates: Spark SQL's documented ones (ANSI mode)."""

import pytest

from viewkeep.errors import QueryError
from viewkeep.query.expressions import Value
from viewkeep.query.types.aggregates import aggregate_result
from viewkeep.query.types.data_types import VOID, parse_type
from viewkeep.query.types.functions import FUNCTIONS, find_function
from viewkeep.query.types.rules import common_type
from viewkeep.query.types.signatures import TypedValue


def _typed(text: str, value: Value = None) -> TypedValue:
    return TypedValue(VOID if text == "void" else parse_type(text), nullable=False, value=value)


def _result(function: str, *types: str) -> str:
    return str(find_function(function).result([_typed(text) for text in types]).type)


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        ("int", "+", "int", "int"),
        ("tinyint", "+", "tinyint", "tinyint"),
        ("int", "*", "bigint", "bigint"),
        ("int", "/", "int", "double"),
        ("float", "+", "float", "float"),
        ("float", "+", "int", "double"),
        ("decimal(5,2)", "+", "decimal(7,1)", "decimal(9, 2)"),
        ("decimal(5,2)", "*", "decimal(7,1)", "decimal(13, 3)"),
        ("decimal(5,2)", "/", "decimal(7,1)", "decimal(14, 10)"),
        ("decimal(5,2)", "%", "decimal(7,1)", "decimal(5, 2)"),
        ("decimal(5,2)", "+", "int", "decimal(13, 2)"),
        ("decimal(5,2)", "+", "double", "double"),
        # Above 38 digits the scale shrinks, but not below 6.
        ("decimal(38,10)", "*", "decimal(38,10)", "decimal(38, 6)"),
        ("decimal(38,2)", "+", "decimal(38,10)", "decimal(38, 6)"),
        ("decimal(30,2)", "/", "decimal(30,20)", "decimal(38, 6)"),
        ("date", "+", "int", "date"),
        ("void", "+", "int", "int"),
    ],
)
def test_arithmetic(left: str, operator: str, right: str, expected: str) -> None:
    assert _result(operator, left, right) == expected


def test_an_integer_literal_beside_a_decimal_takes_its_own_digits() -> None:
    price, two = _typed("decimal(8,2)"), _typed("int", 2)
    assert str(FUNCTIONS["*"].result([price, two]).type) == "decimal(10, 2)"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("round", "decimal(8,2)"), "decimal(7, 0)"),
        (("floor", "decimal(8,2)"), "decimal(7, 0)"),
        (("ceil", "double"), "bigint"),
        (("abs", "decimal(8,2)"), "decimal(8, 2)"),
        (("coalesce", "int", "bigint"), "bigint"),
        (("case", "boolean", "int", "decimal(3,1)"), "decimal(11, 1)"),
        (("greatest", "int", "double"), "double"),
        (("year", "timestamp"), "int"),
        (("date_add", "date", "int"), "date"),
        (("length", "string"), "int"),
        (("POW", "int", "int"), "double"),
        (("div", "int", "int"), "bigint"),
        (("=", "date", "timestamp"), "boolean"),
        (("in", "int", "bigint", "void"), "boolean"),
    ],
)
def test_scalar_functions(call: tuple[str, ...], expected: str) -> None:
    assert _result(*call) == expected


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        ("sum", "int", "bigint"),
        ("sum", "float", "double"),
        ("sum", "decimal(10,2)", "decimal(20, 2)"),
        ("sum", "decimal(35,2)", "decimal(38, 2)"),
        ("avg", "int", "double"),
        ("avg", "decimal(10,2)", "decimal(14, 6)"),
        ("min", "string", "string"),
        ("max", "date", "date"),
        ("count", "string", "bigint"),
    ],
)
def test_aggregates(function: str, argument: str, expected: str) -> None:
    assert str(aggregate_result(function, [_typed(argument)], grouped=True).type) == expected


def test_nullability() -> None:
    maybe, never = TypedValue(parse_type("int"), True), TypedValue(parse_type("int"), False)
    truth = TypedValue(parse_type("boolean"), True)
    assert FUNCTIONS["+"].result([never, maybe]).nullable
    assert not FUNCTIONS["+"].result([never, never]).nullable
    assert FUNCTIONS["/"].result([never, never]).nullable  # division by zero
    assert not FUNCTIONS["coalesce"].result([maybe, never]).nullable
    assert not FUNCTIONS["<=>"].result([maybe, maybe]).nullable
    assert not FUNCTIONS["isnull"].result([maybe]).nullable
    assert FUNCTIONS["case"].result([truth, never]).nullable
    assert not FUNCTIONS["case"].result([truth, never, never]).nullable
    assert not aggregate_result("count", [maybe], grouped=False).nullable
    assert aggregate_result("sum", [never], grouped=False).nullable
    assert not aggregate_result("sum", [never], grouped=True).nullable


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("+", "string", "int"), '"+": both sides must be numbers, but found string, int'),
        (("=", "string", "int"), "the types must fit together"),
        (("and", "int", "boolean"), "argument 1 must be boolean"),
        (("upper", "int"), "upper: argument 1 must be string"),
        (("substring", "string"), "substring() takes 2 to 3 arguments, but here it has 1"),
        (("coalesce",), "coalesce() takes at least 1 argument"),
        (("round", "double", "double"), "the number of digits must be an integer literal"),
        (("uper", "string"), 'unknown function uper(); did you mean "upper"?'),
    ],
)
def test_clashes_are_named(call: tuple[str, ...], message: str) -> None:
    with pytest.raises(QueryError) as error:
        _result(*call)
    assert message in str(error.value)


def test_aggregate_clashes_are_named() -> None:
    with pytest.raises(QueryError, match="must be numbers, but found string"):
        aggregate_result("sum", [_typed("string")], grouped=True)
    with pytest.raises(QueryError, match="unknown aggregate kurtosi"):
        aggregate_result("kurtosi", [_typed("int")], grouped=True)
    with pytest.raises(QueryError, match="takes 1 argument"):
        aggregate_result("sum", [], grouped=True)


def test_common_types_are_symmetric() -> None:
    names = ["int", "bigint", "float", "double", "decimal(5,2)", "string", "date", "timestamp"]
    for first in map(parse_type, names):
        assert common_type(first, VOID) == first
        for second in map(parse_type, names):
            assert common_type(first, second) == common_type(second, first)
