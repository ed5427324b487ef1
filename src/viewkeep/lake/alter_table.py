"""Other columns for a table that Viewkeep owns.

The commit to the table is the moment when it has happened; the definitions follow it, also if this
process dies in between (`follow_tables`). New columns are only declared: files do not have them,
and their values are NULL. All else writes the files anew: what a column was called in files would
come back with the next one of that name.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeep.errors import SchemaError, did_you_mean
from viewkeep.lake.apply import TRIES, check_table_columns
from viewkeep.lake.catalog import Catalog, CatalogError, TableDefinition
from viewkeep.lake.follow_tables import ALTERED, define_followed_tables, newest_versions
from viewkeep.lake.transactions import Transactions
from viewkeep.lake.views.adapt_views import stopped_views
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.query.constraints import FunctionalDependency
from viewkeep.query.tables import Reference, Table
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.widening import is_widening
from viewkeep.tables.column_names import check_own_names
from viewkeep.tables.feed import CHANGES, COUNT, LOST
from viewkeep.tables.files.rewrite_columns import rewrite_columns
from viewkeep.tables.log.delta import ConflictError, LakeTable
from viewkeep.tables.log.memory import remembered_logs


@dataclass(frozen=True)
class Alteration:
    """Columns to add, with their types; to drop; to rename, the new names by the old ones; and to
    widen, with their new types. Names are those before the alteration."""

    add: Mapping[str, Any] = field(default_factory=dict)
    drop: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    widen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lost(self) -> list[str]:
        """The columns that are not what they were."""
        return [*self.drop, *self.rename, *self.widen]


def alter_table(plans: ViewPlans, name: str, alteration: Alteration) -> list[str]:
    """Give a table other columns; the names of the views that stop by it."""
    lake = plans.lake
    catalog = lake.catalog.read()
    _follow(plans, catalog, name)
    catalog = lake.catalog.read()
    definition = _alterable_table(catalog, name)
    altered = altered_table(name, definition.table, alteration)
    _check_references(catalog, name, alteration)
    stopped_before = stopped_views(plans, catalog)
    with lake.marked():
        _commit_alteration(plans, definition, altered, alteration)
    _follow(plans, catalog, name)
    return [
        each for each in stopped_views(plans, lake.catalog.read()) if each not in stopped_before
    ]


def _follow(plans: ViewPlans, catalog: Catalog, name: str) -> None:
    versions = newest_versions(plans.lake, catalog, [name])
    define_followed_tables(plans, catalog, versions)


def _alterable_table(catalog: Catalog, name: str) -> TableDefinition:
    if name in catalog.views:
        raise CatalogError(f'"{name}" is a view; create it again with replace=True')
    definition = catalog.table(name)
    if not definition.owned:
        raise CatalogError(
            f'table "{name}" is registered: its own writers alter it, and refresh sees that'
        )
    return definition


# --- the columns ----------------------------------------------------------------------------------


def altered_table(name: str, table: Table, alteration: Alteration) -> Table:
    """A table with other columns; an error for an alteration that is none, or not possible.

    >>> parts = Table({"pid": "int", "price": "int", "name": "string"}, key=["pid"])
    >>> alteration = Alteration({"size": "int"}, ["name"], {"pid": "id"}, {"price": "bigint"})
    >>> print(*altered_table("parts", parts, alteration).columns, sep=", ")
    id int not null, price bigint, size int
    """
    _check_alteration(name, table, alteration)
    new_names = {n: alteration.rename.get(n, n) for n in table.names if n not in alteration.drop}
    fields = [each for each in table.columns if each.name in new_names]
    columns: dict[str, Any] = {
        new_names[each.name]: _widened_field(name, each, alteration) for each in fields
    }
    for column, kind in alteration.add.items():
        if column.lower() in map(str.lower, columns):
            raise SchemaError(f'table "{name}": it has a column "{column}" already')
        columns[column] = kind
    if len(columns) != len(fields) + len(alteration.add):
        raise SchemaError(f'table "{name}": two columns would have the same name')
    check_own_names(f'table "{name}"', columns)
    altered = Table(
        columns,
        [new_names[each] for each in table.key],
        [_renamed_reference(each, new_names) for each in _kept(table.foreign_keys, new_names)],
        [_renamed_dependency(each, new_names) for each in _kept(table.fds, new_names)],
        table.static,
    )
    for each in altered.columns:
        if each.name in alteration.add and not each.nullable:
            raise SchemaError(
                f'table "{name}", column "{each.name}": rows that are there have no value for it; '
                "add it without NOT NULL"
            )
    return altered


def _check_alteration(name: str, table: Table, alteration: Alteration) -> None:
    if not (alteration.add or alteration.lost):
        raise SchemaError(f'table "{name}": nothing to alter; give add, drop, rename or widen')
    for column in alteration.lost:
        if column not in table.names:
            hint = did_you_mean(str(column), table.names)
            raise SchemaError(
                f'table "{name}": no column "{column}" ({", ".join(table.names)}){hint}'
            )
        if alteration.lost.count(column) > 1:
            raise SchemaError(f'table "{name}": column "{column}" is named twice; alter it once')
    for column in alteration.drop:
        if column in table.key:
            raise SchemaError(
                f'table "{name}": column "{column}" is in the key, by which rows are told apart; '
                "it cannot be dropped"
            )


def _widened_field(name: str, column: Field, alteration: Alteration) -> Field:
    if column.name not in alteration.widen:
        return column
    [new] = Table({column.name: alteration.widen[column.name]}).columns
    if not is_widening(column.type, new.type):
        raise SchemaError(
            f'table "{name}", column "{column.name}": {new.type} does not hold all values of '
            f"{column.type}; add a column of that type, and copy the values"
        )
    return replace(column, type=new.type)


def _kept(constraints: Iterable[Any], new_names: Mapping[str, str]) -> Iterable[Any]:
    """The constraints whose columns are all there."""
    return [each for each in constraints if _columns_of(each) <= set(new_names)]


def _columns_of(constraint: Reference | FunctionalDependency) -> set[str]:
    if isinstance(constraint, Reference):
        return set(constraint.columns)
    return {*constraint.determinant, *constraint.dependent}


def _renamed_reference(each: Reference, new_names: Mapping[str, str]) -> Reference:
    return replace(each, columns=tuple(new_names[n] for n in each.columns))


def _renamed_dependency(
    each: FunctionalDependency, new_names: Mapping[str, str]
) -> FunctionalDependency:
    sides = (tuple(new_names[n] for n in side) for side in (each.determinant, each.dependent))
    return FunctionalDependency(*sides)


def _check_references(catalog: Catalog, name: str, alteration: Alteration) -> None:
    """Refuse to take away what foreign keys of other tables refer to."""
    gone = {*alteration.drop, *alteration.rename}
    for other in catalog.tables.values():
        for each in other.table.foreign_keys:
            lost = gone & set(each.referenced_columns)
            if each.table.lower() == name.lower() and lost:
                raise SchemaError(
                    f'table "{name}": the foreign key "{each}" of table "{other.name}" refers to '
                    f'column "{min(lost)}"; it can be neither dropped nor renamed'
                )


# --- the commit -----------------------------------------------------------------------------------


def _commit_alteration(
    plans: ViewPlans, definition: TableDefinition, altered: Table, alteration: Alteration
) -> int:
    """Commit other columns to the table; after a conflict its newest rows are taken."""
    lake, table = plans.lake, plans.lake.at(definition.location)
    settle = Transactions(lake).settled(definition, table)
    places = ("location", "owned")
    values = replace(definition, table=altered).as_json().items()
    about = {name: value for name, value in values if name not in places}
    wider = {each.name: str(each.type) for each in altered.columns}
    lost = {each: wider[each] if each in alteration.widen else "" for each in alteration.lost}
    notes = {ALTERED: about, LOST: lost, CHANGES: None, COUNT: 0}
    for _ in range(TRIES):
        with suppress(ConflictError), remembered_logs():
            settle()
            return _alter_newest(table, definition, altered, alteration, notes)
    raise ConflictError(f'table "{definition.name}": too many processes write it; try again')


def _alter_newest(
    table: LakeTable,
    definition: TableDefinition,
    altered: Table,
    alteration: Alteration,
    notes: Mapping[str, Any],
) -> int:
    snapshot = table.snapshot()
    check_table_columns(definition, snapshot)
    files = None
    if alteration.lost:
        old_names = {new: old for old, new in alteration.rename.items()}
        sources = {
            each: None if each.name in alteration.add else old_names.get(each.name, each.name)
            for each in altered.columns
        }
        files = rewrite_columns(table, snapshot, sources)
    return table.alter(snapshot.version, altered.columns, files, notes)
