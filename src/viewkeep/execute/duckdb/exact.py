"""What DuckDB does not compute exactly as Spark SQL does in ANSI mode, and why: the whole list.

Everything else that views may compute is the same: values, types, and whether it fails. Where
DuckDB has another meaning, its text says what is meant (`expressions`, `aggregates`, `dialect`).
Three things are left to chance in Spark itself, and so here: sums of doubles, variances, their
roots, covariances and regressions depend on the order of rows; whether an overflow within a sum is
an error, if the sum fits; and dates outside of the years 1 to 9999, which its types do not have. A
text in other case with characters that are newer than the Unicode of Python is refused when it is
met.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    GroupBy,
    Join,
    Node,
    Project,
    Select,
    SemiJoin,
    Values,
    Window,
    aggregate_of,
)
from viewkeep.query.expressions import Call, Cast, Expression, Literal, OpaqueCall, subexpressions
from viewkeep.query.show import formula_text, print_aggregate
from viewkeep.query.traversal import walk
from viewkeep.query.types.data_types import DOUBLE, FLOAT, INTEGRAL, Type, parse_type
from viewkeep.query.types.functions import find_function
from viewkeep.query.types.inference import Schema, type_of
from viewkeep.query.types.internal_functions import TRY_CAST
from viewkeep.query.types.rules import digits
from viewkeep.query.types.signatures import TypedValue

ONLY_SPARK = "only Spark computes it"
MATHEMATICS = "the last digit differs between the mathematics of Java and of C"
JAVA_DIGITS = "before Java 19, Spark sees more digits in some numbers beyond 2^53 than they have"
TIME_ZONES = "a text may name any time zone, or a time of the current day"
INTERPOLATION = "the last digit of a value between two others differs"
MOMENTS = "DuckDB corrects it for the size of the sample"
ESTIMATES = "both engines estimate, each in its own way"
OVERFLOW = "in DuckDB an overflow is an error, not NULL"
ZEROS = "Spark tells 0.0 from -0.0 here, DuckDB does not"
BYTES = "a text in DuckDB is UTF-8, in Spark it may be any bytes"

_JAVA_EXACT_DIGITS = 16
"""Numbers with fewer digits before the point are below 2^53, or nearly so."""

_FLOATING = (DOUBLE, FLOAT)

Applies = Callable[[Sequence[TypedValue]], bool]
"""Whether an entry holds for arguments of these types and values."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A function, or a cast, on the list; for some arguments only, if there is a condition."""

    reason: str
    applies: Applies = lambda arguments: True


def _has_floating_argument(arguments: Sequence[TypedValue]) -> bool:
    return any(argument.type in _FLOATING for argument in arguments)


def _has_nested_float(arguments: Sequence[TypedValue]) -> bool:
    return any(a.type.is_nested and a.type.has_float for a in arguments)


def _rounds_floating_to_tens(arguments: Sequence[TypedValue]) -> bool:
    places = arguments[1].value if len(arguments) > 1 else 0
    return _has_floating_argument(arguments[:1]) and isinstance(places, int) and places < 0


def _interpolates_exactly(arguments: Sequence[TypedValue]) -> bool:
    """Whether places between integers have few digits, so that interpolation is exact."""
    share = arguments[1].value
    if not isinstance(share, int | float | Decimal) or arguments[0].type not in INTEGRAL[:3]:
        return False
    return share * 8 == int(share * 8)


FUNCTIONS: Mapping[str, Entry] = {
    "ln": Entry(MATHEMATICS),
    "exp": Entry(MATHEMATICS),
    "power": Entry(MATHEMATICS),
    "round": Entry(JAVA_DIGITS, _rounds_floating_to_tens),
}
"""The functions on the list."""

AGGREGATES: Mapping[str, Entry] = {
    "median": Entry(INTERPOLATION, lambda arguments: arguments[0].type not in INTEGRAL[:3]),
    "percentile_cont": Entry(INTERPOLATION, lambda arguments: not _interpolates_exactly(arguments)),
    "percentile_disc": Entry(INTERPOLATION, lambda arguments: not _interpolates_exactly(arguments)),
    "skewness": Entry(MOMENTS),
    "kurtosis": Entry(MOMENTS),
    "approx_count_distinct": Entry(ESTIMATES),
    "try_sum": Entry(OVERFLOW),
    "try_avg": Entry(OVERFLOW),
    "collect_list": Entry(ZEROS, _has_nested_float),
    "collect_set": Entry(ZEROS, lambda a: _has_floating_argument(a) or _has_nested_float(a)),
    "mode": Entry(ZEROS, _has_floating_argument),
}
"""The aggregates on the list."""

CASTS: Mapping[tuple[str, str], Entry] = {
    ("string", "timestamp"): Entry(TIME_ZONES),
    ("string", "timestamp_ntz"): Entry(TIME_ZONES),
    ("binary", "string"): Entry(BYTES),
    ("double", "string"): Entry(JAVA_DIGITS),
    ("float", "string"): Entry(JAVA_DIGITS),
    ("double", "decimal"): Entry(JAVA_DIGITS, lambda types: _is_wide_decimal(types[1].type)),
    ("float", "decimal"): Entry(JAVA_DIGITS, lambda types: _is_wide_decimal(types[1].type)),
}
"""The casts on the list, by the names of the types; the second argument is the target."""


def inexact(node: Node) -> str | None:
    """Why DuckDB would not compute a query as Spark does, or None if it does.

    >>> from viewkeep.query.algebra import Scan
    >>> from viewkeep.query.expressions import Column, literal
    >>> from viewkeep.query.tables import Table
    >>> parts = Scan("parts", Table({"pid": "int", "price": "double"}), "p")
    >>> inexact(Select(parts, Call(">", (Column("p.price"), literal(3)))))
    >>> inexact(Select(parts, Call(">", (Call("ln", (Column("p.price"),)), literal(3)))))
    'ln(p.price): the last digit differs between the mathematics of Java and of C'
    """
    for each in walk(node):
        for aggregate, below in _aggregates_of_node(each):
            entry = AGGREGATES.get(aggregate.function)
            if aggregate.type is not None:
                return f"{print_aggregate(aggregate)}: {ONLY_SPARK}"
            types = [type_of(argument, below) for argument in aggregate.arguments]
            if entry is not None and entry.applies(types):
                return f"{print_aggregate(aggregate)}: {entry.reason}"
        for expression, schema in _expressions_of_node(each):
            for part in subexpressions(expression):
                reason = inexact_part(part, schema)
                if reason is not None:
                    return f"{formula_text(part)}: {reason}"
    return None


def inexact_part(expression: Expression, schema: Schema) -> str | None:
    """Why DuckDB would not compute the outermost function or cast as Spark does."""
    match expression:
        case Call(function, (argument, Literal(str(name)))) if function == TRY_CAST:
            return inexact_part(Cast(argument, parse_type(name)), schema)
        case Call(function, arguments):
            entry = FUNCTIONS.get(find_function(function).name)
            types = [type_of(argument, schema) for argument in arguments] if entry else []
        case OpaqueCall():
            return ONLY_SPARK
        case Cast(argument, target):
            source = type_of(argument, schema)
            entry = CASTS.get((source.type.name, target.name))
            types = [source, TypedValue(target, True)]
        case _:
            return None
    return entry.reason if entry is not None and entry.applies(types) else None


def _aggregates_of_node(node: Node) -> Iterator[tuple[AggregateColumn, Schema]]:
    match node:
        case GroupBy():
            yield from ((each, node.child.schema) for each in node.aggregates)
        case Window():
            yield from ((aggregate_of(each), node.child.schema) for each in node.columns)


def _is_wide_decimal(type_: Type) -> bool:
    precision, scale = digits(type_)
    return precision - scale > _JAVA_EXACT_DIGITS


def _expressions_of_node(node: Node) -> Iterator[tuple[Expression, Schema]]:
    match node:
        case Values():
            yield from ((each, ()) for row in node.rows for each in row)
        case Select():
            yield node.condition, node.child.schema
        case Join() | SemiJoin() | AntiJoin():
            yield node.condition, node.left.schema + node.right.schema
        case Project():
            yield from ((output.expression, node.child.schema) for output in node.outputs)
        case GroupBy():
            for aggregate in node.aggregates:
                ordered = [key.expression for key in aggregate.order]
                for expression in (*aggregate.arguments, *ordered):
                    yield expression, node.child.schema
        case Window():
            for column in node.columns:
                yield from ((argument, node.child.schema) for argument in column.arguments)
