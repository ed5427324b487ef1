"""The arguments of aggregates, in the order in which the algebra has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from viewkeep.query.algebra import SortKey
from viewkeep.query.expressions import Cast, literal
from viewkeep.query.types.aggregates import ORDERED, PERCENTILES
from viewkeep.query.types.data_types import BINARY, STRING
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.clauses import AGGREGATE_NAMES
from viewkeep.sql.blocks.scope import Scalar, constant
from viewkeep.sql.blocks.windows import OrderKey, order_keys
from viewkeep.sql.expressions.stars import without_stars
from viewkeep.sql.expressions.translator import Translator


@dataclass(frozen=True, slots=True)
class Arguments:
    """What an aggregate is computed from; `distinct` tells that duplicates do not count."""

    values: tuple[Scalar, ...]
    order: tuple[OrderKey, ...] = ()
    distinct: bool = False

    @property
    def sort_keys(self) -> tuple[SortKey, ...]:
        """The order, as the algebra has it."""
        return tuple(SortKey(o.scalar.expression, o.descending, o.nulls_first) for o in self.order)


def aggregate_arguments(
    call: exp.Anonymous, within: exp.Expr | None, translator: Translator
) -> Arguments:
    """The arguments of a call, with what WITHIN GROUP orders by."""
    nodes, function = list(call.expressions), AGGREGATE_NAMES[call.name.lower()]
    distinct = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
    if distinct:  # Spark refuses count(DISTINCT t.*)
        stars = any(isinstance(each, exp.Star) for each in nodes[0].expressions)
        nodes = nodes[0].expressions
        nodes = without_stars(translator, nodes) if stars else nodes
    values = [translator.translate(_node_without_brackets(each)) for each in nodes]
    order = order_keys(within, translator)
    if within is not None and function not in ORDERED:
        raise translator.source.error(f"{function}() takes no WITHIN GROUP", call)
    if function in (*PERCENTILES, "mode"):
        values, order = _within_group_arguments(call, values, order, translator)
    elif function == "listagg" and values:
        values = [_argument_as_text(values[0]), *values[1:]]
        values += [constant(literal(""))] * (len(values) == 1)
    elif function == "approx_count_distinct":
        values = [*values[:1], *map(_argument_as_double, values[1:])]
    values = [*translator.cast_implicitly(function, values, call)]
    read = Arguments(tuple(values), order, distinct)
    _check_distinct_order(function, read, call, translator)
    return read


def _node_without_brackets(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) else node


def _within_group_arguments(
    call: exp.Anonymous,
    values: Sequence[Scalar],
    order: tuple[OrderKey, ...],
    translator: Translator,
) -> tuple[list[Scalar], tuple[OrderKey, ...]]:
    """The value first, then the share; an order only where it descends."""
    name, count = call.name.lower(), 0 if call.name.lower() == "mode" else 1
    if name != "percentile" and len(order) == 1 and len(values) == count:
        return [order[0].scalar, *values], order if order[0].descending else ()
    if name == "mode" and not order and len(values) in (1, 2):
        return [values[0]], ()
    if name == "percentile" and not order and len(values) == 2:
        return list(values), ()
    if name == "percentile" and len(values) == 3:
        raise translator.source.unsupported("percentile() with frequencies", call)
    form = {"mode": "mode(x)", "percentile": "percentile(x, 0.5)"}
    usual = form.get(name, f"{name}(0.5) WITHIN GROUP (ORDER BY x)")
    raise translator.source.error(f"{name}() is written {usual}", call)


def _argument_as_text(scalar: Scalar) -> Scalar:
    if scalar.typed.type in (STRING, BINARY) or scalar.typed.type.is_nested:
        return scalar
    return Scalar(Cast(scalar.expression, STRING), TypedValue(STRING, scalar.typed.nullable))


def _argument_as_double(scalar: Scalar) -> Scalar:
    """A literal as a double, which Spark asks for as the precision of an estimate."""
    value = scalar.typed.value
    return constant(literal(float(value))) if isinstance(value, int | Decimal) else scalar


def _check_distinct_order(
    function: str, read: Arguments, call: exp.Anonymous, translator: Translator
) -> None:
    """As in Spark, distinct values have no order but their own."""
    if not read.distinct or function not in ORDERED or call.name.lower() == "percentile":
        return
    if function != "listagg":
        raise translator.source.error(f"{function}() takes no DISTINCT", call)
    if any(key.scalar.expression != read.values[0].expression for key in read.order):
        problem = "listagg(DISTINCT x) is ordered by x only"
        raise translator.source.error(problem, call)
