"""What is known of a condition without looking at rows: that it never holds, or always does."""

from viewkeep.query.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OpaqueCall,
    conjunction,
    conjuncts,
)
from viewkeep.query.types.data_types import BOOLEAN
from viewkeep.query.types.functions import find_function
from viewkeep.query.types.inference import Schema, type_of

FALSE = Literal(False, BOOLEAN)
"""The condition that never holds."""

_NOT_STRICT = frozenset({"and", "or", "in", "nullif"})


def never_true(condition: Expression, schema: Schema) -> bool:
    """Whether a condition is FALSE or NULL for every row.

    >>> from viewkeep.query.types.data_types import INT, Field
    >>> never_true(Call("isnull", (Column("a"),)), (Field("a", INT, nullable=False),))
    True
    """
    match condition:
        case Literal(value):
            return value is None or value is False
        case Call("and", parts):
            return any(never_true(part, schema) for part in parts)
        case Call("or", parts):
            return all(never_true(part, schema) for part in parts)
        case Call("not", (part,)) if always_true(part, schema):
            return True
        case Call("isnull", (part,)):
            return not type_of(part, schema).nullable
        case Call("isnotnull", (part,)):
            return _is_always_null(part)
    return _is_always_null(condition)


def always_true(condition: Expression, schema: Schema) -> bool:
    """Whether a condition is TRUE for every row."""
    match condition:
        case Literal(value):
            return value is True
        case Call("and", parts):
            return all(always_true(part, schema) for part in parts)
        case Call("or", parts):
            return any(always_true(part, schema) for part in parts)
        case Call("isnull", (part,)):
            return _is_always_null(part)
        case Call("isnotnull", (part,)):
            return not type_of(part, schema).nullable
        case Call("<=>", (left, right)):
            return _is_always_null(left) and _is_always_null(right)
    return False


def simplify_condition(condition: Expression, schema: Schema) -> tuple[Expression, ...]:
    """The conjuncts of a condition, without what is always true and without repetition, and with
    FALSE for one that never holds.

    In a disjunction, what all parts share is a conjunct: `(a and b) or (a and c)` is
    `a and (b or c)`, which also holds for NULLs.
    """
    parts = [part for each in conjuncts(condition) for part in _factored_condition(each, schema)]
    undecided = (part for part in parts if not always_true(part, schema))
    return tuple(dict.fromkeys(FALSE if never_true(part, schema) else part for part in undecided))


def disjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a disjunction."""
    if isinstance(expression, Call) and expression.function == "or":
        return tuple(part for argument in expression.arguments for part in disjuncts(argument))
    return (expression,)


def disjunction(parts: tuple[Expression, ...]) -> Expression:
    """All parts joined with OR; there must be one."""
    first, *rest = parts
    for part in rest:
        first = Call("or", (first, part))
    return first


def _factored_condition(condition: Expression, schema: Schema) -> tuple[Expression, ...]:
    branches = [
        dict.fromkeys(conjuncts(part))
        for part in disjuncts(condition)
        if not never_true(part, schema)
    ]
    if not branches:
        return (FALSE,)
    shared = [part for part in branches[0] if all(part in other for other in branches[1:])]
    rest = [conjunction(p for p in branch if p not in shared) for branch in branches]
    if TRUE in rest:
        return tuple(shared)
    return (*shared, disjunction(tuple(dict.fromkeys(rest))))


def _is_always_null(expression: Expression) -> bool:
    """Whether an expression is NULL for every row: most functions of NULL are."""
    match expression:
        case Literal(value):
            return value is None
        case Cast(argument):
            return _is_always_null(argument)
        case Call("coalesce" | "greatest" | "least" | "and" | "or", arguments):
            return all(map(_is_always_null, arguments))
        case Call("in", (item, *_)):
            return _is_always_null(item)
        case Call(function, arguments) if function not in _NOT_STRICT:
            strict = find_function(function).nullable in ("any", "always")
            return strict and any(map(_is_always_null, arguments))
        case Column() | Call() | OpaqueCall():
            return False
