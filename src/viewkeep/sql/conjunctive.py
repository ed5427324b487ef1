"""SQL views that are conjunctive queries: equi-joins, local selections, one aggregation on top."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from viewkeep.errors import QueryError, SchemaError
from viewkeep.query.aggregates import FUNCTIONS, Aggregate
from viewkeep.query.algebra import (
    AggregateColumn,
    Distinct,
    GroupBy,
    Node,
    Output,
    Project,
    Scan,
    Select,
)
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.expressions import Call, Column, Expression, columns_of, constant_column
from viewkeep.query.flatten import Flat, NotConjunctive, flatten, split_equalities
from viewkeep.query.show import formula_text
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import INTEGRAL, Type
from viewkeep.query.types.inference import Schema, find_field, type_of
from viewkeep.query.types.rules import is_decimal
from viewkeep.query.variables import Variables, bound_columns, table_constraints
from viewkeep.sql.parse import parse_with_places
from viewkeep.sql.source import describe_position


def from_sql(sql: str, tables: Mapping[str, Table]) -> ConjunctiveQuery:
    """The conjunctive query of a view, or NotConjunctive with the construct that prevents it.

    >>> tables = {"E": Table({"a": "int not null", "b": "int not null"})}
    >>> print(from_sql("SELECT e.a, f.b FROM E e JOIN E f ON e.b = f.a", tables))
    Q(a, f_b) = E(a, e_b) * E(e_b, f_b)
    """
    if not isinstance(tables, Mapping) or not all(isinstance(t, Table) for t in tables.values()):
        raise SchemaError('tables are given by name: tables={"parts": vk.Table({"pid": "int"})}')
    tree, places = parse_with_places(sql, tables)
    try:
        return to_conjunctive(tree)
    except NotConjunctive as error:
        if error.node not in places.starts:
            raise
        place = describe_position(sql, places.starts[error.node])
        raise NotConjunctive(error.construct, error.node, place) from None


@dataclass(frozen=True)
class OutputForm:
    """How the output of a conjunctive query becomes the rows of its view: for each column whether
    it is an aggregate, and whether a tuple is there as often as it counts."""

    aggregates: tuple[bool, ...]
    has_copies: bool


def output_form(sql: str, tables: Mapping[str, Table]) -> OutputForm:
    """The form of the rows of a view that `from_sql` takes.

    >>> tables = {"E": Table({"a": "int not null", "b": "int not null"})}
    >>> output_form("SELECT count(*) AS n, a FROM E GROUP BY a", tables)
    OutputForm(aggregates=(True, False), has_copies=False)
    """
    tree, _ = parse_with_places(sql, tables)
    outputs, groups, _ = _conjunctive_parts(tree)
    calls = {Column(each.name) for each in groups.aggregates} if groups else set()
    has_copies = groups is None and not isinstance(tree, Distinct)
    return OutputForm(tuple(each.expression in calls for each in outputs), has_copies)


def to_conjunctive(node: Node, name: str = "Q") -> ConjunctiveQuery:
    """The conjunctive query of an algebra tree.

    Rows come back as distinct tuples with their count, so DISTINCT on top changes nothing that
    is enumerated.
    """
    outputs, groups, rows = _conjunctive_parts(node)
    flat = flatten(rows)
    schema = tuple(field for scan in flat.scans for field in scan.schema)
    equalities, conditions = split_equalities(flat.conditions, schema, are_one_variable)
    head, aggregates = _conjunctive_head(outputs, groups, flat, schema)
    arguments = [a.argument for a in aggregates if a.argument is not None]
    used = {name for e in (*conditions, *head, *arguments) for name in columns_of(e)}
    columns = bound_columns(flat.scans, used.union(*equalities))
    variables = Variables.of(flat.scans, equalities, columns)
    try:
        return ConjunctiveQuery(
            name=name,
            outputs=_output_variables(head, variables),
            atoms=tuple(Atom(s.name, variables.of_scan(s)) for s in flat.scans),
            aggregates=tuple(renamed_aggregate(a, variables) for a in aggregates),
            conditions=(
                *_conditions_on_atoms(conditions, flat.scans, variables),
                *not_null_conditions(equalities, conditions, variables, schema),
            ),
            constraints=table_constraints(flat.scans, variables),
            columns=tuple(columns.items()),
            tables=tuple({s.name: _columns_of_scan(s) for s in flat.scans}.items()),
        )
    except NotConjunctive:
        raise
    except QueryError as error:
        raise NotConjunctive(f"an aggregate over several tables ({error})") from None


def _columns_of_scan(scan: Scan) -> tuple[str, ...]:
    return tuple(field.name for field in scan.table.columns)


def _conjunctive_parts(node: Node) -> tuple[Sequence[Output], GroupBy | None, Node]:
    """The output columns, the group-by if there is one, and the rows below."""
    if isinstance(node, Distinct):
        node = node.child
    outputs: Sequence[Output] = [Output(name, Column(name)) for name in node.names]
    if isinstance(node, Project):
        outputs, node = node.outputs, node.child
    if isinstance(node, Select) and isinstance(node.child, GroupBy):
        raise NotConjunctive("HAVING", node)
    return (outputs, node, node.child) if isinstance(node, GroupBy) else (outputs, None, node)


def are_one_variable(first: Type, second: Type) -> bool:
    """Whether equal values of two types are one value of a variable."""
    return first == second or (_is_exact_in_python(first) and _is_exact_in_python(second))


def _is_exact_in_python(type_: Type) -> bool:
    """Whether equal values of different such types are equal as Python values too."""
    return type_ in INTEGRAL or is_decimal(type_)


def _conjunctive_head(
    outputs: Sequence[Output], groups: GroupBy | None, flat: Flat, schema: Schema
) -> tuple[list[Column], list[Aggregate]]:
    """The output columns over the scans, and the aggregates, each in the order of the view."""
    calls = {a.name: a for a in groups.aggregates} if groups else {}
    head: list[Column] = []
    aggregates: list[Aggregate] = []
    for output in outputs:
        match output.expression:
            case Column(name) if name in calls:
                aggregates.append(conjunctive_aggregate(calls[name], flat, schema))
            case Column() as column:
                head.append(_plain_column(output.name, flat.over_scans(column)))
            case _:
                raise NotConjunctive(f'the computed output column "{output.name}"')
    keys = [_plain_column(key, flat.outputs[key]) for key in groups.keys] if groups else []
    for key in keys:
        if key not in head:
            raise NotConjunctive(f'the GROUP BY column "{key.name}" is not in the output')
    return head, aggregates


def _plain_column(name: str, expression: Expression) -> Column:
    if not isinstance(expression, Column):
        raise NotConjunctive(f'the computed column "{name}" ({formula_text(expression)})')
    return expression


def conjunctive_aggregate(call: AggregateColumn, flat: Flat, schema: Schema) -> Aggregate:
    """An aggregate over columns of the scans; count(x) of what is never NULL counts all rows."""
    if call.argument is None:
        return Aggregate("count")
    if call.function not in FUNCTIONS:
        raise NotConjunctive(f"the aggregate {call.function}()")
    argument = flat.over_scans(call.argument)
    if call.function == "count" and not type_of(argument, schema).nullable:
        return Aggregate("count")
    type_ = type_of(argument, schema).type
    if call.function in ("min", "max") and type_.is_nested:
        raise NotConjunctive(f"{call.function}() of {type_}")
    return Aggregate(call.function, argument)


def renamed_aggregate(aggregate: Aggregate, variables: Variables) -> Aggregate:
    """An aggregate over columns as one over variables."""
    if aggregate.argument is None:
        return aggregate
    return Aggregate(aggregate.function, variables.rename(aggregate.argument))


def _output_variables(head: Sequence[Column], variables: Variables) -> tuple[str, ...]:
    outputs: dict[str, Column] = {}
    for column in head:
        variable = variables.of_column[column.name]
        if variable in outputs:
            raise NotConjunctive(
                f'the output columns "{outputs[variable].name}" and "{column.name}" are always '
                "equal; keep one"
            )
        outputs[variable] = column
    return tuple(outputs)


def _conditions_on_atoms(
    conditions: Iterable[Expression], scans: Sequence[Scan], variables: Variables
) -> Iterator[Expression]:
    """The conditions over variables; each must fit in one atom."""
    schemas = [frozenset(variables.of_scan(scan)) for scan in scans]
    for condition in conditions:
        renamed = variables.rename(condition)
        if not any(columns_of(renamed) <= schema for schema in schemas):
            construct = (
                f"the condition {formula_text(condition)} between tables, which is no equality"
            )
            raise NotConjunctive(construct)
        yield renamed


def not_null_conditions(
    equalities: Iterable[tuple[str, str]],
    conditions: Iterable[Expression],
    variables: Variables,
    schema: Schema,
) -> Iterator[Expression]:
    """NULL equals nothing in SQL, but is a value like any other to a variable."""
    constants = {constant_column(variables.rename(condition)) for condition in conditions}
    for variable in dict.fromkeys(variables.of_column[first] for first, _ in equalities):
        columns = [c for c, v in variables.of_column.items() if v == variable]
        nullable = all(find_field(column, schema).nullable for column in columns)
        if nullable and variable not in constants:
            yield Call("isnotnull", (Column(variable),))
