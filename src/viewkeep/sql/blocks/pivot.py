"""PIVOT and UNPIVOT as queries: a group-by with an aggregate per value, and a union.

    t PIVOT (sum(a) FOR b IN (1))      SELECT c, sum(a) FILTER (WHERE b <=> 1) AS `1` GROUP BY c
    t UNPIVOT (v FOR n IN (a, b))      SELECT c, 'a' AS n, a AS v UNION ALL SELECT c, 'b', b

where c are the columns of t that the clause does not name.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from viewkeep.query.algebra import Node, Output, Project, Select, UnionAll
from viewkeep.query.expressions import Call, Cast, Expression, literal
from viewkeep.query.types.data_types import BOOLEAN, VOID, Type
from viewkeep.query.types.rules import common_type, is_numeric
from viewkeep.sql.blocks.clauses import AGGREGATE_NAMES
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.blocks.scope import Scope, ScopeColumn
from viewkeep.sql.expressions.names import resolve
from viewkeep.sql.expressions.translator import Translator

_NULL_OF_NOTHING = ("sum", "avg", "mean", "min", "max")
"""Aggregates that are NULL where there are no rows."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of the pivot column or columns, and the name it gives to output columns."""

    name: str
    values: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class PivotedRelation:
    """A relation of FROM with one PIVOT or UNPIVOT of it."""

    table: exp.Expr
    pivot: exp.Pivot
    columns: Sequence[ScopeColumn]
    context: Context

    def pivoted(self) -> Node:
        """The rows of PIVOT."""
        return self.context.nested(self._pivot_query())

    @property
    def _pivot_field(self) -> exp.In:
        [field, *others] = self.pivot.args["fields"]
        if others or not isinstance(field, exp.In) or not field.expressions:
            raise self._pivot_refusal("PIVOT without a list of values")
        return field

    def _pivot_refusal(self, construct: str) -> Exception:
        return self.context.source.unsupported(construct, self.pivot)

    def _pivot_column(self, node: exp.Expr) -> ScopeColumn:
        translator = Translator(self.context.source, Scope(tuple(self.columns)))
        if not isinstance(node, exp.Column):
            raise self._pivot_refusal("PIVOT of an expression")
        return resolve(translator, node)

    def _columns_but(self, excluded: Collection[ScopeColumn]) -> list[exp.Expr]:
        same = [column.scalar.expression for column in excluded]
        return [
            _column_reference(column)
            for column in self.columns
            if column not in excluded and column.repeats not in same
        ]

    # --- PIVOT ----------------------------------------------------------------------------------

    def _pivot_query(self) -> exp.Query:
        pivots = [self._pivot_column(each) for each in _pivot_parts(self._pivot_field.this)]
        choices = [self._pivot_choice(each, len(pivots)) for each in self._pivot_field.expressions]
        aggregates = list(self.pivot.expressions)
        read = [c for each in aggregates for c in each.find_all(exp.Column)]
        keys = self._columns_but([*pivots, *map(self._pivot_column, read)])
        plain = self._pivot_groups(keys, pivots, choices, aggregates, present=False)
        if all(_is_null_without_rows(each) for each in aggregates):
            return plain
        value_columns = self.context.aside().nested(plain).schema[len(keys) :]
        present = all(_is_pivoted_by_value(each.type) for each in value_columns)
        return self._pivot_groups(keys, pivots, choices, aggregates, present)

    def _pivot_groups(
        self,
        keys: Sequence[exp.Expr],
        pivots: Sequence[ScopeColumn],
        choices: Sequence[Choice],
        aggregates: Sequence[exp.Expr],
        present: bool,
    ) -> exp.Select:
        """The group-by of PIVOT; with `present` a count of no rows is NULL, as in Spark where all
        results are numbers."""
        items = [
            _expression_with_alias(
                self._pivot_value(each, pivots, choice, present), self._pivot_name(choice, each)
            )
            for choice in choices
            for each in aggregates
        ]
        key_items = [_expression_with_alias(key.copy(), key.name) for key in keys]
        select = exp.select(*key_items, *items, copy=False).from_(self.table.copy(), copy=False)
        return select.group_by(*(key.copy() for key in keys), copy=False) if keys else select

    def _pivot_name(self, choice: Choice, aggregate: exp.Expr) -> str:
        if len(self.pivot.expressions) == 1:
            return choice.name
        suffix = aggregate.alias or aggregate.sql("spark", normalize_functions="lower")
        return f"{choice.name}_{suffix}"

    def _pivot_value(
        self, node: exp.Expr, pivots: Sequence[ScopeColumn], choice: Choice, present: bool
    ) -> exp.Expr:
        call = node.unalias()
        if not isinstance(call, exp.Anonymous) or call.name.lower() not in AGGREGATE_NAMES:
            raise self._pivot_refusal("PIVOT of what is no aggregate")
        condition = exp.and_(*map(_has_pivot_value, pivots, choice.values))
        value = exp.Filter(this=call.copy(), expression=exp.Where(this=condition))
        if not present or _is_null_without_rows(node):
            return value
        count = exp.Anonymous(this="count_if", expressions=[condition.copy()])
        return exp.Case().when(exp.GT(this=count, expression=exp.Literal.number(0)), value)

    def _pivot_choice(self, node: exp.Expr, width: int) -> Choice:
        values = tuple(_pivot_parts(node.this if isinstance(node, exp.PivotAlias) else node))
        if len(values) != width:
            problem = f"PIVOT by {width} columns has a value with {len(values)} parts"
            raise self.context.source.error(problem, self.pivot)
        if isinstance(node, exp.PivotAlias):
            return Choice(node.args["alias"].name, values)
        texts = [self._choice_text(each) for each in values]
        return Choice(texts[0] if width == 1 else f"{{{', '.join(texts)}}}", values)

    def _choice_text(self, node: exp.Expr) -> str:
        match node:
            case exp.Literal():
                return node.name
            case exp.Boolean():
                return str(node.this).lower()
            case exp.Null():
                return "null"
            case exp.Neg(this=exp.Literal(is_string=False)):
                return f"-{node.this.name}"
        raise self._pivot_refusal("PIVOT by a value without a name")

    # --- UNPIVOT --------------------------------------------------------------------------------

    def unpivoted(self, rows: Node) -> Node:
        """The rows of UNPIVOT of a relation: a union of one branch per list of columns."""
        names = [each.name for each in _pivot_parts(self.pivot.expressions[0])]
        chosen = [self._unpivot_sources(each, len(names)) for each in self._pivot_field.expressions]
        value_columns = [column for _, columns in chosen for column in columns]
        keys = [column for column in self.columns if column not in value_columns]
        kinds = [
            self._unpivot_type([columns[i] for _, columns in chosen]) for i in range(len(names))
        ]
        branches = [
            self._unpivot_branch(
                rows, keys, name, dict(zip(names, map(_unpivot_cast, columns, kinds), strict=True))
            )
            for name, columns in chosen
        ]
        return UnionAll(tuple(branches)) if len(branches) > 1 else branches[0]

    def _unpivot_sources(self, node: exp.Expr, width: int) -> tuple[str, list[ScopeColumn]]:
        parts = _pivot_parts(node.this if isinstance(node, exp.PivotAlias) else node)
        columns = [self._pivot_column(each) for each in parts]
        if len(columns) != width:
            problem = f"UNPIVOT into {width} columns has a list of {len(columns)}"
            raise self.context.source.error(problem, self.pivot)
        alias = node.args["alias"].name if isinstance(node, exp.PivotAlias) else ""
        return alias or "_".join(column.name for column in columns), columns

    def _unpivot_type(self, columns: Sequence[ScopeColumn]) -> Type:
        result = VOID
        for column in columns:
            common = common_type(result, column.scalar.typed.type)
            if common is None:
                problem = f"UNPIVOT of {result} and {column.scalar.typed.type}; add a CAST"
                raise self.context.source.type_error(problem, self.pivot)
            result = common
        return result

    def _unpivot_branch(
        self,
        rows: Node,
        keys: Sequence[ScopeColumn],
        name: str,
        values: Mapping[str, Expression],
    ) -> Node:
        if not self.pivot.args.get("include_nulls"):
            present = [Call("isnotnull", (each,)) for each in values.values()]
            rows = Select(rows, reduce(lambda a, b: Call("or", (a, b)), present))
        outputs = {key.name: key.scalar.expression for key in keys}
        outputs |= {self._pivot_field.this.name: literal(name), **values}
        return Project(rows, tuple(Output(n, value) for n, value in outputs.items()))


def _unpivot_cast(column: ScopeColumn, type_: Type) -> Expression:
    scalar = column.scalar
    return scalar.expression if scalar.typed.type == type_ else Cast(scalar.expression, type_)


def _pivot_parts(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.Tuple():
            return list(node.expressions)
        case exp.Paren():
            return [node.this]
    return [node]


def _column_reference(column: ScopeColumn) -> exp.Expr:
    return exp.column(column.name, table=column.qualifier or None, quoted=True)


def _expression_with_alias(node: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))


def _has_pivot_value(column: ScopeColumn, value: exp.Expr) -> exp.Expr:
    """Whether a column has a value, which is of the type of the column, as in Spark."""
    target = exp.DataType.build(str(column.scalar.typed.type), dialect="spark")
    typed = exp.Cast(this=value.copy(), to=target)
    return exp.NullSafeEQ(this=_column_reference(column), expression=typed)


def _is_null_without_rows(aggregate: exp.Expr) -> bool:
    return aggregate.unalias().name.lower() in _NULL_OF_NOTHING


def _is_pivoted_by_value(type_: Type) -> bool:
    return is_numeric(type_) or type_ == BOOLEAN
