"""GROUP BY and aggregates of one query block."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeep.errors import QueryError
from viewkeep.query.expressions import Call, Cast, Column, Expression, literal
from viewkeep.query.types.data_types import BIGINT, BOOLEAN, TINYINT, VOID
from viewkeep.query.types.functions import Typed, aggregate_result
from viewkeep.sql.blocks.clauses import AGGREGATE_NAMES, OF_CONDITIONS, contains_aggregate
from viewkeep.sql.blocks.scope import Scalar, Scope, ScopeColumn
from viewkeep.sql.expressions.scalar import Translator, constant
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
        return Scalar(Column(self.name), Typed(self.scalar.typed.type, self.scalar.typed.nullable))


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of the query; `distinct` are the expressions whose duplicates do not count."""

    name: str
    function: str
    argument: Expression | None
    distinct: tuple[Expression, ...] = ()


def group_keys(select: exp.Select, translator: Translator) -> tuple[GroupKey, ...]:
    """The keys: columns, expressions, positions in the select list, or its aliases."""
    group = select.args.get("group")
    keys: dict[Expression, GroupKey] = {}
    for node in _key_nodes(group, select, translator.source) if group else ():
        written, scalar = _read_key(node, select, translator)
        expression = scalar.expression
        name = expression.name if isinstance(expression, Column) else f"key_{len(keys) + 1}"
        keys.setdefault(expression, GroupKey(name, scalar, written))
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
    for own in (declared, *sets):
        read = [_read_key(node, select, translator) for node in own]
        for written, scalar in read:
            typed = Typed(scalar.typed.type, True)
            key = GroupKey(f"key_{len(keys) + 1}", replace(scalar, typed=typed), written)
            keys.setdefault(scalar.expression, key)
        names.append(frozenset(keys[scalar.expression].name for _, scalar in read))
    return tuple(keys.values()), tuple(names[1:])


def _read_key(
    node: exp.Expr, select: exp.Select, translator: Translator
) -> tuple[exp.Expr, Scalar]:
    written = _key_expression(node, select, translator)
    scalar = translator.translate(written)
    translator.refuse_opaque(scalar, node)
    return written, scalar


def _key_nodes(group: exp.Expr, select: exp.Select, source: Source) -> list[exp.Expr]:
    """The expressions of GROUP BY; ALL means those of the select list that aggregate nothing."""
    if not group.args.get("all"):
        return list(group.expressions)
    items = [each.unalias() for each in select.expressions]
    if any(isinstance(each, exp.Star) or each.find(exp.Window) for each in items):
        raise source.unsupported("GROUP BY ALL with * or windows", group)
    return [each for each in items if not contains_aggregate(each)]


def _key_expression(node: exp.Expr, select: exp.Select, translator: Translator) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return _by_position(node, select, translator.source)
    bare = isinstance(node, exp.Column) and not node.table
    # A column hides an alias, as in Spark.
    if bare and not translator.scope.matches("", node.name):
        return aliases_of(select).get(node.name.lower(), node)
    return node


def _by_position(node: exp.Literal, select: exp.Select, source: Source) -> exp.Expr:
    position = int(node.name)
    if not 1 <= position <= len(select.expressions):
        problem = f"GROUP BY {position}: the select list has {len(select.expressions)} columns"
        raise source.error(problem, node)
    chosen: exp.Expr = select.expressions[position - 1].unalias()
    if contains_aggregate(chosen):
        raise source.error(f"GROUP BY {position} is an aggregate", node)
    if isinstance(chosen, exp.Star):
        raise source.unsupported("GROUP BY the position of *", node)
    return chosen


def aliases_of(select: exp.Select) -> dict[str, exp.Expr]:
    """The expressions of the select list that have names."""
    return {
        item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)
    }


_ONE = constant(literal(1))


class GroupedTranslator(Translator):
    """Translates expressions over groups, and collects the aggregates they use."""

    def __init__(self, source: Source, scope: Scope, keys: Sequence[GroupKey]) -> None:
        super().__init__(source, scope)
        self.rows = Translator(source, scope)
        self.keys = keys
        self.sets: tuple[frozenset[str], ...] = ()
        self.aliases: Mapping[str, exp.Expr] = {}
        self.aggregates: list[AggregateCall] = []

    @property
    def subquery_scope(self) -> Scope:
        """What a subquery in HAVING may read of the groups: the columns that are keys."""
        by_expression = {key.scalar.expression: key.column for key in self.keys}
        columns = [
            replace(column, scalar=by_expression[column.scalar.expression])
            for column in self.scope.columns
            if column.scalar.expression in by_expression
        ]
        return Scope(tuple(columns), self.scope.outer)

    def translate(self, node: exp.Expr) -> Scalar:
        """A key, an aggregate, or an expression over them."""
        match node:
            case exp.Anonymous() if node.name.lower() in AGGREGATE_NAMES:
                return self._aggregate(node, None)
            case exp.Anonymous() if node.name.lower() in ("grouping", "grouping_id"):
                return self._grouping(node)
            case exp.Filter(this=exp.Anonymous() as call) if contains_aggregate(call):
                return self._aggregate(call, node.expression.this)
            case exp.Column():
                alias = self._alias(node)
                return super().translate(node) if alias is None else self.translate(alias)
        return self._computed_key(node) or super().translate(node)

    def column(self, column: ScopeColumn, node: exp.Expr) -> Scalar:
        """What a column of the rows is in the groups: a key, or an error."""
        for key in self.keys:
            if key.scalar.expression == column.scalar.expression:
                return key.column
        problem = f'column "{column.name}" must be in GROUP BY or inside an aggregate'
        raise self.source.error(problem, node)

    def _alias(self, node: exp.Column) -> exp.Expr | None:
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

    def _grouping(self, node: exp.Anonymous) -> Scalar:
        """For each set, one bit for each key: 1 where the key is not of the set."""
        if not self.sets:
            problem = f"{node.name.lower()}() needs ROLLUP, CUBE or GROUPING SETS"
            raise self.source.error(problem, node)
        names = [self._key_name(each) for each in node.expressions]
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
            return Scalar(parts[1], Typed(kind, False))
        return Scalar(Call("case", (*parts[:-2], parts[-1])), Typed(kind, False))

    def _key_name(self, node: exp.Expr) -> str:
        expression = self.rows.translate(node).expression
        for key in self.keys:
            if key.scalar.expression == expression:
                return key.name
        raise self.source.error("grouping() takes a key of GROUP BY", node)

    def _aggregate(self, node: exp.Anonymous, condition: exp.Expr | None) -> Scalar:
        function = AGGREGATE_NAMES[node.name.lower()]
        arguments = node.expressions
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        values = self._arguments(arguments[0].expressions if distinct else arguments, node)
        if not values or (len(values) > 1 and function != "count"):
            raise self.source.error(f"{function}() takes 1 argument", node)
        if node.name.lower() in OF_CONDITIONS and values[0].typed.type not in (BOOLEAN, VOID):
            problem = f"{node.name.lower()}() takes a condition, not {values[0].typed.type}"
            raise self.source.error(problem, node)
        if function == "count_if":
            function, values = "count", self._filtered([_ONE], values[0], node)
        if condition is not None:
            values = self._filtered(values, self.rows.condition(condition), node)
        return self._register(function, values, distinct, node)

    def _arguments(self, nodes: Sequence[exp.Expr], call: exp.Anonymous) -> list[Scalar]:
        if isinstance(nodes[0] if nodes else None, exp.Star) and call.name.lower() == "count":
            if isinstance(nodes[0].parent, exp.Distinct):
                raise self.source.unsupported("count(DISTINCT *)", call)
            return [_ONE]
        return [self.rows.translate(node) for node in nodes]

    def _filtered(
        self, values: Sequence[Scalar], condition: Scalar, node: exp.Expr
    ) -> list[Scalar]:
        """FILTER: values of the other rows become NULL, which no aggregate counts."""
        return [self.rows.call("case", [condition, value], node) for value in values]

    def _register(
        self, function: str, values: Sequence[Scalar], distinct: bool, node: exp.Expr
    ) -> Scalar:
        if function != "count" or distinct:
            for value in values:
                self.refuse_opaque(value, node)
        elif values[0].typed.type.is_opaque:
            values = [self._counted(values, node)]
        distinct = distinct and function not in ("min", "max")
        argument: Scalar | None = self._counted(values, node) if len(values) > 1 else values[0]
        expressions = tuple(value.expression for value in values) if distinct else ()
        if function == "count" and argument is not None and not distinct:
            argument = argument if argument.typed.nullable else None
        try:
            typed = None if argument is None else argument.typed
            result = aggregate_result(function, typed, grouped=bool(self.keys))
        except QueryError as error:
            raise self.source.type_error(str(error), node) from None
        expression = None if argument is None else argument.expression
        name = self._name(function, expression, expressions)
        return Scalar(Column(name), result)

    def _counted(self, values: Sequence[Scalar], node: exp.Expr) -> Scalar:
        """What `count(x, y)` counts: 1 where no value is NULL."""
        present = [self.rows.call("isnotnull", [value], node) for value in values]
        condition = present[0]
        for part in present[1:]:
            condition = self.rows.call("and", [condition, part], node)
        return self.rows.call("case", [condition, _ONE], node)

    def _name(
        self, function: str, argument: Expression | None, distinct: tuple[Expression, ...]
    ) -> str:
        for known in self.aggregates:
            if (known.function, known.argument, known.distinct) == (function, argument, distinct):
                return known.name
        name = f"{function}_{len(self.aggregates) + 1}"
        self.aggregates.append(AggregateCall(name, function, argument, distinct))
        return name
