"""The rows of a subquery, grouped by what links them to the rows around it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeep.errors import UnsupportedError
from viewkeep.query.algebra import Distinct, Join, Node, Output, Project, Select
from viewkeep.query.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    conjunction,
    literal,
    substitute,
)
from viewkeep.query.types.aggregates import COLLECTIONS
from viewkeep.query.types.data_types import BIGINT
from viewkeep.query.types.inference import type_of
from viewkeep.sql.blocks.block import Block, chooses_rows, translate_block
from viewkeep.sql.blocks.clauses import is_grouped, refuse_clauses
from viewkeep.sql.blocks.context import Context, with_common_tables
from viewkeep.sql.blocks.items import item_names, select_items
from viewkeep.sql.blocks.outputs import rename_outputs
from viewkeep.sql.blocks.scope import Scalar
from viewkeep.sql.blocks.select import named_windows, ordered_names, read_qualify
from viewkeep.sql.blocks.top import apply_top, read_top, without_brackets
from viewkeep.sql.blocks.windows import BlockWindows
from viewkeep.sql.expressions.correlation import Link, link
from viewkeep.sql.expressions.domain import Domain, domain_of
from viewkeep.sql.expressions.subquery_in_from import block_beside, reads_subqueries
from viewkeep.sql.expressions.subquery_joins import FAR_COLUMN, SubqueryJoins
from viewkeep.sql.expressions.translator import Translator, attached
from viewkeep.sql.groups.aggregation import aggregate
from viewkeep.sql.groups.grouping import GroupedTranslator, GroupKey, aliases_of
from viewkeep.sql.groups.groups import apply_groups, group_translator, place_groups

_ZERO = Cast(literal(0), BIGINT)


@dataclass(frozen=True, slots=True)
class Total:
    """An aggregate without GROUP BY of the rows linked to an outer row: one value, also of no
    rows."""

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


class SubqueryRows:
    """Translates subqueries into rows that can be joined to the outer rows."""

    def __init__(self, context: Context, joins: SubqueryJoins) -> None:
        self._context, self._joins = context, joins

    def open(
        self, query: exp.Expr, translator: Translator, items_matter: bool = True
    ) -> Answer | Total:
        """The rows of a subquery with their links to the outer rows, or its total."""
        inner_query = without_brackets(query)
        context = replace(self._context, outer=translator.subquery_scope)
        if not isinstance(inner_query, exp.Select):
            return self._renamed_answer(context.nested(inner_query))
        if chooses_rows(inner_query):
            try:
                return self._renamed_answer(context.nested(inner_query))
            except UnsupportedError:
                if inner_query.args.get("distinct"):
                    raise
        refuse_clauses(inner_query, context.source)
        return self._select_rows(
            inner_query, with_common_tables(inner_query, context), items_matter
        )

    def open_by_domain(self, select: exp.Select, domain: Domain) -> Answer | Total:
        """The rows of a subquery for each row of a domain, which all of its clauses may read."""
        refuse_clauses(select, self._context.source)
        context = with_common_tables(select, replace(self._context, outer=domain.scope))
        return self._select_rows(select, context, True, domain)

    def _select_rows(
        self,
        select: exp.Select,
        context: Context,
        items_matter: bool,
        domain: Domain | None = None,
    ) -> Answer | Total:
        """The rows of a SELECT; windows and LIMIT are applied per outer row."""
        try:
            block, links = self._subquery_block(select, context, domain)
        except UnsupportedError:
            outer = self._joins.outer
            if not reads_subqueries(select):
                raise
            domain = domain or domain_of(select, outer.rows, context, outer.values)
            if domain is None:
                raise
            context = replace(context, outer=domain.scope)
            block, links = block_beside(select, domain.node, context), domain.links
        if is_grouped(select) and not select.args.get("group"):
            return self._subquery_total(select, block, links, context, domain)
        if is_grouped(select):
            constants = domain.node.names if domain else ()
            inner: Translator = group_translator(select, block, context, constants)
        else:
            correlated = domain is not None or not items_matter
            inner = Translator(context.source, block.scope, correlated=correlated)
            inner.attachments = context.attachments(block.node)
        windows = inner.windows = BlockWindows(named_windows(select))
        items = select_items(select, inner)
        qualify = read_qualify(select, inner)
        top = read_top(select, inner, ordered_names(select))
        inner.windows = None
        if isinstance(inner, GroupedTranslator):
            self._refuse_outer_aggregates(inner, select)
            keys = _link_keys(links, block) | {k.scalar.expression: k for k in inner.keys}
            node = apply_groups(select, block, inner, context, keys)
            columns: list[Expression] = [Column(keys[each.inner].name) for each in links]
        else:
            node, columns = attached(block.node, inner), [each.inner for each in links]
        node = windows.apply(node, context, columns)
        if qualify is not None:
            node = Select(node, qualify.expression)
        node = apply_top(node, top, context, columns)
        values = [item.scalar.expression for item in items] if items_matter else [literal(1)]
        node = self._project_items(node, columns, values)
        names = item_names(items, context.source) if items_matter else ()
        return Answer(Distinct(node) if select.args.get("distinct") else node, links, names)

    def _subquery_block(
        self, select: exp.Select, context: Context, domain: Domain | None
    ) -> tuple[Block, tuple[Link, ...]]:
        block = translate_block(select, context, correlated=True)
        if domain is not None:
            joined = Join(domain.node, block.node, conjunction(block.correlated))
            return replace(block, node=joined, correlated=()), domain.links
        alias = context.names.take("outer")
        linked = link(block.node, block.correlated, self._joins.outer, alias)
        if linked is None:
            raise context.source.unsupported(FAR_COLUMN, select)
        return replace(block, node=linked.node, correlated=()), linked.links

    def _refuse_outer_aggregates(self, groups: GroupedTranslator, select: exp.Select) -> None:
        """An aggregate of outer columns alone is one of the query around in standard SQL, and an
        error in Spark."""
        outer = {column.name for column in groups.constants}
        if any(call.reads and call.reads <= outer for call in groups.aggregates):
            construct = "an aggregate of columns of the outer query alone"
            raise self._context.source.unsupported(construct, select)

    def _project_items(
        self, node: Node, links: Sequence[Expression], items: Sequence[Expression]
    ) -> Node:
        alias = self._context.names.take("subquery")
        outputs = [Output(f"{alias}.link_{i}", e) for i, e in enumerate(links, start=1)]
        outputs += [Output(f"{alias}.{i}", e) for i, e in enumerate(items, start=1)]
        return Project(node, tuple(outputs))

    def _renamed_answer(self, node: Node) -> Answer:
        alias = self._context.names.take("subquery")
        names = [f"{alias}.{name}" for name in node.names]
        return Answer(rename_outputs(node, names, self._context.places), (), node.names)

    def _subquery_total(
        self,
        select: exp.Select,
        block: Block,
        links: tuple[Link, ...],
        context: Context,
        domain: Domain | None,
    ) -> Total:
        """The total of a subquery: for no rows its counts are 0, and other aggregates NULL."""
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
        self._refuse_outer_aggregates(groups, select)
        keys = _link_keys(links, block)
        base = attached(block.node, groups.rows)
        node = aggregate(base, tuple(keys.values()), groups.aggregates)
        place_groups(node, select, context)
        node = attached(node, groups)
        alias = context.names.take("total")
        right = rename_outputs(node, [f"{alias}.{name}" for name in node.names], context.places)
        columns = [f"{alias}.{keys[each.inner].name}" for each in links]
        self._joins.add(right, links, columns)
        aggregates = [call.column for call in groups.aggregates] if links else []
        if any(each.function in COLLECTIONS for each in aggregates):
            raise context.source.unsupported("an array of values in a correlated subquery", select)
        counts = {each.name for each in aggregates if each.function in _COUNTS}

        def over(scalar: Scalar) -> Scalar:
            value = substitute(
                scalar.expression,
                lambda c: beside.get(c.name) or _after_join(c.name, alias, counts),
            )
            return Scalar(value, scalar.typed)

        values = tuple(over(item.scalar) for item in items)
        names = item_names(items, context.source)
        return Total(values, None if having is None else over(having), links, names)


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
