"""A group-by over joins as a conjunctive query, whose variables are columns that are made equal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from viewkeep.diffs.optimize.cannot_fail import cannot_fail
from viewkeep.query.algebra import AggregateColumn, GroupBy, Scan
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.constraints import Constraints
from viewkeep.query.expressions import Call, Column, Expression, columns_of
from viewkeep.query.flatten import Flat, NotConjunctive, flatten, split_equalities
from viewkeep.query.show import formula_text
from viewkeep.query.types.data_types import DOUBLE, FLOAT, Type
from viewkeep.query.types.inference import Schema
from viewkeep.query.variables import Variables, bound_columns, table_constraints


@dataclass(frozen=True)
class GroupedJoin:
    """The scans of a group-by, each with its own conditions and with the variables of the query
    over its columns; `keys` are the variables of the group's keys."""

    node: GroupBy
    scans: tuple[Scan, ...]
    conditions: tuple[tuple[Expression, ...], ...]
    variables: tuple[Mapping[str, Expression], ...]
    query: ConjunctiveQuery
    keys: Mapping[str, str]
    aggregates: tuple[AggregateColumn, ...]

    @property
    def schema(self) -> Schema:
        """The columns of all scans."""
        return tuple(field for scan in self.scans for field in scan.schema)

    def scans_of(self, expression: Expression) -> frozenset[int]:
        """The scans whose columns an expression reads."""
        return _scans_of(self.scans, expression)

    def key_variables(self, scan: int) -> frozenset[str] | None:
        """The variables that tell the rows of a scan apart, if its key is among them."""
        by_column = {e.name: v for v, e in self.variables[scan].items() if isinstance(e, Column)}
        alias, key = self.scans[scan].alias, self.scans[scan].table.key
        names = [f"{alias}.{column}" for column in key]
        if not names or not set(names) <= by_column.keys():
            return None
        return frozenset(by_column[name] for name in names)


def grouped_join(node: GroupBy) -> GroupedJoin:
    """The query of a group-by, or NotConjunctive with the construct that prevents it."""
    flat = flatten(node.child)
    schema = tuple(field for scan in flat.scans for field in scan.schema)
    equalities, others = split_equalities(flat.conditions, schema, _are_equal_map_types)
    keys = {key: flat.outputs[key] for key in node.keys}
    for name, expression in keys.items():
        _check_group_key(name, expression, flat.scans)
    aggregates = tuple(_aggregate_over_scans(each, flat) for each in node.aggregates)
    used = [n for e in (*others, *keys.values()) for n in columns_of(e)]
    used += [name for each in aggregates for name in each.reads]
    scans_by_alias = [Scan(scan.alias, scan.table, scan.alias) for scan in flat.scans]
    columns = bound_columns(
        scans_by_alias, {*used, *(name for pair in equalities for name in pair)}
    )
    names = Variables.of(scans_by_alias, equalities, columns)
    variables = [_variables_of_scan(scan, names) for scan in scans_by_alias]
    by_key = {key: _key_variable(e, flat.scans, names, variables) for key, e in keys.items()}
    local = [_equal_columns_of_scan(scan, names) for scan in scans_by_alias]
    for condition in others:
        _place_condition(condition, flat.scans, schema, local)
    constraints = table_constraints(scans_by_alias, names, _aliases_of_tables(flat.scans))
    query = _query_of_scans(scans_by_alias, names, variables, by_key, others, constraints)
    return GroupedJoin(
        node,
        flat.scans,
        tuple(map(tuple, local)),
        tuple(variables),
        query,
        by_key,
        aggregates,
    )


def _query_of_scans(
    scans: Sequence[Scan],
    names: Variables,
    variables: Sequence[Mapping[str, Expression]],
    keys: Mapping[str, str],
    conditions: Sequence[Expression],
    constraints: Constraints,
) -> ConjunctiveQuery:
    """Atoms are named by aliases: occurrences of one table may bind different columns."""
    computed = [tuple(v for v, e in own.items() if not isinstance(e, Column)) for own in variables]
    pairs = list(zip(scans, computed, strict=True))
    return ConjunctiveQuery(
        "Q",
        tuple(dict.fromkeys(keys.values())),
        tuple(Atom(scan.alias, (*names.of_scan(scan), *added)) for scan, added in pairs),
        conditions=tuple(names.rename(each) for each in conditions),
        constraints=constraints,
        columns=tuple((scan.alias, (*names.columns[scan.name], *added)) for scan, added in pairs),
    )


def _aliases_of_tables(scans: Sequence[Scan]) -> dict[str, list[str]]:
    """The aliases of each table, which foreign keys name, by its name in small letters."""
    aliases: dict[str, list[str]] = {}
    for scan in scans:
        aliases.setdefault(scan.name.lower(), []).append(scan.alias)
    return aliases


def _are_equal_map_types(first: Type, second: Type) -> bool:
    """Maps keep values of one type; equal floats need not be the same bits."""
    return first == second and first not in (FLOAT, DOUBLE)


def _check_group_key(name: str, expression: Expression, scans: Sequence[Scan]) -> None:
    if len(_scans_of(scans, expression)) != 1:
        raise NotConjunctive(
            f'the group key "{name}" ({formula_text(expression)}), not of one table'
        )


def _aggregate_over_scans(aggregate: AggregateColumn, flat: Flat) -> AggregateColumn:
    if aggregate.argument is None:
        return aggregate
    return replace(aggregate, argument=flat.over_scans(aggregate.argument))


def _variables_of_scan(scan: Scan, names: Variables) -> dict[str, Expression]:
    """The variables of a scan, each with the first of its columns."""
    own: dict[str, Expression] = {}
    for column in names.columns[scan.name]:
        qualified = f"{scan.alias}.{column}"
        own.setdefault(names.of_column[qualified], Column(qualified))
    return own


def _key_variable(
    expression: Expression,
    scans: Sequence[Scan],
    names: Variables,
    variables: Sequence[dict[str, Expression]],
) -> str:
    """The variable of a group key; one that is computed is added to its scan."""
    if isinstance(expression, Column):
        return names.of_column[expression.name]
    [scan] = _scans_of(scans, expression)
    for name, other in variables[scan].items():
        if other == expression:
            return name
    variable_names = {name for own in variables for name in own}
    name = next(
        n for i in range(len(variable_names) + 1) if (n := f"key{i or ''}") not in variable_names
    )
    variables[scan][name] = expression
    return name


def _equal_columns_of_scan(scan: Scan, names: Variables) -> list[Expression]:
    """Columns of one scan that are the same variable have the same value."""
    first: dict[str, str] = {}
    equal: list[Expression] = []
    for column in names.columns[scan.name]:
        qualified = f"{scan.alias}.{column}"
        other = first.setdefault(names.of_column[qualified], qualified)
        if other != qualified:
            equal.append(Call("=", (Column(other), Column(qualified))))
    return equal


def _place_condition(
    condition: Expression,
    scans: Sequence[Scan],
    schema: Schema,
    local: Sequence[list[Expression]],
) -> None:
    """Give a condition to the scan that it reads: it must not fail for rows that meet no others."""
    reads = _scans_of(scans, condition)
    if len(reads) > 1:
        raise NotConjunctive(f"the condition {formula_text(condition)} between tables, no equality")
    if len(scans) > 1 and not cannot_fail(condition, schema):
        raise NotConjunctive(
            f"the condition {formula_text(condition)}, which may fail for rows that meet no others"
        )
    local[min(reads, default=0)].append(condition)


def _scans_of(scans: Sequence[Scan], expression: Expression) -> frozenset[int]:
    reads = columns_of(expression)
    return frozenset(i for i, scan in enumerate(scans) if not reads.isdisjoint(scan.names))
