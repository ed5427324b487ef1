"""Base tables as users declare them: columns with types, keys, foreign keys, dependencies."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from viewkeep.errors import ConstraintError, SchemaError, did_you_mean
from viewkeep.query.constraints import ForeignKey, FunctionalDependency, listed_items
from viewkeep.query.types.data_types import BIGINT, Field, Type, parse_type

T = TypeVar("T")
HIDDEN = "#"
"""Starts the names of columns that are Viewkeep's own: SQL does not see them."""
COPY = f"{HIDDEN}copy"
"""The column that numbers the copies of a row, from 1, in a table without a key of its own."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key of a table: its columns name one row of another table."""

    columns: tuple[str, ...]
    table: str
    referenced_columns: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> "Reference":
        """Read `company_id -> C.company_id` or `a, b -> PS.x, PS.y`.

        >>> print(Reference.parse("a, b -> PS.x, PS.y"))
        a, b -> PS.x, PS.y
        """
        referring, arrow, referenced = text.partition("->")
        # The constraint notation qualifies both sides; here the left table is the one declared.
        qualified = ", ".join(f"self.{column.strip()}" for column in referring.split(","))
        try:
            key = ForeignKey.parse(f"{qualified} {arrow} {referenced}")
        except ConstraintError:
            raise SchemaError(f'"{text}": a foreign key is written a, b -> T.x, T.y') from None
        return Reference(key.columns, key.referenced, key.referenced_columns)

    def __str__(self) -> str:
        referenced = ", ".join(f"{self.table}.{column}" for column in self.referenced_columns)
        return f"{', '.join(self.columns)} -> {referenced or self.table}"


@dataclass(frozen=True, init=False)
class Table:
    """A declared table; key columns are never NULL, unless `nullable_key`: the groups of a view.

    >>> parts = Table({"pid": "int", "price": "decimal(10,2) not null"}, key=["pid"])
    >>> print(*parts.columns, sep=", ")
    pid int not null, price decimal(10, 2) not null
    """

    columns: tuple[Field, ...]
    key: tuple[str, ...]
    foreign_keys: tuple[Reference, ...]
    fds: tuple[FunctionalDependency, ...]
    static: bool

    def __init__(
        self,
        columns: Mapping[str, str | Type | Field],
        key: Iterable[str] = (),
        foreign_keys: Iterable[str | Reference] = (),
        fds: Iterable[str | FunctionalDependency] = (),
        static: bool = False,
        nullable_key: bool = False,
    ) -> None:
        if not isinstance(columns, Mapping):
            raise SchemaError(
                f'columns are given with their types, {{"a": "int"}}, not {columns!r}'
            )
        key = _declared_list(key, "key")
        fields = [_declared_field(name, declared) for name, declared in columns.items()]
        if not nullable_key:
            fields = [replace(f, nullable=f.nullable and f.name not in key) for f in fields]
        references = [
            _declared_reference(foreign) for foreign in _declared_list(foreign_keys, "foreign_keys")
        ]
        # A frozen dataclass can only be filled this way when its constructor normalises.
        object.__setattr__(self, "columns", tuple(fields))
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "foreign_keys", tuple(references))
        object.__setattr__(
            self, "fds", tuple(map(_declared_dependency, _declared_list(fds, "fds")))
        )
        if not isinstance(static, bool):
            raise SchemaError(f"static={static!r}: expected True or False")
        object.__setattr__(self, "static", static)
        self._check_declaration()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(field.name for field in self.columns)

    @property
    def visible(self) -> tuple[Field, ...]:
        """The columns that SQL sees: a view's table also has IDs that its SQL does not select."""
        return tuple(field for field in self.columns if not field.name.startswith(HIDDEN))

    def numbered(self, names: Iterable[str]) -> "Table":
        """Some columns of a table without a key, with the number of the copy: together a key.

        >>> print(Table({"line": "string", "level": "int"}).numbered(["line"]).key)
        ('line', '#copy')
        """
        columns = {field.name: field for field in self.columns}
        fields = {name: columns[name] for name in names} | {
            COPY: Field(COPY, BIGINT, nullable=False)
        }
        return Table(fields, key=fields, static=self.static, nullable_key=True)

    @property
    def numbers_copies(self) -> bool:
        """Whether equal rows are told apart by the number of the copy."""
        return COPY in self.key

    @property
    def stored_names(self) -> tuple[str, ...]:
        """The columns that its files have: all but the number of the copy."""
        return tuple(name for name in self.names if name != COPY)

    def _check_declaration(self) -> None:
        if not self.columns:
            raise SchemaError("a table needs at least one column")
        _check_column_names(self.names)
        self._check_columns_exist("key", self.key)
        if len(set(self.key)) < len(self.key):
            raise SchemaError(f"key ({', '.join(self.key)}): a column stands twice")
        for each in self.columns:
            if each.name in self.key and each.type.has_map:
                raise SchemaError(
                    f'key column "{each.name}" is {each.type}: maps are only carried, not '
                    "compared; choose other columns"
                )
        for reference in self.foreign_keys:
            self._check_columns_exist(f'foreign key "{reference}"', reference.columns)
        for fd in self.fds:
            self._check_columns_exist(
                f'functional dependency "{fd}"', fd.determinant + fd.dependent
            )

    def _check_columns_exist(self, place: str, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.names:
                raise SchemaError(
                    f'{place}: no column "{name}" ({", ".join(self.names)})'
                    + did_you_mean(name, self.names)
                )


_NULLABILITY = re.compile(r"(.*?)(\s+not)?\s+null\s*", re.IGNORECASE | re.DOTALL)


def _declared_field(name: str, declared: str | Type | Field) -> Field:
    match declared:
        case Field():
            return replace(declared, name=name)
        case Type():
            return Field(name, declared)
        case str():
            nullability = _NULLABILITY.fullmatch(declared)
            text, negation = nullability.groups() if nullability else (declared, None)
            try:
                return Field(name, parse_type(text), nullable=negation is None)
            except SchemaError as error:
                raise SchemaError(f'column "{name}": {error}') from None
    raise SchemaError(f'column "{name}": {declared!r} is not a type; write "int", "string", ...')


def _declared_reference(foreign_key: str | Reference) -> Reference:
    return Reference.parse(foreign_key) if isinstance(foreign_key, str) else foreign_key


def _declared_dependency(fd: str | FunctionalDependency) -> FunctionalDependency:
    if not isinstance(fd, str):
        return fd
    try:
        return FunctionalDependency.parse(fd)
    except ConstraintError as error:
        raise SchemaError(str(error)) from None


def _declared_list(values: Iterable[T], name: str) -> tuple[T, ...]:
    kinds = (str, Reference, FunctionalDependency)
    return listed_items(values, name, kinds, SchemaError)


def _check_column_names(names: Iterable[str]) -> None:
    first_names: dict[str, str] = {}
    for name in names:
        # SQL names differ by more than case, so neither may columns.
        first_name = first_names.setdefault(name.lower(), name)
        if first_name is not name:
            raise SchemaError(f'columns "{first_name}" and "{name}" have the same name in SQL')
