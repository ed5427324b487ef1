"""Scalar expressions in DuckDB's text, with the values that Spark SQL computes in ANSI mode."""

from viewkeep.errors import QueryError
from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.functions import FUNCTIONS
from viewkeep.execute.duckdb.dialect.text import Text, literal_text, quote_name
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal, OpaqueCall
from viewkeep.query.types.functions import find_function
from viewkeep.query.types.inference import Schema, find_field, type_of


def expression_text(expression: Expression, schema: Schema) -> Text:
    """The text of an expression over columns whose types in DuckDB are those of the schema.

    >>> from viewkeep.query.types.data_types import BIGINT, INT, Field
    >>> schema = (Field("a", INT), Field("b", BIGINT))
    >>> print(expression_text(Call("+", (Column("a"), Column("b"))), schema).sql)
    (CAST("a" AS BIGINT) + "b")
    """
    match expression:
        case Column(name):
            field = find_field(name, schema)
            return Text(quote_name(name), field.type, field.nullable)
        case Literal():
            return literal_text(expression)
        case Cast():
            return cast(expression_text(expression.argument, schema), expression.type)
        case OpaqueCall():
            raise QueryError(f"only Spark computes {expression}")
        case Call():
            name = find_function(expression.function).name
            parts = (
                _parts_of_chain(expression, name) if name in ("and", "or") else expression.arguments
            )
            arguments = [expression_text(each, schema) for each in parts]
            return FUNCTIONS[name](arguments, type_of(expression, schema).type)


def _parts_of_chain(expression: Expression, name: str) -> tuple[Expression, ...]:
    """The parts of a chain of ANDs or ORs: nested, the text would double with each of them."""
    if isinstance(expression, Call) and expression.function == name:
        return tuple(part for each in expression.arguments for part in _parts_of_chain(each, name))
    return (expression,)
