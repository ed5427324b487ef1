"""Rows of users as changes of declared tables: types and keys are checked before anything changes.

The rows of a table with a key are remembered by it: a dictionary entry for each row.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from viewkeep.changes.values import MisfitError, column_converter
from viewkeep.engine.frames import as_table, field_names, is_arrow, is_pandas
from viewkeep.engine.intake import with_counts
from viewkeep.errors import SchemaError, did_you_mean
from viewkeep.network.bags import Bag, Row, add_to
from viewkeep.query.tables import Table
from viewkeep.rings.index import key_function


class TableRows:
    """Checks the rows of one table; with `trust`, they are taken as they are."""

    def __init__(self, name: str, table: Table, insert_only: bool, trust: bool) -> None:
        self.name, self.table = name, table
        self._insert_only, self._trust = insert_only, trust
        self._converters = [column_converter(f, f.name in table.key) for f in table.columns]
        self._key_of = key_function(tuple(map(table.names.index, table.key)))
        self.by_key: dict[Row, Row] = {}

    def bag(self, rows: Any, multiplicities: Iterable[int] | None, loading: bool) -> Bag:
        """The rows and how many copies come or go, after every one was checked."""
        if self.table.static and not loading:
            raise SchemaError(f"{self.name} is declared static: give its rows to load()")
        bag: Bag = {}
        for row, count in with_counts(self._rows(rows), multiplicities):
            self._check_count(row, count)
            try:
                add_to(bag, row, count)
            except TypeError:
                raise SchemaError(f'table "{self.name}": {row!r} cannot be hashed') from None
        self._check_keys(bag)
        return bag

    def frame(self, rows: Any) -> Any:
        """The rows as an Arrow table in the declared types, where whole columns may go on; None
        where rows have to be looked at one by one."""
        plain = not any(f.type.parts or f.type.name == "timestamp" for f in self.table.columns)
        if not plain or (self.table.key and not self._trust):
            return None
        data = as_table(rows, self.name)
        return self._fitted_frame(data) if is_arrow(data) or is_pandas(data) else None

    def keep(self, bag: Bag) -> None:
        """Note what has changed, for the keys to come."""
        if self.table.key and not self._trust:
            for row in (row for row, count in bag.items() if count < 0):
                del self.by_key[self._key_of(row)]
            self.by_key |= {self._key_of(row): row for row, count in bag.items() if count > 0}

    # --- rows -------------------------------------------------------------------------------------

    def _rows(self, rows: Any) -> Iterator[Row]:
        data = as_table(rows, self.name)
        if is_arrow(data) or is_pandas(data):
            return self._of_frame(data)
        if names := field_names(data):
            data = [dict(zip(names, row, strict=True)) for row in data.tolist()]
        elif getattr(data, "ndim", 0) == 2 and hasattr(data, "tolist"):
            data = data.tolist()
        if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
            raise SchemaError(f"rows of {self.name}: expected rows, not {type(data).__name__}")
        return map(self._fitted, data)

    def _of_frame(self, frame: Any) -> Iterator[Row]:
        from viewkeep.tables.arrow_rows import to_rows  # loads Arrow

        return iter(to_rows(self._fitted_frame(frame)))

    def _fitted_frame(self, frame: Any) -> Any:
        """A table with named columns in the declared types; others may stand among them."""
        from viewkeep.tables.user_rows import read_user_rows  # loads Arrow

        present = [
            str(name) for name in (frame.columns if is_pandas(frame) else frame.column_names)
        ]
        places = [place for place, name in enumerate(present) if name in self.table.names]
        own = frame.iloc[:, places] if is_pandas(frame) else frame.select(places)
        return read_user_rows(self.name, "rows", own, self.table, self.table.names)

    def _fitted(self, row: Any) -> Row:
        values = self._by_name(row) if isinstance(row, Mapping) else row
        if not isinstance(values, tuple | list) or len(values) != len(self._converters):
            raise SchemaError(
                f"row {row!r} does not fit {self.name}({', '.join(self.table.names)}): expected a "
                f"tuple of {len(self._converters)} values"
            )
        if self._trust:
            return tuple(values)
        return tuple([self._fit(place, value) for place, value in enumerate(values)])

    def _by_name(self, row: Mapping[Any, Any]) -> list[Any]:
        missing = [name for name in self.table.names if name not in row]
        if missing:
            hint = did_you_mean(missing[0], map(str, row))
            raise SchemaError(f"row {dict(row)!r} of {self.name} has no {', '.join(missing)}{hint}")
        return [row[name] for name in self.table.names]

    def _fit(self, place: int, value: Any) -> Any:
        try:
            return self._converters[place](value)
        except MisfitError as misfit:
            field = self.table.columns[place]
            problem = f'column "{field.name}" ({field.type}): {misfit}'
            raise SchemaError(f'table "{self.name}": {problem}') from None

    # --- checks -----------------------------------------------------------------------------------

    def _check_count(self, row: Row, count: Any) -> None:
        if type(count) is not int:
            raise SchemaError(f"multiplicity {count!r} is not a whole number")
        if count < 0 and self._insert_only:
            raise SchemaError(f"cannot delete {row!r} from {self.name}: inserts only")

    def _check_keys(self, bag: Bag) -> None:
        """After the changes, no key may have two rows; what goes must have been there."""
        if not self.table.key or self._trust:
            return
        gone, new = set[Row](), set[Row]()
        for row, count in bag.items():
            key = self._key_of(row)
            if count < 0 and (count < -1 or self.by_key.get(key) != row):
                raise self._refusal(row, "is deleted, but it is not there so often")
            gone.update([key] if count < 0 else [])
        for row in (row for row, count in bag.items() if count > 0):
            key = self._key_of(row)
            if bag[row] > 1 or key in new or (key in self.by_key and key not in gone):
                raise self._refusal(row, f"has the key {key!r} of another row; delete that first")
            new.add(key)

    def _refusal(self, row: Row, problem: str) -> SchemaError:
        return SchemaError(f'table "{self.name}": {row!r} {problem}')
