"""VALUES and range(): rows that the query holds."""

from sqlglot import exp

from viewkeep.query.algebra import Node, Output, Project, Select, Unnest, Values
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal, literal
from viewkeep.query.types.data_types import BIGINT, VOID, Type
from viewkeep.query.types.rules import common_type
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.blocks.scope import Scalar, Scope
from viewkeep.sql.expressions.translator import Translator


def translate_values(node: exp.Values, context: Context) -> Values:
    """The rows, in types that fit all of them, under Spark's names `col1`, `col2`, ..."""
    translator = Translator(context.source, Scope(()))
    rows = [[translator.translate(each) for each in _values_row(row)] for row in node.expressions]
    width = len(rows[0])
    for row, place in zip(rows, node.expressions, strict=True):
        if len(row) != width:
            problem = f"a row of VALUES has {len(row)} values, the first one {width}"
            raise context.source.error(problem, place)
    types = [_values_type([row[i] for row in rows], i, node, context) for i in range(width)]
    names = tuple(f"col{i}" for i in range(1, width + 1))
    return Values(names, tuple(tuple(map(_value_as_type, row, types)) for row in rows))


def is_range(node: exp.Expr) -> bool:
    """Whether a table is the function range()."""
    return isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "range"


def translate_range(node: exp.Table, context: Context) -> Node:
    """The numbers from a start, or 0, to an end, which is not among them, in steps."""
    bounds = [_range_number(each, context) for each in node.this.expressions]
    if not 1 <= len(bounds) <= 3 or bounds[2:] == [0]:
        problem = "range() takes an end, a start and an end, or these and a step that is not 0"
        raise context.source.error(problem, node.this)
    numbers = range(*bounds)
    row = context.names.take("range")
    last = Cast(literal(max(len(numbers) - 1, 0)), BIGINT)
    places = Call("sequence", (Cast(literal(0), BIGINT), last))
    one = Values((f"{row}.places",), ((places,),))
    rows: Node = Unnest(one, f"{row}.places", (f"{row}.position", f"{row}.place"))
    if not numbers:
        rows = Select(rows, literal(False))
    step = Call("*", (Cast(literal(numbers.step), BIGINT), Column(f"{row}.place")))
    number = Call("+", (Cast(literal(numbers.start), BIGINT), step))
    return Project(rows, (Output("id", number),))


def _range_number(node: exp.Expr, context: Context) -> int:
    match Translator(context.source, Scope(())).translate(node).expression:
        case Literal(int(number)) if not isinstance(number, bool):
            return number
        case Call("negate", (Literal(int(number)),)):
            return -number
    raise context.source.unsupported("range() of anything but whole numbers", node)


def _values_row(row: exp.Expr) -> list[exp.Expr]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _values_type(values: list[Scalar], place: int, node: exp.Values, context: Context) -> Type:
    result = VOID
    for value in values:
        common = common_type(result, value.typed.type)
        if common is None:
            problem = f"column {place + 1} of VALUES has {result} and {value.typed.type}"
            raise context.source.type_error(f"{problem}; add a CAST", node)
        result = common
    return result


def _value_as_type(value: Scalar, type_: Type) -> Expression:
    return value.expression if value.typed.type == type_ else Cast(value.expression, type_)
