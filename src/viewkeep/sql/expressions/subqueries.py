"""Subqueries in expressions: scalar ones, EXISTS and IN, each joined to the rows that ask for it.

A subquery is grouped by what links it to the rows around it, so that at most one of its rows
belongs to each of them, and joined from the left; an expression over its columns is its value.
As in Spark, IN is never NULL there: it is FALSE where nothing equals, and NOT IN is FALSE where a
comparison is NULL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeep.errors import UnsupportedError
from viewkeep.query.algebra import (
    AggregateColumn,
    Distinct,
    GroupBy,
    Join,
    Node,
    Output,
    Project,
    Scan,
    Select,
)
from viewkeep.query.clock import CLOCK, CLOCK_TABLE
from viewkeep.query.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    Expression,
    columns_of,
    conjunction,
    literal,
    substitute,
)
from viewkeep.query.types.aggregates import COLLECTIONS
from viewkeep.query.types.data_types import BIGINT, Field
from viewkeep.query.types.functions import SINGLE, Typed
from viewkeep.query.types.inference import type_of
from viewkeep.query.types.rules import common_type
from viewkeep.sql.blocks.block import Block, chooses_rows, translate_block
from viewkeep.sql.blocks.clauses import is_grouped, refuse_clauses
from viewkeep.sql.blocks.context import Context, with_common_tables
from viewkeep.sql.blocks.items import item_names, select_items
from viewkeep.sql.blocks.joins import join
from viewkeep.sql.blocks.outputs import renamed
from viewkeep.sql.blocks.scope import Scalar, constant
from viewkeep.sql.blocks.select import named_windows, ordered_names, read_qualify
from viewkeep.sql.blocks.top import apply_top, read_top, unwrapped
from viewkeep.sql.blocks.windows import BlockWindows
from viewkeep.sql.expressions.clock import clock_column
from viewkeep.sql.expressions.correlation import Link, Outer, link
from viewkeep.sql.expressions.domain import Domain
from viewkeep.sql.expressions.translator import Translator, attached
from viewkeep.sql.expressions.unique import is_unique
from viewkeep.sql.groups.aggregation import aggregate
from viewkeep.sql.groups.grouping import GroupedTranslator, GroupKey, aliases_of
from viewkeep.sql.groups.groups import apply_groups, group_translator, place_groups

_FAR = "a subquery that reads this of the query around it"
_ZERO = Cast(literal(0), BIGINT)


@dataclass(frozen=True, slots=True)
class OneRow:
    """Rows of which at most one belongs to each row that they are joined to, or just one."""

    right: Node
    condition: Expression
    always: bool


@dataclass(frozen=True, slots=True)
class Total:
    """An aggregate of all rows that belong to an outer row: one value, whether there are any."""

    items: tuple[Scalar, ...]
    having: Scalar | None
    links: tuple[Link, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a subquery: columns that are linked to outer expressions, then the items."""

    node: Node
    links: tuple[Link, ...]
    names: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The linked columns."""
        return self.node.names[: len(self.links)]

    @property
    def items(self) -> tuple[str, ...]:
        """The columns of the select list."""
        return self.node.names[len(self.links) :]


def attach_to(
    context: Context, rows: Node, keys: Mapping[str, Scalar] | None = None
) -> "Subqueries":
    """What collects the subqueries in expressions over rows, or over groups of them by keys."""
    if keys is None:
        return Subqueries(context, Outer(rows, rows.schema, {}))
    schema = tuple(Field(n, k.typed.type, k.typed.nullable) for n, k in keys.items())
    values = {name: key.expression for name, key in keys.items()}
    return Subqueries(context, Outer(rows, schema, values))


class Subqueries:
    """The subqueries of one clause; one that is written twice is joined once."""

    def __init__(self, context: Context, outer: Outer) -> None:
        self._context, self._outer = context, outer
        self._attachments: list[OneRow] = []
        self._values: dict[exp.Expr, Scalar] = {}
        self._place: exp.Expr = exp.Null()
        self._clock: Scan | None = None

    def attached(self, node: Node) -> Node:
        """The rows, each with the values of the subqueries for it."""
        for each in self._attachments:
            if each.always:
                node = Join(node, each.right, each.condition)
            else:
                node = join("left", node, each.right, each.condition)
        return node

    def translate(self, node: exp.Expr, translator: Translator) -> Scalar | None:
        """The expression that a subquery becomes; None for what is none."""
        if node not in self._values:
            self._place = node
            value = self._translate(node, translator)
            if value is None:
                return None
            self._values[node] = value
        return self._values[node]

    def _translate(self, node: exp.Expr, translator: Translator) -> Scalar | None:
        column = clock_column(node) if self._context.has_clock else None
        if column is not None:
            return self._read_clock(column)
        match node:
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return self._scalar(node, translator)
            case exp.Exists():
                return self._exists(node.this, translator)
            case exp.Anonymous(expressions=[exp.Subquery() as query]):
                return self._exists(query, translator) if node.name.lower() == "exists" else None
            case exp.In() if node.args.get("query") is not None:
                return self._member(node, False, translator)
            case exp.Not():
                return self._negated(node, translator)
        return None

    def _read_clock(self, column: str) -> Scalar:
        """A column of the clock, whose one row is joined once to the rows of the clause."""
        if self._clock is None:
            self._clock = Scan(CLOCK, CLOCK_TABLE, self._context.names.take(CLOCK))
            self._attachments.append(OneRow(self._clock, TRUE, True))
        value = Column(f"{self._clock.alias}.{column}")
        return Scalar(value, type_of(value, self._clock.schema))

    def _negated(self, node: exp.Not, translator: Translator) -> Scalar | None:
        """NOT goes down to IN, as in Spark: NOT IN is not the negation of IN where it is NULL."""
        inner = node.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        match inner:
            case exp.In() if inner.args.get("query") is not None:
                return self._member(inner, True, translator)
            case exp.Not() if _has_membership(inner):
                return translator.condition(inner.this)
            case exp.And() | exp.Or() if _has_membership(inner):
                sides = [exp.Not(this=side.copy()) for side in (inner.this, inner.expression)]
                parts = [translator.condition(side) for side in sides]
                name = "or" if isinstance(inner, exp.And) else "and"
                return translator.call(name, parts, node)
        return None

    # --- values -----------------------------------------------------------------------------------

    def _scalar(self, query: exp.Expr, translator: Translator) -> Scalar:
        answer = self.open(query, translator)
        if answer.links and not translator.correlated_scalars:
            construct = "a correlated scalar subquery in ON, or beside GROUP BY,"
            raise self._context.source.unsupported(construct, query)
        if isinstance(answer, Total):
            self._one_column(answer.items, query)
            return _if_having(answer, answer.items[0], translator, query)
        self._one_column(answer.items, query)
        if not answer.links or not is_unique(answer.node, set(answer.keys)):
            return self._single(answer, translator, query)
        self._attach(answer.node, answer.links, answer.keys)
        return self._column(answer.node, answer.items[0])

    def _one_column(self, items: Sequence[object], query: exp.Expr) -> None:
        if len(items) != 1:
            problem = f"a scalar subquery has one column, but this one has {len(items)}"
            raise self._context.source.error(problem, query)

    def _single(self, answer: Answer, translator: Translator, query: exp.Expr) -> Scalar:
        """The only value; more than one is an error, as in Spark."""
        item = answer.items[0]
        typed = type_of(Column(item), answer.node.schema)
        translator.refuse_carried(Scalar(Column(item), typed), query, "<")
        value, count = (
            AggregateColumn("value", "max", Column(item)),
            AggregateColumn("all", "count"),
        )
        return translator.call(SINGLE, self._aggregated(answer, [value, count]), query)

    def _exists(self, query: exp.Expr, translator: Translator) -> Scalar:
        answer = self.open(query, translator, items_matter=False)
        if isinstance(answer, Total):
            return _passes(answer, translator, query)
        rows = self._counted(answer)
        return self._some(rows, translator, query)

    def _counted(self, answer: Answer, *values: str) -> list[Scalar]:
        """How many rows there are, and how many values that are not NULL."""
        counts = [AggregateColumn("all", "count")]
        counts += [AggregateColumn(f"of.{v}", "count", Column(v)) for v in values]
        return self._aggregated(answer, counts)

    def _aggregated(self, answer: Answer, aggregates: Sequence[AggregateColumn]) -> list[Scalar]:
        """Aggregates of the rows that belong to each outer row, under names of their own."""
        alias = self._context.names.take("rows")
        groups = GroupBy(answer.node, answer.keys, tuple(aggregates))
        names = {name: f"{alias}.{name}" for name in groups.names}
        node = Project(groups, tuple(Output(new, Column(old)) for old, new in names.items()))
        self._attach(node, answer.links, [names[key] for key in answer.keys])
        return [self._column(node, names[each.name]) for each in aggregates]

    def _some(self, rows: Sequence[Scalar], translator: Translator, node: exp.Expr) -> Scalar:
        if rows[0].typed.nullable:
            return translator.call("isnotnull", rows[:1], node)
        return translator.call(">", [rows[0], constant(literal(0))], node)

    # --- IN ---------------------------------------------------------------------------------------

    def _member(self, node: exp.In, negated: bool, translator: Translator) -> Scalar:
        written = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        values = [translator.translate(value) for value in written]
        answer = self.open(node.args["query"], translator)
        if len(answer.items) != len(values):
            problem = f"IN compares {len(values)} values with a subquery of {len(answer.items)}"
            raise self._context.source.error(f"{problem} columns", node)
        if isinstance(answer, Total):
            return _equals_total(answer, values, negated, translator, node)
        member = self._matches(answer, values, translator, node)
        if not negated:
            return member
        items = [type_of(Column(item), answer.node.schema) for item in answer.items]
        if any(typed.nullable for typed in (*(v.typed for v in values), *items)):
            unknown = self._unknown(answer, values, translator, node)
            member = translator.call("or", [member, unknown], node)
        return translator.call("not", [member], node)

    def _matches(
        self, answer: Answer, values: Sequence[Scalar], translator: Translator, node: exp.Expr
    ) -> Scalar:
        """Whether some row equals the values: they are links of their own."""
        links, outputs = list(answer.links), [Output(k, Column(k)) for k in answer.keys]
        for item, value in zip(answer.items, values, strict=True):
            column = Scalar(Column(item), type_of(Column(item), answer.node.schema))
            translator.compare("=", [value, column], node)
            common = common_type(value.typed.type, column.typed.type) or column.typed.type
            same = column.typed.type == common
            outputs.append(Output(item, Column(item) if same else Cast(Column(item), common)))
            links.append(Link(Column(item), "=", value.expression))
        linked = replace(answer, node=Project(answer.node, tuple(outputs)), links=tuple(links))
        return self._some(self._counted(linked), translator, node)

    def _unknown(
        self, answer: Answer, values: Sequence[Scalar], translator: Translator, node: exp.Expr
    ) -> Scalar:
        """Whether some comparison is NULL."""
        if len(values) > 1:
            construct = "NOT IN of several values that may be NULL outside a conjunction"
            raise self._context.source.unsupported(construct, node)
        zero = constant(literal(0))
        counts = [
            translator.call("coalesce", [count, zero], node)
            for count in self._counted(answer, answer.items[0])
        ]
        some = translator.call(">", [counts[0], zero], node)
        nulls = translator.call(">", counts, node)
        absent = translator.call("isnull", [values[0]], node)
        return translator.call("and", [some, translator.call("or", [absent, nulls], node)], node)

    # --- rows of the subquery ---------------------------------------------------------------------

    def open(
        self, query: exp.Expr, translator: Translator, items_matter: bool = True
    ) -> Answer | Total:
        """The rows of a subquery by what links them to the outer rows, or its total."""
        written = unwrapped(query)
        context = replace(self._context, outer=translator.subquery_scope)
        if not isinstance(written, exp.Select):
            return self._renamed(context.nested(written))
        if chooses_rows(written):
            try:
                return self._renamed(context.nested(written))
            except UnsupportedError:
                if written.args.get("distinct"):
                    raise
        refuse_clauses(written, context.source)
        return self._opened(written, with_common_tables(written, context), items_matter)

    def open_by_domain(self, written: exp.Select, domain: Domain) -> Answer | Total:
        """The rows of a subquery for each row of a domain, which all of its clauses may read."""
        refuse_clauses(written, self._context.source)
        context = with_common_tables(written, replace(self._context, outer=domain.scope))
        return self._opened(written, context, True, domain)

    def _opened(
        self,
        written: exp.Select,
        context: Context,
        items_matter: bool,
        domain: Domain | None = None,
    ) -> Answer | Total:
        """The rows of a block; which of them windows and LIMIT choose, outer row by outer row."""
        block, links = self._block(written, context, domain)
        if is_grouped(written) and not written.args.get("group"):
            return self._total(written, block, links, context, domain)
        if is_grouped(written):
            constants = domain.node.names if domain else ()
            inner: Translator = group_translator(written, block, context, constants)
        else:
            correlated = domain is not None or not items_matter
            inner = Translator(context.source, block.scope, correlated=correlated)
            inner.attachments = context.attachments(block.node)
        windows = inner.windows = BlockWindows(named_windows(written))
        items = select_items(written, inner)
        qualify = read_qualify(written, inner)
        top = read_top(written, inner, ordered_names(written))
        inner.windows = None
        if isinstance(inner, GroupedTranslator):
            keys = _link_keys(links, block) | {k.scalar.expression: k for k in inner.keys}
            node = apply_groups(written, block, inner, context, keys)
            columns: list[Expression] = [Column(keys[each.inner].name) for each in links]
        else:
            node, columns = attached(block.node, inner), [each.inner for each in links]
        node = windows.apply(node, context, columns)
        if qualify is not None:
            node = Select(node, qualify.expression)
        node = apply_top(node, top, context, columns)
        listed = [item.scalar.expression for item in items] if items_matter else [literal(1)]
        node = self._projected(node, columns, listed)
        names = item_names(items, context.source) if items_matter else ()
        return Answer(Distinct(node) if written.args.get("distinct") else node, links, names)

    def _block(
        self, select: exp.Select, context: Context, domain: Domain | None
    ) -> tuple[Block, tuple[Link, ...]]:
        block = translate_block(select, context, correlated=True)
        if domain is not None:
            joined = Join(domain.node, block.node, conjunction(block.correlated))
            return replace(block, node=joined, correlated=()), domain.links
        alias = context.names.take("outer")
        linked = link(block.node, block.correlated, self._outer, alias)
        if linked is None:
            raise context.source.unsupported(_FAR, select)
        return replace(block, node=linked.node, correlated=()), linked.links

    def _projected(
        self, node: Node, links: Sequence[Expression], items: Sequence[Expression]
    ) -> Node:
        alias = self._context.names.take("subquery")
        outputs = [Output(f"{alias}.link_{i}", e) for i, e in enumerate(links, start=1)]
        outputs += [Output(f"{alias}.{i}", e) for i, e in enumerate(items, start=1)]
        return Project(node, tuple(outputs))

    def _renamed(self, node: Node) -> Answer:
        alias = self._context.names.take("subquery")
        names = [f"{alias}.{name}" for name in node.names]
        return Answer(renamed(node, names, self._context.places), (), node.names)

    def _total(
        self,
        select: exp.Select,
        block: Block,
        links: tuple[Link, ...],
        context: Context,
        domain: Domain | None,
    ) -> Total:
        """An aggregate without GROUP BY: no rows have a count of 0 and other aggregates of NULL."""
        if chooses_rows(select):
            construct = "LIMIT or QUALIFY of one row in a correlated subquery"
            raise context.source.unsupported(construct, select)
        beside = domain.values if domain else {}
        groups = GroupedTranslator(context.source, block.scope, (), tuple(beside))
        groups.rows.attachments = context.attachments(block.node)
        if not links:
            groups.attachments = context.attachments(block.node, {})
        items = select_items(select, groups)
        groups.aliases = aliases_of(select)
        clause = select.args.get("having")
        having = groups.condition(clause.this) if clause else None
        if not groups.aggregates:
            construct = "HAVING without GROUP BY or an aggregate"
            raise context.source.unsupported(construct, clause or select)
        keys = _link_keys(links, block)
        base = attached(block.node, groups.rows)
        node = aggregate(base, tuple(keys.values()), groups.aggregates)
        place_groups(node, select, context)
        node = attached(node, groups)
        alias = context.names.take("total")
        right = renamed(node, [f"{alias}.{name}" for name in node.names], context.places)
        columns = [f"{alias}.{keys[each.inner].name}" for each in links]
        self._attach(right, links, columns)
        columns_made = [call.column for call in groups.aggregates] if links else []
        if any(each.function in COLLECTIONS for each in columns_made):
            raise context.source.unsupported("an array of values in a correlated subquery", select)
        counts = {each.name for each in columns_made if each.function in _COUNTS}

        def over(scalar: Scalar) -> Scalar:
            value = substitute(
                scalar.expression,
                lambda c: beside.get(c.name) or _after_join(c.name, alias, counts),
            )
            return Scalar(value, scalar.typed)

        values = tuple(over(item.scalar) for item in items)
        names = item_names(items, context.source)
        return Total(values, None if having is None else over(having), links, names)

    def _attach(self, right: Node, links: Sequence[Link], columns: Sequence[str]) -> None:
        pairs = zip(links, columns, strict=True)
        same = [Call(each.operator, (each.outer, Column(c))) for each, c in pairs]
        known = {field.name for field in self._outer.schema}
        if any(columns_of(each.outer) - known for each in links):
            raise self._context.source.unsupported(_FAR, self._place)
        self._attachments.append(OneRow(right, conjunction(same), not links))

    def _column(self, node: Node, name: str) -> Scalar:
        """A column of what was joined last; NULL where nothing was, if it was not joined always."""
        typed = type_of(Column(name), node.schema)
        missing = not self._attachments[-1].always
        return Scalar(Column(name), Typed(typed.type, typed.nullable or missing))


_COUNTS = ("count", "regr_count", "approx_count_distinct")
"""Aggregates that are 0 of no rows; others are NULL."""


def _link_keys(links: Sequence[Link], block: Block) -> dict[Expression, GroupKey]:
    """The keys by which the rows of a subquery are grouped for the rows around it."""
    keys: dict[Expression, GroupKey] = {}
    for each in links:
        typed = type_of(each.inner, block.node.schema)
        name = each.inner.name if isinstance(each.inner, Column) else f"link_{len(keys) + 1}"
        keys.setdefault(each.inner, GroupKey(name, Scalar(each.inner, typed)))
    return keys


def _after_join(name: str, alias: str, counts: set[str]) -> Expression:
    column = Column(f"{alias}.{name}")
    return Call("coalesce", (column, _ZERO)) if name in counts else column


def _has_membership(node: exp.Expr) -> bool:
    return any(found.args.get("query") is not None for found in node.find_all(exp.In))


def _passes(total: Total, translator: Translator, node: exp.Expr) -> Scalar:
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
    member = _passes(total, translator, node)
    for value, item in zip(values, total.items, strict=True):
        same = translator.compare("=", [value, item], node)
        member = translator.call("and", [member, same], node)
    sure = translator.call("coalesce", [member, constant(literal(negated))], node)
    return translator.call("not", [sure], node) if negated else sure
