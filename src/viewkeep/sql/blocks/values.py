"""VALUES: rows that the query holds."""

from sqlglot import exp

from viewkeep.query.algebra import Values
from viewkeep.query.expressions import Cast, Expression
from viewkeep.query.types.data_types import VOID, Type
from viewkeep.query.types.rules import common_type
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.blocks.scope import Scalar, Scope
from viewkeep.sql.expressions.translator import Translator


def translate_values(node: exp.Values, context: Context) -> Values:
    """The rows, in types that fit all of them, under Spark's names `col1`, `col2`, ..."""
    translator = Translator(context.source, Scope(()))
    rows = [[translator.translate(each) for each in _cells(row)] for row in node.expressions]
    width = len(rows[0])
    for row, place in zip(rows, node.expressions, strict=True):
        if len(row) != width:
            problem = f"a row of VALUES has {len(row)} values, the first one {width}"
            raise context.source.error(problem, place)
    types = [_common([row[i] for row in rows], i, node, context) for i in range(width)]
    names = tuple(f"col{i}" for i in range(1, width + 1))
    return Values(names, tuple(tuple(map(_typed, row, types)) for row in rows))


def _cells(row: exp.Expr) -> list[exp.Expr]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _common(values: list[Scalar], place: int, node: exp.Values, context: Context) -> Type:
    result = VOID
    for value in values:
        common = common_type(result, value.typed.type)
        if common is None:
            problem = f"column {place + 1} of VALUES has {result} and {value.typed.type}"
            raise context.source.type_error(f"{problem}; add a CAST", node)
        result = common
    return result


def _typed(value: Scalar, type_: Type) -> Expression:
    return value.expression if value.typed.type == type_ else Cast(value.expression, type_)
