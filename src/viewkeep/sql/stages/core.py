"""A tree of joins as the parts of a conjunctive query, with computed columns where it joins or
groups by expressions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from viewkeep.query.aggregates import Aggregate
from viewkeep.query.algebra import Scan
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.expressions import Call, Cast, Column, Expression, columns_of
from viewkeep.query.flatten import Flat
from viewkeep.query.tables import HIDDEN, Table
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.inference import Schema, type_of
from viewkeep.query.types.rules import common_type
from viewkeep.query.variables import Variables, bound_columns, table_constraints
from viewkeep.sql.conjunctive import are_one_variable, not_null_conditions, renamed_aggregate

Computed = dict[Expression, Column]
"""Expressions over one scan, and the columns that hold their values."""
Extend = Callable[[Scan, Table, Sequence[Expression]], Scan]
"""Makes a scan whose table has the values of expressions as well."""


@dataclass(frozen=True)
class Core:
    """Scans, what joins them, conditions on one of them, and conditions between them."""

    flat: Flat
    equalities: tuple[tuple[str, str], ...]
    null_safe: tuple[tuple[str, str], ...]
    local: tuple[Expression, ...]
    between: tuple[Expression, ...]
    computed: Computed

    @property
    def schema(self) -> Schema:
        """The columns of all scans."""
        return _schema(self.flat.scans)

    def column(self, expression: Expression) -> Expression:
        """The expression, or the column that holds its value."""
        return self.computed.get(expression, expression)

    def query(
        self, name: str, head: Iterable[Expression], aggregates: Sequence[Aggregate] = ()
    ) -> tuple[ConjunctiveQuery, Variables]:
        """The query whose outputs are the columns that the head reads."""
        scans, heads = self.flat.scans, list(head)
        arguments = [a.argument for a in aggregates if a.argument is not None]
        expressions = (*self.local, *self.between, *heads, *arguments)
        equal = (*self.equalities, *self.null_safe)
        used = {name for e in expressions for name in columns_of(e)}
        columns = bound_columns(scans, used.union(*equal))
        variables = Variables.of(scans, equal, columns)
        outputs = (variables.of_column[c] for e in (*heads, *self.between) for c in _columns(e))
        not_null = not_null_conditions(self.equalities, self.local, variables, self.schema)
        query = ConjunctiveQuery(
            name=name,
            outputs=tuple(dict.fromkeys(outputs)),
            atoms=tuple(Atom(s.name, variables.of_scan(s)) for s in scans),
            aggregates=tuple(renamed_aggregate(a, variables) for a in aggregates),
            conditions=(*map(variables.rename, self.local), *not_null),
            constraints=table_constraints(scans, variables),
            columns=tuple(columns.items()),
        )
        return query, variables


def _columns(expression: Expression) -> list[str]:
    return sorted(columns_of(expression))


def core_of(flat: Flat, keys: Sequence[Expression], extend: Extend) -> Core:
    """The parts of a query; sides of equalities and keys that are computed become columns."""
    schema = _schema(flat.scans)
    conditions = [_comparable(condition, schema) for condition in flat.conditions]
    sides = [side for condition in conditions for side in _join_sides(condition, flat.scans)]
    computed_sides = [e for e in dict.fromkeys((*sides, *keys)) if not isinstance(e, Column)]
    computed: Computed = {}
    scans = tuple(_scan_with_columns(scan, computed_sides, computed, extend) for scan in flat.scans)
    extended = Flat(scans, flat.conditions, flat.outputs)
    parts: tuple[list[tuple[str, str]], ...] = ([], [])
    local: list[Expression] = []
    between: list[Expression] = []
    for condition in conditions:
        match _over_computed(condition, computed):
            case Call("=" | "<=>" as operator, (Column(first), Column(second))) if _join_sides(
                condition, flat.scans
            ):
                parts[operator == "<=>"].append((first, second))
            case _:
                (local if _home(condition, flat.scans) else between).append(condition)
    return Core(extended, tuple(parts[0]), tuple(parts[1]), tuple(local), tuple(between), computed)


def _schema(scans: Sequence[Scan]) -> Schema:
    return tuple(field for scan in scans for field in scan.schema)


def _comparable(condition: Expression, schema: Schema) -> Expression:
    """An equality with both sides in one type: 1 and 1.0 are two values of a variable."""
    match condition:
        case Call("=" | "<=>" as operator, (left, right)):
            first, second = type_of(left, schema).type, type_of(right, schema).type
            common = common_type(first, second)
            if not are_one_variable(first, second) and common is not None:
                sides = zip((left, right), (first, second), strict=True)
                cast = tuple(e if kind == common else Cast(e, common) for e, kind in sides)
                return Call(operator, cast)
    return condition


def _join_sides(condition: Expression, scans: Sequence[Scan]) -> tuple[Expression, ...]:
    """The sides of an equality between two scans, or of columns of one; none for the rest."""
    match condition:
        case Call("=" | "<=>", (left, right)):
            homes = _home(left, scans), _home(right, scans)
            plain = isinstance(left, Column) and isinstance(right, Column)
            if None not in homes and (homes[0] is not homes[1] or plain):
                return left, right
    return ()


def _home(expression: Expression, scans: Sequence[Scan]) -> Scan | None:
    """The scan that has all columns of an expression; any for none, if there are no others."""
    names = columns_of(expression)
    homes: Iterator[Scan] = (scan for scan in scans if names <= frozenset(scan.names))
    return next(homes, None) if names else None


def _scan_with_columns(
    scan: Scan, expressions: Sequence[Expression], computed: Computed, extend: Extend
) -> Scan:
    """The scan with a column for each of the expressions that are over it alone."""
    own = [e for e in expressions if (n := columns_of(e)) and n <= frozenset(scan.names)]
    own = [expression for expression in own if expression not in computed]
    if not own:
        return scan
    fields = {field.name: field for field in scan.table.columns}
    for number, expression in enumerate(own):
        typed, name = type_of(expression, scan.schema), f"{HIDDEN}{number}"
        fields[name] = Field(name, typed.type, typed.nullable)
        computed[expression] = Column(f"{scan.alias}.{name}")
    table = Table(fields, key=scan.table.key, nullable_key=True)
    return extend(scan, table, own)


def _over_computed(condition: Expression, computed: Computed) -> Expression:
    match condition:
        case Call("=" | "<=>" as operator, (left, right)):
            return Call(operator, (computed.get(left, left), computed.get(right, right)))
    return condition
