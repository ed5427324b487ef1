"""Rows of several values, `(a, b)`, which are structs; compared, their values have common types."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeep.query.expressions import literal
from viewkeep.query.types.data_types import VOID
from viewkeep.query.types.rules import common_type
from viewkeep.sql.blocks.scope import Scalar, constant

if TYPE_CHECKING:
    from viewkeep.sql.expressions.translator import Translator


def compare_tuples(
    translator: "Translator", operator: str, nodes: Sequence[exp.Expr], node: exp.Expr
) -> Scalar | None:
    """A comparison of rows of values, or `in`; None where not all that is compared are such."""
    tuples = [each for each in nodes if isinstance(each, exp.Tuple)]
    if len(tuples) != len(nodes):
        return None
    rows = [translator.translate_all(each.expressions) for each in tuples]
    if len({len(row) for row in rows}) > 1:
        raise translator.source.error("rows that are compared have as many values each", node)
    columns = [_with_common_type(translator, column, node) for column in zip(*rows, strict=True)]
    structs = [_struct_of_tuple(translator, row, node) for row in zip(*columns, strict=True)]
    return translator.call(operator, structs, node)


def tuple_as_struct(translator: "Translator", node: exp.Tuple) -> Scalar:
    """A row of values that stands alone, named as Spark names its parts."""
    call = exp.Anonymous(this="struct", expressions=node.expressions)
    return translator.translate(call)


def _with_common_type(
    translator: "Translator", values: Sequence[Scalar], node: exp.Expr
) -> list[Scalar]:
    kind = VOID
    for value in values:
        common = common_type(kind, value.typed.type)
        if common is None:
            types = ", ".join(str(each.typed.type) for each in values)
            problem = f"the values must fit together, but found {types}; add a CAST"
            raise translator.source.type_error(problem, node)
        kind = common
    return [v if v.typed.type == kind else translator.cast(v, kind, node) for v in values]


def _struct_of_tuple(translator: "Translator", values: Sequence[Scalar], node: exp.Expr) -> Scalar:
    pairs = [(constant(literal(f"col{i}")), value) for i, value in enumerate(values, 1)]
    return translator.call("named_struct", [part for pair in pairs for part in pair], node)
