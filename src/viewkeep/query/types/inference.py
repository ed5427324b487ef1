"""Types of whole expressions over a schema."""

from collections.abc import Sequence

from viewkeep.errors import QueryError, did_you_mean
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal, OpaqueCall
from viewkeep.query.types.data_types import BOOLEAN, STRING, VOID, Field, Type
from viewkeep.query.types.functions import find_function
from viewkeep.query.types.rules import is_castable
from viewkeep.query.types.signatures import TypedValue

Schema = tuple[Field, ...]
"""The columns of a table or of an operator's output, in order, with distinct names."""


def type_of(expression: Expression, schema: Schema) -> TypedValue:
    """The type of an expression over columns, or a QueryError that names the clash.

    >>> from viewkeep.query.types.data_types import INT
    >>> print(type_of(Call("/", (Column("a"), Column("a"))), (Field("a", INT),)).type)
    double
    """
    match expression:
        case Column():
            field = find_field(expression.name, schema)
            return TypedValue(field.type, field.nullable)
        case Literal():
            return TypedValue(expression.type, expression.value is None, expression.value)
        case Call():
            arguments = [type_of(argument, schema) for argument in expression.arguments]
            return find_function(expression.function).result(arguments)
        case OpaqueCall():
            return TypedValue(expression.type, nullable=True)
        case Cast():
            return cast_result(type_of(expression.argument, schema), expression.type)


def find_field(name: str, schema: Schema) -> Field:
    """The column with this name."""
    field = _fields_by_name(schema).get(name)
    if field is not None:
        return field
    names = [field.name for field in schema]
    raise QueryError(f'no column "{name}" ({", ".join(names)}){did_you_mean(name, names)}')


_BY_NAME: dict[int, tuple[Schema, dict[str, Field]]] = {}
"""The columns of schemas by name; an entry holds its schema, so that no other has its number."""
MOST_SCHEMAS = 4096


def _fields_by_name(schema: Schema) -> dict[str, Field]:
    entry = _BY_NAME.get(id(schema))
    if entry is None:
        if len(_BY_NAME) >= MOST_SCHEMAS:
            _BY_NAME.clear()
        entry = (schema, {field.name: field for field in reversed(schema)})
        _BY_NAME[id(schema)] = entry
    return entry[1]


def cast_result(argument: TypedValue, target: Type) -> TypedValue:
    """The type of a cast; a string that does not read as the target may become NULL."""
    if not is_castable(argument.type, target):
        raise QueryError(f"cannot cast {argument.type} to {target}")
    return TypedValue(target, argument.nullable or (argument.type == STRING and target != STRING))


def check_condition(condition: Expression, schema: Schema) -> None:
    """Refuse a condition that is not boolean."""
    kind = type_of(condition, schema).type
    if kind not in (BOOLEAN, VOID):
        raise QueryError(f"the condition {condition} must be boolean, but it is {kind}")


def check_names(schema: Sequence[Field]) -> None:
    """Refuse a schema in which two columns share a name."""
    names: set[str] = set()
    for field in schema:
        if field.name in names:
            raise QueryError(f'two columns are called "{field.name}"; rename one of them')
        names.add(field.name)
