"""Expressions that have a value for every row: those may be computed for more rows than before.

Spark itself pushes every deterministic condition below joins, also one that then fails for a row
that the join would have taken away. A view that is kept must not fail where its query does not, so
here only what cannot fail is pushed.
"""

from viewkeep.errors import ViewkeepError
from viewkeep.query.evaluate.compile import compile_expression
from viewkeep.query.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OpaqueCall,
    columns_of,
)
from viewkeep.query.types.data_types import (
    DOUBLE,
    FLOAT,
    INTEGRAL,
    MAX_PRECISION,
    MOMENTS,
    STRING,
    VOID,
    Type,
)
from viewkeep.query.types.inference import Schema, type_of
from viewkeep.query.types.internal_functions import ENTRY, FIELD, TRIED, TRY_CAST
from viewkeep.query.types.rules import common_type, decimal_type, digits, is_decimal

_COMPARISONS = "= <> < <= > >= <=> and or not isnull isnotnull in"
_CHOICES = "case coalesce nullif greatest least"
_TEXTS = "upper lower trim ltrim rtrim length concat replace locate startswith endswith"
_DATES = "year quarter month day dayofweek dayofyear weekofyear hour minute second datediff"
_NESTED = f"{FIELD} {ENTRY} array sequence"
_TRIED = " ".join((*TRIED, TRY_CAST))
_SAFE = frozenset(
    f"{_COMPARISONS} {_CHOICES} {_TEXTS} {_DATES} {_NESTED} {_TRIED} substring left right".split()
)
_FLOATING = (DOUBLE, FLOAT)


def cannot_fail(expression: Expression, schema: Schema) -> bool:
    """Whether an expression has a value for every row of a schema.

    >>> from viewkeep.query.expressions import literal
    >>> from viewkeep.query.types.data_types import INT, Field
    >>> a, b = Column("a"), (Field("a", INT),)
    >>> cannot_fail(Call(">", (a, literal(1))), b), cannot_fail(Call("/", (literal(1), a)), b)
    (True, False)
    """
    if not columns_of(expression):
        return _is_constant_value(expression)
    match expression:
        case Column() | Literal():
            return True
        case Cast(argument, target):
            source = type_of(argument, schema).type
            return _is_wider_type(source, target) and cannot_fail(argument, schema)
        case OpaqueCall():
            return False
        case Call(function, arguments):
            total = function in _SAFE or _is_total_call(function, arguments, schema)
            return total and all(cannot_fail(part, schema) for part in arguments)


def _is_constant_value(constant: Expression) -> bool:
    try:
        compile_expression(constant, ())(())
    except (ViewkeepError, ArithmeticError, ValueError, TypeError):
        return False
    return True


def _is_total_call(function: str, arguments: tuple[Expression, ...], schema: Schema) -> bool:
    """Calls that fail for no value because of the types or constants in them."""
    match function, arguments:
        case "like", (_, Literal(str(pattern))):
            return "\\" not in pattern
        case (("+" | "-" | "*" | "negate" | "abs"), _):
            result = type_of(Call(function, arguments), schema).type
            parts = [type_of(part, schema).type for part in arguments]
            return result in _FLOATING or _has_room_for_digits(function, result, parts)
    return False


def _has_room_for_digits(function: str, result: Type, parts: list[Type]) -> bool:
    """Whether a decimal result has room for all digits, so that nothing was cut off."""
    if not is_decimal(result):
        return False
    exact = [digits(decimal_type(part)) for part in parts]
    if function == "*":
        return sum(precision for precision, _ in exact) + 1 <= MAX_PRECISION
    scale = max(scale for _, scale in exact)
    return max(p - s for p, s in exact) + scale + 1 <= MAX_PRECISION


def _is_wider_type(source: Type, target: Type) -> bool:
    """Whether every value of one type is one of the other."""
    if source in (target, VOID) or target == STRING:
        return True
    if source in MOMENTS and target in MOMENTS:
        return True
    if source == STRING or (target in INTEGRAL and source not in INTEGRAL):
        return False
    return target == DOUBLE or common_type(source, target) == target
