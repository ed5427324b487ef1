"""The table of a view: the columns of its SQL, then what Viewkeep needs besides.

Hidden columns (IDs that the SQL does not select, counts, sums behind averages) have names that
start with `#`. `stored` names are those of the script, `public` ones those of the table.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.diffs.script import Script
from viewkeep.errors import SchemaError
from viewkeep.query.tables import HIDDEN, Table
from viewkeep.query.types.data_types import DOUBLE, FLOAT, Field
from viewkeep.query.types.inference import find_field
from viewkeep.query.verbatim import Query
from viewkeep.tables.column_names import storable_name


@dataclass(frozen=True)
class Layout:
    """Pairs of public and stored names, and the stored IDs; a view without a script has none."""

    columns: tuple[tuple[str, str], ...]
    stored: tuple[Field, ...]
    visible: int
    ids: tuple[str, ...] | None

    @staticmethod
    def of_script(script: Script) -> "Layout":
        """The table of a view that diffs are applied to."""
        view = script.view
        visible_names = {stored for _, stored in script.visible}
        hidden = [(_hidden_column(n), n) for n in view.definition.names if n not in visible_names]
        columns = (*script.visible, *hidden)
        _check_view_columns(columns, len(script.visible))
        return Layout(columns, view.definition.schema, len(script.visible), view.ids)

    @staticmethod
    def of_query(view: Query) -> "Layout":
        """The table of a view that is always computed anew."""
        columns = tuple((name, name) for name in view.names)
        _check_view_columns(columns, len(columns))
        return Layout(columns, view.schema, len(columns), None)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The columns of the table."""
        pairs = [(public, find_field(stored, self.stored)) for public, stored in self.columns]
        return tuple(replace(field, name=public, nullable=True) for public, field in pairs)

    @property
    def names(self) -> list[str]:
        """The columns of the SQL."""
        return [public for public, _ in self.columns[: self.visible]]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The IDs, as columns of the table."""
        public = {stored: name for name, stored in reversed(self.columns)}
        return tuple(public[name] for name in self.ids or ())

    @cached_property
    def declared(self) -> Table:
        """The view as a table that other views read: the columns of the SQL, and the IDs that it
        does not select, which are the key.

        Floats make no key: which NaN is which cannot be told.
        """
        fields = {public: find_field(stored, self.stored) for public, stored in self.columns}
        is_key = all(fields[name].type not in (DOUBLE, FLOAT) for name in self.keys)
        key = self.keys if is_key else ()
        public_fields = {name: fields[name] for name in (*self.names, *key)}
        columns = {
            n: replace(f, nullable=f.nullable or n not in key) for n, f in public_fields.items()
        }
        return Table(columns, key=key, nullable_key=True)

    def to_public(self, rows: pa.Table) -> pa.Table:
        """Stored rows as rows of the table."""
        own = rows.select([stored for _, stored in self.columns])
        return own.rename_columns([public for public, _ in self.columns])

    @cached_property
    def public_names(self) -> dict[str, str]:
        """The columns of the table by their names in the script."""
        public = {stored: name for name, stored in reversed(self.columns)}
        return {field.name: public[field.name] for field in self.stored}


def _hidden_column(stored: str) -> str:
    name = storable_name(stored)
    return name if name.startswith(HIDDEN) else f"{HIDDEN}{name}"


def _check_view_columns(columns: tuple[tuple[str, str], ...], visible: int) -> None:
    lower_names: set[str] = set()
    for number, (public, _) in enumerate(columns):
        if public.lower() in lower_names:
            raise SchemaError(f'two columns of the view are named "{public}"; rename one with AS')
        if number < visible and HIDDEN in public:
            raise SchemaError(
                f'column "{public}": names with {HIDDEN} are Viewkeep\'s own; rename it with AS'
            )
        lower_names.add(public.lower())
