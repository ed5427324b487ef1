"""Rows and keys of a declared table: tuples, checked against its columns.

A row is a tuple in the order of the table's columns, a key a tuple in the order of its key, also
when the key is one column. `RowFormat` is the only place where values from outside are checked.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from viewkeep.changes.values import Convert, MisfitError, column_converter, short_value
from viewkeep.errors import SchemaError, ViewkeepError, did_you_mean
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import Field
from viewkeep.rings.index import key_function

Row = tuple[Any, ...]
Key = tuple[Any, ...]
Lookup = Callable[[Key], Row | None]
"""The row of a key, or None where there is none."""


class ChangeError(ViewkeepError):
    """A change that does not fit the rows that are there, or the changes before it."""


class RowFormat:
    """How the rows of one table look: checks them, and finds their keys.

    >>> parts = RowFormat("parts", Table({"pid": "int", "price": "double"}, key=["pid"]))
    >>> parts.row({"price": 3, "pid": 1}), parts.key_of((1, 3.0))
    ((1, 3.0), (1,))
    """

    def __init__(self, name: str, table: Table) -> None:
        if not table.key:
            raise SchemaError(
                f'table "{name}" has no key, so its changes cannot be told apart; '
                "declare one: Table(..., key=[...])"
            )
        self.name, self.table, self.names = name, table, table.names
        self.key_of = key_function(tuple(map(self.names.index, table.key)))
        """The key of a row."""
        self._columns = tuple((f, column_converter(f, f.name in table.key)) for f in table.columns)
        self._key_columns = self.key_of(self._columns)
        self._all_names = frozenset(self.names)

    def row(self, values: Row | Mapping[str, Any]) -> Row:
        """A whole row, checked: every column is there, with a value of its type."""
        if isinstance(values, Mapping):
            values = self._row_in_order(values)
        if not isinstance(values, tuple) or len(values) != len(self.names):
            raise SchemaError(
                f'table "{self.name}": {values!r} is not a row; '
                f"give a tuple of {len(self.names)} values ({', '.join(self.names)})"
            )
        return self._fit_row(values, self._columns, self.key_of(values))

    def key(self, values: Key) -> Key:
        """A key, checked as the key columns of a row are."""
        key = self.table.key
        if not isinstance(values, tuple) or len(values) != len(key):
            example = f"({', '.join(key)}{',' * (len(key) == 1)})"
            raise SchemaError(
                f'table "{self.name}": {values!r} is not a key; give a tuple {example}'
            )
        return self._fit_row(values, self._key_columns, values)

    def changed(self, row: Row, values: Mapping[str, Any]) -> Row:
        """A row with new values, checked, in some of its columns."""
        place = self.key_of(row)
        if not self._all_names.issuperset(values):
            self.check_names(values, self.place(place))
        columns = [column for column in self._columns if column[0].name in values]
        own = [values[field.name] for field, _ in columns]
        fitted = self._fit_row(own, columns, place)
        new = dict(zip((field.name for field, _ in columns), fitted, strict=True))
        return tuple([new.get(name, old) for name, old in zip(self.names, row, strict=True)])

    def keyed(self, rows: Iterable[Row | Mapping[str, Any]]) -> dict[Key, Row]:
        """Rows by their keys, checked; two rows of one key are an error."""
        by_key: dict[Key, Row] = {}
        for values in rows:
            row = self.row(values)
            key = self.key_of(row)
            if key in by_key:
                self.refuse(key, "two rows have this key; keep one of them")
            by_key[key] = row
        return by_key

    def check_names(self, names: Iterable[str], place: str) -> None:
        """Refuse columns that the table does not have."""
        for name in names:
            if name not in self.names:
                raise SchemaError(
                    f'{place}: no column "{name}" ({", ".join(self.names)})'
                    + did_you_mean(str(name), self.names)
                )

    def place(self, key: Key, change: str = "") -> str:
        """How errors name a row.

        >>> RowFormat("parts", Table({"pid": "int"}, key=["pid"])).place((1,))
        'table "parts", key (pid = 1)'
        """
        parts = (
            f"{name} = {short_value(value)}"
            for name, value in zip(self.table.key, key, strict=True)
        )
        return f'table "{self.name}",{change and f" {change},"} key ({", ".join(parts)})'

    def refuse(self, key: Key, problem: str) -> NoReturn:
        """Say that a change does not fit the row of a key."""
        raise ChangeError(f"{self.place(key)}: {problem}")

    def _row_in_order(self, values: Mapping[str, Any]) -> Row:
        if values.keys() == self._all_names:
            return tuple([values[name] for name in self.names])
        place = self.place(tuple(values.get(name) for name in self.table.key))
        self.check_names(values, place)
        missing = [name for name in self.names if name not in values]
        raise SchemaError(
            f"{place}: no value for {', '.join(missing)}; "
            "a new row names all columns, with None for NULL"
        )

    def _fit_row(
        self, values: Sequence[Any], columns: Sequence[tuple[Field, Convert]], key: Key
    ) -> Row:
        fitted = []
        for value, (field, convert) in zip(values, columns, strict=True):
            try:
                fitted.append(convert(value))
            except MisfitError as misfit:
                place = f'{self.place(key)}: column "{field.name}" ({field.type})'
                raise SchemaError(f"{place}: {misfit}") from None
        return tuple(fitted)
