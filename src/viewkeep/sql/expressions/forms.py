"""Expressions with a syntax of their own: CASE, CAST, BETWEEN, IN, IS, LIKE and the like."""

from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeep.query.expressions import Literal, literal
from viewkeep.query.types.data_types import Type
from viewkeep.query.types.internal_functions import TRY_CAST
from viewkeep.sql.blocks.scope import Scalar, constant
from viewkeep.sql.expressions.functions import keyword_function
from viewkeep.sql.expressions.literals import read_type, typed_literal
from viewkeep.sql.expressions.nested import element, field
from viewkeep.sql.expressions.refusals import construct_refusal
from viewkeep.sql.expressions.tuples import compare_tuples, tuple_as_struct

if TYPE_CHECKING:
    from viewkeep.sql.expressions.translator import Translator


def form(translator: "Translator", node: exp.Expr) -> Scalar:
    """An expression with a syntax of its own."""
    match node:
        case exp.Not():
            return translator.call("not", [translator.condition(node.this)], node)
        case exp.NullSafeNEQ():
            same = translator.compare("<=>", translator.translate_both(node), node)
            return translator.call("not", [same], node)
        case exp.Is():
            return _translate_is(translator, node)
        case exp.Between():
            return _translate_between(translator, node)
        case exp.In():
            return _translate_in(translator, node)
        case exp.Like() if not isinstance(node.expression, exp.Any | exp.All):
            like = translator.call("like", translator.translate_both(node), node)
            return translator.call("not", [like], node) if node.args.get("negate") else like
        case exp.ILike() if not isinstance(node.expression, exp.Any | exp.All):
            sides = [translator.call("lower", [s], node) for s in translator.translate_both(node)]
            like = translator.call("like", sides, node)
            return translator.call("not", [like], node) if node.args.get("negate") else like
        case exp.RegexpLike():
            return translator.call("rlike", translator.translate_both(node), node)
        case exp.Case() | exp.If():
            return _translate_case(translator, node)
        case exp.Cast() if node.args.get("safe"):
            return _translate_try_cast(translator, node)
        case exp.Cast():
            return translator.cast(
                translator.translate(node.this), _cast_target(translator, node), node
            )
        case exp.DPipe():
            return translator.call("concat", translator.translate_both(node), node)
        case exp.Concat():
            return translator.call("concat", translator.translate_all(node.expressions), node)
        case exp.Dot(expression=exp.Identifier() as part):
            return field(translator, translator.translate(node.this), part.name, node)
        case exp.Bracket():
            return element(translator, node)
        case exp.BitwiseNot():
            return translator.call("~", [translator.translate(node.this)], node)
        case exp.Tuple():
            return tuple_as_struct(translator, node)
        case exp.Window() if translator.windows is not None:
            return translator.windows.translate(node, translator)
        case exp.Extract() | exp.Substring() | exp.Trim() | exp.StrPosition():
            return keyword_function(translator, node)
    return translator.opaque(node, construct_refusal(node, translator.source))


def _translate_is(translator: "Translator", node: exp.Is) -> Scalar:
    argument = translator.translate(node.this)
    match node.expression:
        case exp.Null():
            return translator.call("isnull", [argument], node)
        case exp.Boolean():
            truth = constant(literal(bool(node.expression.this)))
            return translator.call("<=>", [argument, truth], node)
    raise translator.source.unsupported("this form of IS", node)


def _translate_between(translator: "Translator", node: exp.Between) -> Scalar:
    value = translator.translate(node.this)
    low = translator.compare(">=", [value, translator.translate(node.args["low"])], node)
    high = translator.compare("<=", [value, translator.translate(node.args["high"])], node)
    return translator.call("and", [low, high], node)


def _translate_in(translator: "Translator", node: exp.In) -> Scalar:
    if node.args.get("query") or not node.expressions:
        construct = "IN with a subquery outside a conjunction of WHERE or HAVING"
        raise translator.source.unsupported(construct, node)
    members = (node.this, *node.expressions)
    of_tuples = compare_tuples(translator, "in", members, node)
    return of_tuples or translator.compare("in", translator.translate_all(members), node)


def _translate_case(translator: "Translator", node: exp.Case | exp.If) -> Scalar:
    branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    default = node.args.get("default" if isinstance(node, exp.Case) else "false")
    value = node.this if isinstance(node, exp.Case) else None
    parts: list[Scalar] = []
    for branch in branches:
        if value is None:
            parts.append(translator.condition(branch.this))
        else:
            parts.append(
                translator.compare("=", translator.translate_all([value, branch.this]), branch)
            )
        parts.append(translator.translate(branch.args["true"]))
    if default is not None:
        parts.append(translator.translate(default))
    return translator.call("case", parts, node)


def _translate_try_cast(translator: "Translator", node: exp.Cast) -> Scalar:
    argument, target = translator.translate(node.this), _cast_target(translator, node)
    match argument.expression:
        case Literal() as value:
            folded = typed_literal(value, target)
            if folded is not None:
                return constant(folded)
    return translator.call(TRY_CAST, [argument, constant(literal(str(target)))], node)


def _cast_target(translator: "Translator", node: exp.Cast) -> Type:
    target = node.args["to"]
    if not isinstance(target, exp.DataType) or node.args.get("format"):
        raise translator.source.unsupported("this form of CAST", node)
    if target.this in exp.DataType.NESTED_TYPES:
        raise translator.source.unsupported(f"the type {target.sql('spark').lower()}", target)
    return read_type(target, translator.source)
