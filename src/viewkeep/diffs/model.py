"""ID-based diffs (id_based_ivm, section 2): rows to change, named by some of their IDs.

A diff of a relation V(I, A) has columns

    I'     IDs, under their own names: all rows of V with these values are meant
    A'     values before the change, named `x#pre`
    A''    values after the change, named `x#post`

An insert has all IDs and all other columns after the change; a delete has only values before. An
update may know values after the change of columns that it leaves alone: `changed` are the columns
that it sets. Diffs are *effective*: they tell the final state, so that it does not matter in which
order they are applied.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from viewkeep.query.types.inference import Schema

INSERT, DELETE, UPDATE = "insert", "delete", "update"
SIGNS = {INSERT: "+", DELETE: "-", UPDATE: "u"}


def pre(column: str) -> str:
    """The name of a column's value before the change."""
    return f"{column}#pre"


def post(column: str) -> str:
    """The name of a column's value after the change."""
    return f"{column}#post"


@dataclass(frozen=True, slots=True)
class DiffSchema:
    """What a diff says: its kind, the IDs it names rows by, and the values it knows."""

    kind: str
    ids: tuple[str, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a diff table, in order."""
        return (*self.ids, *map(pre, self.before), *map(post, self.after))

    def knows_before(self, columns: Iterable[str]) -> bool:
        """Whether all these values before the change are there; IDs never change."""
        return set(columns) <= {*self.ids, *self.before}

    def knows_after(self, columns: Iterable[str]) -> bool:
        """Whether all these values after the change are there."""
        return set(columns) <= {*self.ids, *self.after}

    def value_before(self, column: str) -> str:
        """Where the value before the change stands."""
        return column if column in self.ids else pre(column)

    def value_after(self, column: str) -> str:
        """Where the value after the change stands."""
        return column if column in self.ids else post(column)

    def __str__(self) -> str:
        changed = [f"{c}_post" for c in self.after if self.kind == INSERT or c in self.changed]
        names = (*self.ids, *(f"{c}_pre" for c in self.before), *changed)
        return f"{SIGNS[self.kind]}({', '.join(names)})"


def base_diff_name(table: str, kind: str, number: int = 0) -> str:
    """The name of a diff of a base table; updates of different columns are numbered."""
    return f"d{SIGNS[kind]}{number or ''}({table})"


def base_diff_columns(schema: DiffSchema, table: Schema) -> Schema:
    """The columns of a base table's diff, typed."""
    typed = {field.name: field for field in table}
    return (
        *(typed[c] for c in schema.ids),
        *(replace(typed[c], name=pre(c)) for c in schema.before),
        *(replace(typed[c], name=post(c)) for c in schema.after),
    )
