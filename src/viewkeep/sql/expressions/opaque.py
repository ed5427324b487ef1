"""Expressions that only Spark computes: their text, with holes for what the algebra knows.

Columns, aggregates, windows and subqueries in such an expression are translated, and so is every
part that the algebra knows; the rest is text. A lambda function stays text around its columns.
"""

import re
from collections.abc import Callable, Collection, Sequence

from sqlglot import exp

from viewkeep.errors import UnsupportedError
from viewkeep.query.expressions import Call, Cast, Column, Literal, OpaqueCall, back_quote
from viewkeep.query.types.functions import is_deterministic
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.scope import Scalar
from viewkeep.sql.expression_text import expression
from viewkeep.sql.source import Source, ViewDialect
from viewkeep.sql.spark_functions import SCALAR_FUNCTIONS

Translate = Callable[[exp.Expr], Scalar]

_HOLE = re.compile(r"`#(\d+)`")
_FORMS = (
    *(exp.Anonymous, exp.Transform, exp.RegexpLike, exp.ILike, exp.Like, exp.Escape, exp.TryCast),
    *(exp.Cast, exp.AtTimeZone, exp.Bracket, exp.Trim, exp.Extract, exp.Interval, exp.Is),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift),
    *(exp.BitwiseRightShift, exp.StrPosition, exp.JSONExtract, exp.Add, exp.Sub),
)
"""The syntax of such expressions."""
_TEXT = (exp.Literal, exp.Boolean, exp.Null, exp.DataType, exp.Var, exp.Identifier, exp.Interval)
"""What stays text."""
_REFUSED = (exp.Star, exp.Placeholder, exp.Parameter, exp.Distinct, exp.Window, exp.Filter)


def user_functions(source: Source) -> Collection[str]:
    """The functions that the user declares deterministic."""
    return source.types.functions if source.types is not None else ()


def opaque_expression(node: exp.Expr, translate: Translate, source: Source) -> Scalar | None:
    """An expression with its type by Spark; None where there is no Spark, or no such type."""
    if source.types is None or not isinstance(node, _FORMS):
        return None
    holes: list[Scalar] = []
    template = _with_holes(node, translate, source, holes, frozenset())
    if template is None:
        return None
    text = template.sql(ViewDialect, normalize_functions=False)
    return _opaque_type(text, holes, source)


def opaque_call(call: Call | Cast, arguments: Sequence[Scalar], source: Source) -> Scalar | None:
    """A known function or cast of types that only Spark takes."""
    if source.types is None:
        return None
    holes = [a for a in arguments if not isinstance(a.expression, Literal)]
    names = {hole.expression: Column(f"#{i}") for i, hole in enumerate(holes)}
    if isinstance(call, Cast):
        text = expression(Cast(names.get(call.argument, call.argument), call.type))
    else:
        text = expression(Call(call.function, tuple(names.get(a, a) for a in call.arguments)))
    return _opaque_type(text, holes, source)


def _opaque_type(text: str, holes: Sequence[Scalar], source: Source) -> Scalar | None:
    assert source.types is not None
    parts = _HOLE.split(text)
    arguments = [holes[int(number)] for number in parts[1::2]]
    numbered = [back_quote(f"a{i}") for i in range(len(arguments))]
    between = tuple(parts[::2])
    probe = between[0] + "".join(map("".join, zip(numbered, between[1:], strict=True)))
    result_type = source.types.type_of(probe, [each.typed.type for each in arguments])
    if result_type is None:
        return None
    call = OpaqueCall(between, tuple(each.expression for each in arguments), result_type)
    return Scalar(call, TypedValue(result_type, nullable=True))


def _with_holes(
    node: exp.Expr,
    translate: Translate,
    source: Source,
    holes: list[Scalar],
    bound: frozenset[str],
) -> exp.Expr | None:
    """A copy whose parts are holes, as far as they read no variable of a lambda; None where it has
    a function that is no scalar one of Spark, or of the user."""
    if isinstance(node, _REFUSED) or not _is_allowed_opaque(node, source):
        return None
    node = _with_field_names(node)
    if isinstance(node, exp.Lambda):
        bound |= {each.name.lower() for each in node.expressions}
    copy = node.copy()
    for part, value in node.args.items():
        filled = [
            _part_with_holes(each, translate, source, holes, bound)
            for each in (value if isinstance(value, list) else [value])
        ]
        if None in filled and value is not None:
            return None
        copy.set(part, filled if isinstance(value, list) else filled[0])
    return copy


def _part_with_holes(
    part: object, translate: Translate, source: Source, holes: list[Scalar], bound: frozenset[str]
) -> object:
    if not isinstance(part, exp.Expr) or isinstance(part, _TEXT):
        return part.copy() if isinstance(part, exp.Expr) else part
    if isinstance(part.parent, exp.Escape) and isinstance(part, exp.Like | exp.ILike):
        return _with_holes(part, translate, source, holes, bound)
    if _is_value_node(part) and not _opaque_reads_lambda_variable(part, bound):
        try:
            scalar = translate(part)
        except UnsupportedError:
            if not isinstance(part, _FORMS):
                raise
            return _with_holes(part, translate, source, holes, bound)  # a type that no lake holds
        if isinstance(scalar.expression, Literal):  # some functions take constants only
            return exp.Var(this=expression(scalar.expression))
        holes.append(scalar)
        hole = exp.to_identifier(f"#{len(holes) - 1}", quoted=True)
        return exp.Column(this=hole)
    if isinstance(part, exp.Column):
        return part.copy()
    return _with_holes(part, translate, source, holes, bound)


def _is_value_node(node: exp.Expr) -> bool:
    """Whether a node stands for a value by itself."""
    return isinstance(node, exp.Condition | exp.Subquery | exp.Window | exp.Filter)


def _opaque_reads_lambda_variable(node: exp.Expr, bound: frozenset[str]) -> bool:
    """Whether a node reads a variable of a lambda function around it."""
    return any(each.name.lower() in bound for each in node.find_all(exp.Identifier))


def _is_allowed_opaque(node: exp.Expr, source: Source) -> bool:
    if not isinstance(node, exp.Anonymous):
        return True
    name = node.name.lower()
    if not is_deterministic(name, len(node.expressions)):
        raise source.unsupported(f"the non-deterministic function {name}()", node)
    if name in _NAMED_BY_COLUMNS:
        return False
    return name in SCALAR_FUNCTIONS or name in user_functions(source)


_NAMED_BY_COLUMNS = ("arrays_zip",)
"""Functions whose results have the names of the columns in them, which plans rename."""


def _with_field_names(node: exp.Expr) -> exp.Expr:
    """`struct(a, b + 1)` as `named_struct('a', a, 'col2', b + 1)`, which keeps its names."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "struct":
        return node
    parts: list[exp.Expr] = []
    for place, each in enumerate(node.expressions, start=1):
        has_name = isinstance(each, exp.Alias | exp.Column | exp.Dot)
        name = each.alias_or_name if has_name else f"col{place}"
        parts += [exp.Literal.string(name), each.unalias().copy()]
    return exp.Anonymous(this="named_struct", expressions=parts)
