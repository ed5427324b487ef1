"""Subqueries in expressions: scalar ones, EXISTS and IN, each joined to the rows that ask for it.

A subquery is grouped by what links it to the rows around it, so that at most one of its rows
belongs to each of them, and joined from the left; an expression over its columns is its value.
As in Spark, IN is never NULL there: it is FALSE where nothing equals, and NOT IN is FALSE where a
comparison is NULL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from viewkeep.errors import UnsupportedError
from viewkeep.query.algebra import AggregateColumn, GroupBy, Node, Output, Project, Scan
from viewkeep.query.clock import CLOCK, CLOCK_TABLE
from viewkeep.query.expressions import TRUE, Cast, Column, literal
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.inference import type_of
from viewkeep.query.types.internal_functions import SINGLE
from viewkeep.query.types.rules import common_type
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.blocks.inline_tables import inline_common_tables
from viewkeep.sql.blocks.scope import Scalar, constant
from viewkeep.sql.blocks.top import without_brackets
from viewkeep.sql.expressions.clock import clock_column
from viewkeep.sql.expressions.correlation import Link, Outer
from viewkeep.sql.expressions.lateral import rows_by_domain
from viewkeep.sql.expressions.subquery_joins import SubqueryJoins
from viewkeep.sql.expressions.subquery_rows import Answer, SubqueryRows, Total
from viewkeep.sql.expressions.translator import Translator
from viewkeep.sql.expressions.unique import is_unique


def attach_to(
    context: Context, rows: Node, keys: Mapping[str, Scalar] | None = None
) -> "Subqueries":
    """The collector of subqueries in expressions over rows, or over groups of them by keys."""
    if keys is None:
        return Subqueries(context, Outer(rows, rows.schema, {}))
    schema = tuple(Field(n, k.typed.type, k.typed.nullable) for n, k in keys.items())
    values = {name: key.expression for name, key in keys.items()}
    return Subqueries(context, Outer(rows, schema, values))


class Subqueries:
    """The subqueries of one clause; one that is written twice is joined once."""

    def __init__(self, context: Context, outer: Outer) -> None:
        self._context, self._joins = context, SubqueryJoins(context, outer)
        self._rows = SubqueryRows(context, self._joins)
        self._values: dict[exp.Expr, Scalar] = {}
        self._clock: Scan | None = None

    def attached(self, node: Node) -> Node:
        """The rows, each with the values of the subqueries for it."""
        return self._joins.attached(node)

    def translate(self, node: exp.Expr, translator: Translator) -> Scalar | None:
        """The expression that a subquery becomes; None for what is none."""
        if node not in self._values:
            self._joins.place = node
            value = self._translate_subquery(node, translator)
            if value is None:
                return None
            self._values[node] = value
        return self._values[node]

    def _translate_subquery(self, node: exp.Expr, translator: Translator) -> Scalar | None:
        column = clock_column(node) if self._context.has_clock else None
        if column is not None:
            return self._read_clock(column)
        match node:
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return self._scalar_subquery(node, translator)
            case exp.Exists():
                return self._exists_subquery(node.this, translator)
            case exp.Anonymous(expressions=[exp.Subquery() as query]):
                return (
                    self._exists_subquery(query, translator)
                    if node.name.lower() == "exists"
                    else None
                )
            case exp.In() if node.args.get("query") is not None:
                return self._in_subquery(node, False, translator)
            case exp.Not():
                return self._translate_not(node, translator)
        return None

    def _read_clock(self, column: str) -> Scalar:
        """A column of the clock, whose one row is joined once to the rows of the clause."""
        if self._clock is None:
            self._clock = Scan(CLOCK, CLOCK_TABLE, self._context.names.take(CLOCK))
            self._joins.add_constant(self._clock)
        value = Column(f"{self._clock.alias}.{column}")
        return Scalar(value, type_of(value, self._clock.schema))

    def _translate_not(self, node: exp.Not, translator: Translator) -> Scalar | None:
        """Push NOT down to IN, as Spark does: NOT IN is not the negation of IN where a comparison
        is NULL."""
        inner = node.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        match inner:
            case exp.In() if inner.args.get("query") is not None:
                return self._in_subquery(inner, True, translator)
            case exp.Not() if _has_membership(inner):
                return translator.condition(inner.this)
            case exp.And() | exp.Or() if _has_membership(inner):
                sides = [exp.Not(this=side.copy()) for side in (inner.this, inner.expression)]
                parts = [translator.condition(side) for side in sides]
                name = "or" if isinstance(inner, exp.And) else "and"
                return translator.call(name, parts, node)
        return None

    def _open(
        self, query: exp.Expr, translator: Translator, items_matter: bool = True
    ) -> Answer | Total:
        """The rows of a subquery; of one that reads the rows around it elsewhere than in WHERE, for
        all values that it reads."""
        query, joins = translator.as_subquery(query), self._joins.count
        try:
            return self._rows.open(query, translator, items_matter)
        except UnsupportedError as refusal:
            self._joins.forget_after(joins)
            try:
                answer = self._open_in_other_ways(query, translator, items_matter)
            except UnsupportedError:
                answer = None
            if answer is None:
                self._joins.forget_after(joins)
                raise refusal from None
            return answer

    def _open_in_other_ways(
        self, query: exp.Expr, translator: Translator, items_matter: bool
    ) -> Answer | Total | None:
        without_tables = inline_common_tables(without_brackets(query))
        if without_tables is not None:
            joins = self._joins.count
            try:
                return self._rows.open(without_tables, translator, items_matter)
            except UnsupportedError:
                self._joins.forget_after(joins)
                query = without_tables
        context = replace(self._context, outer=translator.subquery_scope)
        return rows_by_domain(query, self._joins.outer, self._rows, context)

    # --- values -----------------------------------------------------------------------------------

    def _scalar_subquery(self, query: exp.Expr, translator: Translator) -> Scalar:
        answer = self._open(query, translator)
        if answer.links and not translator.correlated_scalars:
            construct = "a correlated scalar subquery in ON"
            raise self._context.source.unsupported(construct, query)
        if isinstance(answer, Total):
            self._check_one_column(answer.items, query)
            return _if_having(answer, answer.items[0], translator, query)
        self._check_one_column(answer.items, query)
        if not answer.links or not is_unique(answer.node, set(answer.keys)):
            return self._single_value(answer, translator, query)
        self._joins.add(answer.node, answer.links, answer.keys)
        return self._joins.column(answer.node, answer.items[0])

    def _check_one_column(self, items: Sequence[object], query: exp.Expr) -> None:
        if len(items) != 1:
            problem = f"a scalar subquery has one column, but this one has {len(items)}"
            raise self._context.source.error(problem, query)

    def _single_value(self, answer: Answer, translator: Translator, query: exp.Expr) -> Scalar:
        """The only value; more than one is an error, as in Spark."""
        item = answer.items[0]
        typed = type_of(Column(item), answer.node.schema)
        translator.refuse_carried(Scalar(Column(item), typed), query, "<")
        value, count = (
            AggregateColumn("value", "max", Column(item)),
            AggregateColumn("all", "count"),
        )
        return translator.call(SINGLE, self._aggregates_per_row(answer, [value, count]), query)

    def _exists_subquery(self, query: exp.Expr, translator: Translator) -> Scalar:
        answer = self._open(query, translator, items_matter=False)
        if isinstance(answer, Total):
            return _subquery_having_passes(answer, translator, query)
        rows = self._row_and_value_counts(answer)
        return self._some_row(rows, translator, query)

    def _row_and_value_counts(self, answer: Answer, *values: str) -> list[Scalar]:
        """How many rows there are, and how many values that are not NULL."""
        counts = [AggregateColumn("all", "count")]
        counts += [AggregateColumn(f"of.{v}", "count", Column(v)) for v in values]
        return self._aggregates_per_row(answer, counts)

    def _aggregates_per_row(
        self, answer: Answer, aggregates: Sequence[AggregateColumn]
    ) -> list[Scalar]:
        """Aggregates of the rows that belong to each outer row, under names of their own."""
        alias = self._context.names.take("rows")
        groups = GroupBy(answer.node, answer.keys, tuple(aggregates))
        names = {name: f"{alias}.{name}" for name in groups.names}
        node = Project(groups, tuple(Output(new, Column(old)) for old, new in names.items()))
        self._joins.add(node, answer.links, [names[key] for key in answer.keys])
        return [self._joins.column(node, names[each.name]) for each in aggregates]

    def _some_row(self, rows: Sequence[Scalar], translator: Translator, node: exp.Expr) -> Scalar:
        if rows[0].typed.nullable:
            return translator.call("isnotnull", rows[:1], node)
        return translator.call(">", [rows[0], constant(literal(0))], node)

    # --- IN ---------------------------------------------------------------------------------------

    def _in_subquery(self, node: exp.In, negated: bool, translator: Translator) -> Scalar:
        nodes = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        values = [translator.translate(value) for value in nodes]
        answer = self._open(node.args["query"], translator)
        if len(answer.items) != len(values):
            problem = f"IN compares {len(values)} values with a subquery of {len(answer.items)}"
            raise self._context.source.error(f"{problem} columns", node)
        if isinstance(answer, Total):
            return _equals_total(answer, values, negated, translator, node)
        member = self._some_row_equals(answer, values, translator, node)
        if not negated:
            return member
        items = [type_of(Column(item), answer.node.schema) for item in answer.items]
        if any(typed.nullable for typed in (*(v.typed for v in values), *items)):
            unknown = self._some_comparison_null(answer, values, translator, node)
            member = translator.call("or", [member, unknown], node)
        return translator.call("not", [member], node)

    def _some_row_equals(
        self, answer: Answer, values: Sequence[Scalar], translator: Translator, node: exp.Expr
    ) -> Scalar:
        """Whether some row equals the values, which become links."""
        links, outputs = list(answer.links), [Output(k, Column(k)) for k in answer.keys]
        for item, value in zip(answer.items, values, strict=True):
            column = Scalar(Column(item), type_of(Column(item), answer.node.schema))
            sides = outer, inner = translator.cast_implicitly("=", [value, column], node)
            translator.compare("=", sides, node)
            own = inner.typed.type
            common = common_type(outer.typed.type, own) or own
            output = inner.expression if own == common else Cast(inner.expression, common)
            outputs.append(Output(item, output))
            links.append(Link(Column(item), "=", outer.expression))
        linked = replace(answer, node=Project(answer.node, tuple(outputs)), links=tuple(links))
        return self._some_row(self._row_and_value_counts(linked), translator, node)

    def _some_comparison_null(
        self, answer: Answer, values: Sequence[Scalar], translator: Translator, node: exp.Expr
    ) -> Scalar:
        """Whether some comparison is NULL."""
        if len(values) > 1:
            construct = "NOT IN of several values that may be NULL outside a conjunction"
            raise self._context.source.unsupported(construct, node)
        zero = constant(literal(0))
        counts = [
            translator.call("coalesce", [count, zero], node)
            for count in self._row_and_value_counts(answer, answer.items[0])
        ]
        some = translator.call(">", [counts[0], zero], node)
        nulls = translator.call(">", counts, node)
        absent = translator.call("isnull", [values[0]], node)
        return translator.call("and", [some, translator.call("or", [absent, nulls], node)], node)


def _has_membership(node: exp.Expr) -> bool:
    return any(part.args.get("query") is not None for part in node.find_all(exp.In))


def _subquery_having_passes(total: Total, translator: Translator, node: exp.Expr) -> Scalar:
    if total.having is None:
        return constant(TRUE)
    return translator.call("coalesce", [total.having, constant(literal(False))], node)


def _if_having(total: Total, value: Scalar, translator: Translator, node: exp.Expr) -> Scalar:
    if total.having is None:
        return value
    return translator.call("case", [total.having, value], node)


def _equals_total(
    total: Total,
    values: Sequence[Scalar],
    negated: bool,
    translator: Translator,
    node: exp.Expr,
) -> Scalar:
    """IN for a subquery of one row, or of none where HAVING takes it away."""
    member = _subquery_having_passes(total, translator, node)
    for value, item in zip(values, total.items, strict=True):
        same = translator.compare("=", [value, item], node)
        member = translator.call("and", [member, same], node)
    sure = translator.call("coalesce", [member, constant(literal(negated))], node)
    return translator.call("not", [sure], node) if negated else sure
