"""The names that an expression may use: the columns of FROM, and those around a subquery."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Optional

from viewkeep.errors import did_you_mean
from viewkeep.query.expressions import Expression, Literal
from viewkeep.query.types.signatures import TypedValue


@dataclass(frozen=True, slots=True)
class Scalar:
    """A translated expression with its type."""

    expression: Expression
    typed: TypedValue


def constant(value: Literal) -> Scalar:
    """A literal as a typed expression."""
    return Scalar(value, TypedValue(value.type, value.value is None, value.value))


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column of a table in FROM; a hidden one is merged by USING and needs its qualifier."""

    qualifier: str
    name: str
    scalar: Scalar
    hidden: bool = False
    repeats: Expression | None = None
    """The column before it, of the same name, that is the same one: the name means that one."""

    def __str__(self) -> str:
        return f"{self.qualifier}.{self.name}" if self.qualifier else self.name


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns in sight, in the order of `*`; `outer` is the query around a subquery."""

    columns: tuple[ScopeColumn, ...]
    outer: Optional["Scope"] = None

    def matches(self, qualifier: str, name: str) -> list[ScopeColumn]:
        """The columns that a name may mean, in any case; without a qualifier only visible ones."""
        return [c for c in self.named(qualifier, name) if c.repeats is None]

    def named(self, qualifier: str, name: str) -> list[ScopeColumn]:
        """The columns that have a name, also those that repeat another one."""
        return [c for c in self.visible(qualifier) if c.name.lower() == name.lower()]

    def visible(self, qualifier: str = "") -> list[ScopeColumn]:
        """The columns of `*`, or of `qualifier.*`."""
        if qualifier:
            return [c for c in self.columns if c.qualifier.lower() == qualifier.lower()]
        return [column for column in self.columns if not column.hidden]

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """The names of the tables in FROM."""
        return tuple(dict.fromkeys(c.qualifier for c in self.columns if c.qualifier))

    def unknown(self, qualifier: str, name: str) -> str:
        """Why a name means nothing here, with the closest one that does."""
        if qualifier and not self.visible(qualifier):
            qualifiers = ", ".join(self.qualifiers)
            hint = did_you_mean(qualifier, self.qualifiers)
            return f'no table "{qualifier}" in FROM ({qualifiers}){hint}'
        columns = list(dict.fromkeys(c.name for c in self.visible(qualifier)))
        place = qualifier or ", ".join(self.qualifiers)
        hint = did_you_mean(name, columns)
        return f'column "{name}" is not in {place} ({", ".join(columns)}){hint}'


def with_repeats(
    columns: Sequence[ScopeColumn], repeats: Mapping[int, int]
) -> tuple[ScopeColumn, ...]:
    """The columns, those at some places as repetitions of others before them."""
    return tuple(
        replace(column, repeats=columns[repeats[place]].scalar.expression)
        if place in repeats
        else column
        for place, column in enumerate(columns)
    )


def hide(columns: Iterable[ScopeColumn], names: Iterable[str]) -> tuple[ScopeColumn, ...]:
    """The columns, those with one of these names only in sight of their qualifier."""
    merged = {name.lower() for name in names}
    return tuple(replace(c, hidden=c.hidden or c.name.lower() in merged) for c in columns)


def first_named(columns: Iterable[ScopeColumn], names: Iterable[str]) -> tuple[ScopeColumn, ...]:
    """The columns with those of these names first: so `*` and `t.*` go after USING, as in Spark."""
    order = {name.lower(): place for place, name in enumerate(names)}
    return tuple(sorted(columns, key=lambda column: order.get(column.name.lower(), len(order))))
