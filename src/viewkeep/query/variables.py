"""Query variables for columns that equalities make equal, and the tables' constraints on them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from viewkeep.query.algebra import Scan
from viewkeep.query.constraints import (
    Constraints,
    DegreeBound,
    ForeignKey,
    FunctionalDependency,
    Key,
)
from viewkeep.query.expressions import Expression, rename_columns
from viewkeep.query.tables import Table

BoundColumns = Mapping[str, tuple[str, ...]]
"""For each table of the query, the columns that its atoms bind."""


def bound_columns(scans: Sequence[Scan], used: Iterable[str]) -> BoundColumns:
    """The columns that any occurrence of a table uses, and those of its key, in table order."""
    columns_used = set(used)
    bound: dict[str, set[str]] = {}
    for scan in scans:
        columns = zip(scan.names, scan.table.names, strict=True)
        columns_of_scan = {column for qualified, column in columns if qualified in columns_used}
        bound.setdefault(scan.name, set(scan.table.key)).update(columns_of_scan)
    tables = {scan.name: scan.table for scan in scans}
    return {
        name: tuple(column for column in tables[name].names if column in columns)
        for name, columns in bound.items()
    }


@dataclass(frozen=True, slots=True)
class Variables:
    """The variable of every bound column `alias.column`."""

    of_column: Mapping[str, str]
    columns: BoundColumns

    @staticmethod
    def of(
        scans: Sequence[Scan], equalities: Iterable[tuple[str, str]], columns: BoundColumns
    ) -> "Variables":
        """One variable per class of equal columns: the column's name where that is unique."""
        bound = [(s.alias, c) for s in scans for c in columns[s.name]]
        representative = _equality_classes(
            [f"{alias}.{column}" for alias, column in bound], equalities
        )
        owners: dict[str, set[str]] = {}
        for alias, column in bound:
            if representative[f"{alias}.{column}"] == f"{alias}.{column}":
                owners.setdefault(column, set()).add(alias)
        names: dict[str, str] = {}
        for alias, column in bound:
            name = column if owners.get(column) == {alias} else f"{alias}_{column}"
            if representative[f"{alias}.{column}"] == f"{alias}.{column}":
                names[f"{alias}.{column}"] = _unused_variable(name, names.values())
        return Variables({c: names[first] for c, first in representative.items()}, columns)

    def of_scan(self, scan: Scan) -> tuple[str, ...]:
        """The variables of the atom for a scan."""
        return tuple(self.of_column[f"{scan.alias}.{c}"] for c in self.columns[scan.name])

    def rename(self, expression: Expression) -> Expression:
        """An expression over columns as one over variables."""
        return rename_columns(expression, lambda name: self.of_column[name])


def table_constraints(
    scans: Sequence[Scan], variables: Variables, names: Mapping[str, Sequence[str]] | None = None
) -> Constraints:
    """What the tables promise, as far as the query binds the columns it is about. `names` are those
    of each table's scans, by its own in small letters, where scans are called otherwise."""
    tables = {scan.name: scan.table for scan in scans}
    fds: dict[FunctionalDependency, None] = {}
    degrees: dict[DegreeBound, None] = {}
    for scan in scans:
        for fd in _dependencies_of_table(scan.table, variables.columns[scan.name]):
            on_variables = _dependency_on_variables(fd, scan, variables)
            if _holds_in_other_tables(on_variables, scan, scans, variables):
                degrees[DegreeBound(scan.name, fd.determinant, fd.dependent, 1)] = None
            else:
                fds[on_variables] = None
    return Constraints(
        fds=tuple(fds),
        degrees=tuple(degrees),
        keys=tuple(Key(name, table.key) for name, table in tables.items() if table.key),
        foreign_keys=tuple(
            _foreign_keys_of_tables(
                tables, variables.columns, names or {name.lower(): (name,) for name in tables}
            )
        ),
        static=frozenset(name for name, table in tables.items() if table.static),
    )


def _equality_classes(
    columns: Sequence[str], equalities: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """For each column the first one that it equals."""
    representative = {column: column for column in columns}
    order = {column: index for index, column in enumerate(columns)}
    for first, second in equalities:
        first_class, second_class = representative[first], representative[second]
        earlier, merged = (
            (first_class, second_class)
            if order[first_class] <= order[second_class]
            else (second_class, first_class)
        )
        representative = {c: earlier if r == merged else r for c, r in representative.items()}
    return representative


def _unused_variable(name: str, names: Iterable[str]) -> str:
    names_in_use = set(names)
    count, fresh = 1, name
    while fresh in names_in_use:
        count += 1
        fresh = f"{name}_{count}"
    return fresh


def _dependencies_of_table(table: Table, bound: Sequence[str]) -> Iterator[FunctionalDependency]:
    """The dependencies of a table on its columns, as far as those are bound."""
    for fd in table.fds:
        dependent = tuple(column for column in fd.dependent if column in bound)
        if dependent and set(fd.determinant) <= set(bound):
            yield FunctionalDependency(fd.determinant, dependent)


def _dependency_on_variables(
    fd: FunctionalDependency, scan: Scan, variables: Variables
) -> FunctionalDependency:
    variable_of = dict(zip(variables.columns[scan.name], variables.of_scan(scan), strict=True))
    determinant, dependent = (
        tuple(variable_of[column] for column in side) for side in (fd.determinant, fd.dependent)
    )
    return FunctionalDependency(determinant, dependent)


def _holds_in_other_tables(
    fd: FunctionalDependency, scan: Scan, scans: Sequence[Scan], variables: Variables
) -> bool:
    """Whether another table has the variables too: on variables it would promise the same."""
    variable_sets = [set(variables.of_scan(other)) for other in scans if other.name != scan.name]
    return any(
        {*fd.determinant, dependent} <= other
        for other in variable_sets
        for dependent in fd.dependent
    )


def _foreign_keys_of_tables(
    tables: Mapping[str, Table], columns: BoundColumns, names: Mapping[str, Sequence[str]]
) -> Iterator[ForeignKey]:
    for name, table in tables.items():
        for reference in table.foreign_keys:
            for referenced in names.get(reference.table.lower(), ()):
                if set(reference.columns) <= set(columns[name]) and (
                    set(reference.referenced_columns) <= set(columns[referenced])
                ):
                    own, others = reference.columns, reference.referenced_columns
                    yield ForeignKey(name, own, referenced, others)
