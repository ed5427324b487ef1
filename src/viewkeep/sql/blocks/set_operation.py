"""UNION, EXCEPT and INTERSECT."""

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.query.algebra import AntiJoin, Node, Output, Project, SemiJoin, UnionAll, Window
from viewkeep.query.expressions import Call, Cast, Column, conjunction
from viewkeep.query.types.data_types import Type
from viewkeep.query.types.implicit_casts import wider_type
from viewkeep.query.windows import WindowColumn
from viewkeep.sql.blocks.clauses import refuse_clauses
from viewkeep.sql.blocks.context import Context, Places
from viewkeep.sql.blocks.distinct import distinct_of_query, refuse_incomparable
from viewkeep.sql.blocks.outputs import rename_outputs
from viewkeep.sql.blocks.top import top_of_outputs

_COPY = "#copy"


def translate_set_operation(query: exp.SetOperation, context: Context) -> Node:
    """Both sides under the names of the left one, in the types that fit both.

    EXCEPT and INTERSECT compare whole rows, in which NULLs are equal to each other; with ALL also
    which of several equal ones a row is.
    """
    refuse_clauses(query, context.source)
    return top_of_outputs(query, _set_operation_rows(query, context), context)


def _set_operation_rows(query: exp.SetOperation, context: Context) -> Node:
    left = context.nested(query.this)
    rows = combine(left, context.nested(query.expression), query, context)
    return context.written.move(left, rows)


def combine(left: Node, right: Node, query: exp.SetOperation, context: Context) -> Node:
    """The rows of two sides as a set operation combines them."""
    left, right = _sides_of_equal_types(left, right, query, context)
    if isinstance(query, exp.Union):
        return _union_rows(left, right, query, context)
    name = "EXCEPT" if isinstance(query, exp.Except) else "INTERSECT"
    keyword = TokenType.EXCEPT if name == "EXCEPT" else TokenType.INTERSECT
    if query.args.get("distinct"):
        left = distinct_of_query(left, query.expression, context)
        return context.placed(
            _except_or_intersect(name, left, right, context), query.expression, keyword
        )
    first, second = (_numbered_copies(side, query, context) for side in (left, right))
    compared = context.placed(
        _except_or_intersect(name, first, second, context), query.expression, keyword
    )
    return Project(compared, tuple(Output(each, Column(each)) for each in left.names))


def _union_rows(left: Node, right: Node, query: exp.Union, context: Context) -> Node:
    """The rows of both sides of a UNION; without ALL, equal ones once."""
    union = UnionAll((*_union_inputs(left), *_union_inputs(right)))
    context.placed(union, query.expression, TokenType.UNION)
    return (
        distinct_of_query(union, query.expression, context) if query.args.get("distinct") else union
    )


def _sides_of_equal_types(
    left: Node, right: Node, query: exp.SetOperation, context: Context
) -> tuple[Node, Node]:
    types = _set_operation_types(left, right, query, context)
    names = left.names
    return _side_with_types(left, names, types, context.places), _side_with_types(
        right, names, types, context.places
    )


def _numbered_copies(node: Node, query: exp.SetOperation, context: Context) -> Node:
    """The rows with a number among their equals, so that the n-th copies of both sides match."""
    refuse_incomparable(node, query.expression, context)
    return Window(node, (WindowColumn(_COPY, "row_number"),), node.names)


def _except_or_intersect(name: str, left: Node, right: Node, context: Context) -> Node:
    prefix = context.names.take("right")
    names = left.names
    right = rename_outputs(right, [f"{prefix}.{column}" for column in names], context.places)
    same = [Call("<=>", (Column(n), Column(f"{prefix}.{n}"))) for n in names]
    operator = AntiJoin if name == "EXCEPT" else SemiJoin
    return operator(left, right, conjunction(same))


def _union_inputs(node: Node) -> tuple[Node, ...]:
    """The inputs of a union below, so that a chain of UNION ALL is one operator."""
    return node.inputs if isinstance(node, UnionAll) else (node,)


def _set_operation_types(
    left: Node, right: Node, query: exp.SetOperation, context: Context
) -> list[Type]:
    if len(left.schema) != len(right.schema):
        problem = f"the sides have {len(left.schema)} and {len(right.schema)} columns"
        raise context.source.error(problem, query.expression)
    types = []
    for first, second in zip(left.schema, right.schema, strict=True):
        common = wider_type(first.type, second.type)
        if common is None:
            problem = (
                f'column "{first.name}" is {first.type} on one side, {second.type} on the other'
            )
            raise context.source.type_error(f"{problem}; add a CAST", query.expression)
        types.append(common)
    return types


def _side_with_types(node: Node, names: tuple[str, ...], types: list[Type], places: Places) -> Node:
    if [field.type for field in node.schema] == types:
        return node if node.names == names else rename_outputs(node, names, places)
    outputs = [
        Output(name, Column(field.name) if field.type == type_ else Cast(Column(field.name), type_))
        for name, field, type_ in zip(names, node.schema, types, strict=True)
    ]
    return Project(node, tuple(outputs))
