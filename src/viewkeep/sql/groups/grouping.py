"""GROUP BY and aggregates of one query block."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeep.errors import QueryError
from viewkeep.query.algebra import AggregateColumn, Node
from viewkeep.query.determined import determined_columns
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal, columns_of, literal
from viewkeep.query.types.aggregates import AGGREGATES, BY_ORDER, aggregate_result, comparison_of
from viewkeep.query.types.data_types import BIGINT, BOOLEAN, TINYINT, VOID
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.clauses import (
    AGGREGATE_NAMES,
    ANY_VALUE,
    OF_CONDITIONS,
    contains_aggregate,
    is_aggregate,
)
from viewkeep.sql.blocks.scope import Scalar, Scope, ScopeColumn, constant
from viewkeep.sql.expressions.names import struct_path
from viewkeep.sql.expressions.translator import Translator
from viewkeep.sql.groups.aggregate_arguments import Arguments, aggregate_arguments
from viewkeep.sql.source import Source

SET = "grouping_set"
"""The column that tells which of the sets of GROUPING SETS, ROLLUP or CUBE a group is of."""


@dataclass(frozen=True, slots=True)
class GroupKey:
    """An expression of GROUP BY and the column that holds it."""

    name: str
    scalar: Scalar
    node: exp.Expr | None = None

    @property
    def column(self) -> Scalar:
        """The key as an output of the group-by."""
        return Scalar(
            Column(self.name), TypedValue(self.scalar.typed.type, self.scalar.typed.nullable)
        )


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of the query; `distinct` are the expressions whose duplicates do not count."""

    column: AggregateColumn
    distinct: tuple[Expression, ...] = ()

    @property
    def reads(self) -> frozenset[str]:
        """The columns that it is computed from."""
        return self.column.reads.union(*map(columns_of, self.distinct))


def group_keys(select: exp.Select, translator: Translator) -> tuple[GroupKey, ...]:
    """The keys: columns, expressions, positions in the select list, or its aliases."""
    group = select.args.get("group")
    keys: dict[Expression, GroupKey] = {}
    for node in _group_by_nodes(group, select, translator.source) if group else ():
        key_node, scalar = _read_group_key(node, select, translator)
        expression = scalar.expression
        name = expression.name if isinstance(expression, Column) else f"key_{len(keys) + 1}"
        keys.setdefault(expression, GroupKey(name, scalar, key_node))
    return tuple(keys.values())


def keys_of_sets(
    sets: Sequence[Sequence[exp.Expr]],
    declared: Sequence[exp.Expr],
    select: exp.Select,
    translator: Translator,
) -> tuple[tuple[GroupKey, ...], tuple[frozenset[str], ...]]:
    """The keys of ROLLUP, CUBE or GROUPING SETS, each of which may be NULL, those that were
    declared before the sets first, and the sets by the names of their keys."""
    keys: dict[Expression, GroupKey] = {}
    names = []
    for key_set in (declared, *sets):
        own_keys = [_read_group_key(node, select, translator) for node in key_set]
        for key_node, scalar in own_keys:
            typed = TypedValue(scalar.typed.type, True)
            key = GroupKey(f"key_{len(keys) + 1}", replace(scalar, typed=typed), key_node)
            keys.setdefault(scalar.expression, key)
        names.append(frozenset(keys[scalar.expression].name for _, scalar in own_keys))
    return tuple(keys.values()), tuple(names[1:])


def _read_group_key(
    node: exp.Expr, select: exp.Select, translator: Translator
) -> tuple[exp.Expr, Scalar]:
    key_node = _group_by_expression(node, select, translator)
    scalar = translator.translate(key_node)
    translator.refuse_carried(scalar, node)
    return key_node, scalar


def _group_by_nodes(group: exp.Expr, select: exp.Select, source: Source) -> list[exp.Expr]:
    """The expressions of GROUP BY; ALL means those of the select list that aggregate nothing."""
    if not group.args.get("all"):
        return list(group.expressions)
    items = [each.unalias() for each in select.expressions]
    if any(isinstance(each, exp.Star) or each.find(exp.Window) for each in items):
        raise source.unsupported("GROUP BY ALL with * or windows", group)
    return [each for each in items if not contains_aggregate(each)]


def _group_by_expression(node: exp.Expr, select: exp.Select, translator: Translator) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return _group_by_position(node, select, translator.source)
    bare = isinstance(node, exp.Column) and not node.table
    # A column hides an alias, as in Spark.
    if bare and not translator.scope.matches("", node.name):
        return aliases_of(select).get(node.name.lower(), node)
    return node


def _group_by_position(node: exp.Literal, select: exp.Select, source: Source) -> exp.Expr:
    position = int(node.name)
    if not 1 <= position <= len(select.expressions):
        problem = f"GROUP BY {position}: the select list has {len(select.expressions)} columns"
        raise source.error(problem, node)
    item: exp.Expr = select.expressions[position - 1].unalias()
    if contains_aggregate(item):
        raise source.error(f"GROUP BY {position} is an aggregate", node)
    if isinstance(item, exp.Star):
        raise source.unsupported("GROUP BY the position of *", node)
    return item


def aliases_of(select: exp.Select) -> dict[str, exp.Expr]:
    """The expressions of the select list that have names."""
    return {
        item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)
    }


_ONE = constant(literal(1))
_IN_FROM = (exp.Table, exp.Subquery, exp.Lateral)


class GroupedTranslator(Translator):
    """Translates expressions over groups, and collects the aggregates they use."""

    def __init__(
        self,
        source: Source,
        scope: Scope,
        keys: Sequence[GroupKey],
        constants: Sequence[str] = (),
    ) -> None:
        super().__init__(source, scope, correlated=bool(constants))
        self.rows = Translator(source, scope, correlated=bool(constants))
        self.keys = keys
        self.constants = frozenset(map(Column, constants))
        """Columns of the query around that are the same in all rows of a group."""
        self.sets: tuple[frozenset[str], ...] = ()
        self.base: Node | None = None
        """The rows that are grouped, where more is to be known of them than their columns."""
        self.aliases: Mapping[str, exp.Expr] = {}
        self.aggregates: list[AggregateCall] = []

    @property
    def subquery_scope(self) -> Scope:
        """What a subquery may read of the groups: the columns that are keys, and computed keys."""
        by_expression = {key.scalar.expression: key.column for key in self.keys}
        columns = [
            replace(column, scalar=by_expression[column.scalar.expression])
            for column in self.scope.columns
            if column.scalar.expression in by_expression
        ]
        computed = [ScopeColumn("", f"#{key.name}", key.column) for key in self._computed_keys]
        return Scope((*columns, *computed), self.scope.outer)

    @property
    def _computed_keys(self) -> list[GroupKey]:
        return [
            key
            for key in self.keys
            if key.node is not None and not isinstance(key.scalar.expression, Column)
        ]

    def as_subquery(self, query: exp.Expr) -> exp.Expr:
        """The subquery with the columns of computed keys in place of their expressions."""
        if not self._computed_keys:
            return query
        copy = query.copy()
        tables = {e.alias_or_name.lower() for e in copy.find_all(*_IN_FROM)}
        for key in self._computed_keys:
            for part in [each for each in copy.walk() if each == key.node]:
                columns = list(part.find_all(exp.Column))
                if columns and all(c.table and c.table.lower() not in tables for c in columns):
                    part.replace(exp.column(f"#{key.name}", quoted=True))
        return copy

    def translate(self, node: exp.Expr) -> Scalar:
        """A key, an aggregate, or an expression over them."""
        match node:
            case exp.Anonymous() if is_aggregate(node):
                return self._translate_aggregate(node, None)
            case exp.WithinGroup(this=exp.Anonymous() as call) if contains_aggregate(call):
                return self._translate_aggregate(call, None, node.expression)
            case exp.IgnoreNulls() | exp.RespectNulls() if contains_aggregate(node.this):
                return self.translate(node.this)
            case exp.Filter(this=exp.WithinGroup() as ordered) if contains_aggregate(ordered.this):
                return self._translate_aggregate(
                    ordered.this, node.expression.this, ordered.expression
                )
            case exp.Anonymous() if node.name.lower() in ("grouping", "grouping_id"):
                return self._grouping_id(node)
            case exp.Filter(this=exp.Anonymous() as call) if contains_aggregate(call):
                return self._translate_aggregate(call, node.expression.this)
            case exp.Column():
                alias = self._having_alias(node)
                if alias is not None:
                    return self.translate(alias)
                part = self._computed_key(node) if struct_path(self, node)[1] else None
                return part or super().translate(node)
        return self._computed_key(node) or super().translate(node)

    def column(self, column: ScopeColumn, node: exp.Expr) -> Scalar:
        """What a column of the rows is in the groups: a key, or an error."""
        for key in self.keys:
            if key.scalar.expression == column.scalar.expression:
                return key.column
        if column.scalar.expression in self.constants:
            return column.scalar
        problem = f'column "{column.name}" must be in GROUP BY or inside an aggregate'
        raise self.source.error(problem, node)

    def _having_alias(self, node: exp.Column) -> exp.Expr | None:
        """The expression that HAVING names by its alias; only a key hides an alias, as in Spark."""
        keys = {key.scalar.expression for key in self.keys}
        hidden = any(c.scalar.expression in keys for c in self.scope.matches("", node.name))
        return None if node.table or hidden else self.aliases.get(node.name.lower())

    def _computed_key(self, node: exp.Expr) -> Scalar | None:
        if contains_aggregate(node):
            return None
        if node.find(exp.Query):  # translated only as a key: it would be joined to the rows
            if all(key.node != node for key in self.keys):
                return None
        elif all(isinstance(key.scalar.expression, Column) for key in self.keys):
            return None
        try:
            expression = self.rows.translate(node).expression
        except QueryError:
            return None  # whatever is wrong inside is found again, with its place
        return next((k.column for k in self.keys if k.scalar.expression == expression), None)

    def _grouping_id(self, node: exp.Anonymous) -> Scalar:
        """For each set, one bit for each key: 1 where the key is not of the set."""
        if not self.sets:
            problem = f"{node.name.lower()}() needs ROLLUP, CUBE or GROUPING SETS"
            raise self.source.error(problem, node)
        names = [self._group_key_name(each) for each in node.expressions]
        single = node.name.lower() == "grouping"
        if single and len(names) != 1:
            raise self.source.error("grouping() takes 1 argument", node)
        every = [key.name for key in self.keys]
        if not single and names not in ([], every):
            problem = "grouping_id() takes all keys of GROUP BY in their order, or none"
            raise self.source.error(problem, node)
        names = names or every
        kind = TINYINT if single else BIGINT
        values = [
            sum((name not in own) << place for place, name in enumerate(reversed(names)))
            for own in self.sets
        ]
        parts: list[Expression] = []
        for number, value in enumerate(values):
            parts += [Call("=", (Column(SET), literal(number))), Cast(literal(value), kind)]
        if len(values) == 1:
            return Scalar(parts[1], TypedValue(kind, False))
        return Scalar(Call("case", (*parts[:-2], parts[-1])), TypedValue(kind, False))

    def _group_key_name(self, node: exp.Expr) -> str:
        expression = self.rows.translate(node).expression
        for key in self.keys:
            if key.scalar.expression == expression:
                return key.name
        raise self.source.error("grouping() takes a key of GROUP BY", node)

    def _translate_aggregate(
        self, node: exp.Anonymous, condition: exp.Expr | None, within: exp.Expr | None = None
    ) -> Scalar:
        if node.name.lower() not in AGGREGATE_NAMES:
            return self._aggregate_of_user(node, condition)
        function = AGGREGATE_NAMES[node.name.lower()]
        if _counts_star(node):
            arguments = Arguments((_ONE,))
        else:
            arguments = aggregate_arguments(node, within, self.rows)
        function, arguments = self._algebra_call(function, arguments, node)
        if condition is not None:
            place = 1 if function in BY_ORDER else 0
            filtered_value = self._filtered_value(
                arguments.values[place], self.rows.condition(condition), node
            )
            values = (*arguments.values[:place], filtered_value, *arguments.values[place + 1 :])
            arguments = replace(arguments, values=values)
        return self._register_aggregate(function, arguments, node)

    def _aggregate_of_user(self, node: exp.Anonymous, condition: exp.Expr | None) -> Scalar:
        """An aggregate with the type that Spark gives it; it may count NULLs, so FILTER is more
        than a CASE."""
        name, nodes = node.name.lower(), list(node.expressions)
        distinct = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
        values = [self.rows.translate(e) for e in (nodes[0].expressions if distinct else nodes)]
        probe = f"{name}({', '.join(f'`a{i}`' for i in range(len(values)))})"
        types = self.source.types
        result_type = types.type_of(probe, [each.typed.type for each in values]) if types else None
        if result_type is None or condition is not None or not values:
            raise self.source.unsupported(f"this form of the aggregate {name}()", node)
        first, *others = (each.expression for each in values)
        column = AggregateColumn("", name, first, tuple(others), type=result_type)
        name = self._aggregate_name(column, _distinct_arguments(values) if distinct else ())
        return Scalar(Column(name), TypedValue(result_type, nullable=True))

    def _algebra_call(
        self, function: str, arguments: Arguments, node: exp.Anonymous
    ) -> tuple[str, Arguments]:
        """The aggregate of the algebra that a call means, with as many arguments as it takes."""
        name, values = node.name.lower(), arguments.values
        if function == ANY_VALUE and len(values) in (1, 2):
            self._check_determined(values[0], node)
            return "max", Arguments(values[:1])
        try:
            if not values:
                raise QueryError(f"{name}() takes 1 argument, but here it has 0")
            AGGREGATES.get(function, AGGREGATES["min"]).check_count(len(values))
        except QueryError as error:
            raise self.source.error(str(error), node) from None
        if name in OF_CONDITIONS and values[0].typed.type not in (BOOLEAN, VOID):
            problem = f"{name}() takes a condition, not {values[0].typed.type}"
            raise self.source.error(problem, node)
        if function == "count_if":
            one = self._filtered_value(_ONE, values[0], node)
            return "count", Arguments((one,), distinct=arguments.distinct)
        return function, arguments

    def _check_determined(self, value: Scalar, node: exp.Anonymous) -> None:
        """Refuse the value of any row of a group, unless all rows have the same."""
        keys = {key.scalar.expression for key in self.keys}
        constant_columns = frozenset(key.name for key in keys if isinstance(key, Column))
        if self.base is not None and not self.sets:
            constant_columns = determined_columns(self.base, constant_columns)
        if value.expression in keys or columns_of(value.expression) <= constant_columns:
            return
        name, text = node.name.lower(), value.expression
        raise self.source.error(
            f"{name}({text}) is not determined: rows of a group have no order, and may differ in "
            f"it; take min({text}), max({text}) or max_by({text}, y), or group by it as well",
            node,
        )

    def _filtered_value(self, value: Scalar, condition: Scalar, node: exp.Expr) -> Scalar:
        """FILTER: values of the other rows become NULL, which no aggregate counts."""
        return self.rows.call("case", [condition, value], node)

    def _register_aggregate(self, function: str, arguments: Arguments, node: exp.Expr) -> Scalar:
        values, distinct = arguments.values, arguments.distinct and function not in _OF_SETS
        if function == "count" and not distinct and values[0].typed.type.is_nested:
            values = (self._one_if_no_null(values, node),)
        order_values = tuple(key.scalar for key in arguments.order)
        if function != "count" or distinct:
            for value in (*values, *order_values):
                self.refuse_carried(value, node, comparison_of(function))
        counts_tuples = function == "count" and len(values) > 1
        inputs = (self._one_if_no_null(values, node),) if counts_tuples else values
        expressions = _distinct_arguments((*values, *order_values)) if distinct else ()
        if function == "count" and not distinct and not inputs[0].typed.nullable:
            inputs = ()
        try:
            typed = [each.typed for each in inputs]
            result = aggregate_result(function, typed, grouped=bool(self.keys))
        except QueryError as error:
            raise self.source.type_error(str(error), node) from None
        first, *others = (each.expression for each in inputs) if inputs else (None,)
        column = AggregateColumn("", function, first, tuple(others), arguments.sort_keys)
        return Scalar(Column(self._aggregate_name(column, expressions)), result)

    def _one_if_no_null(self, values: Sequence[Scalar], node: exp.Expr) -> Scalar:
        """What `count(x, y)` counts: 1 where no value is NULL."""
        present = [self.rows.call("isnotnull", [value], node) for value in values]
        condition = present[0]
        for part in present[1:]:
            condition = self.rows.call("and", [condition, part], node)
        return self.rows.call("case", [condition, _ONE], node)

    def _aggregate_name(self, column: AggregateColumn, distinct: tuple[Expression, ...]) -> str:
        for call in self.aggregates:
            if (replace(call.column, name=""), call.distinct) == (column, distinct):
                return call.column.name
        name = f"{column.function}_{len(self.aggregates) + 1}"
        self.aggregates.append(AggregateCall(replace(column, name=name), distinct))
        return name


_OF_SETS = ("min", "max", *BY_ORDER, "collect_set", "approx_count_distinct")
"""Aggregates that duplicates do not change."""


def _distinct_arguments(values: Sequence[Scalar]) -> tuple[Expression, ...]:
    expressions = (each.expression for each in values)
    return tuple(dict.fromkeys(each for each in expressions if not isinstance(each, Literal)))


def _counts_star(call: exp.Anonymous) -> bool:
    nodes = call.expressions
    return call.name.lower() == "count" and bool(nodes) and isinstance(nodes[0], exp.Star)
