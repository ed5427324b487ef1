"""The script language: what a refresh computes and then applies.

All computations come first and read the state before the refresh of every cache and of the view;
then all changes are applied. So a script can be run lazily, and its end is one atomic step.

    Compute   name := query over diffs, tables before and after, caches, the view, earlier names
    Apply     change a cache or the view by a diff: deletes, then updates, then inserts

An insert replaces a row with the same IDs, so that two diffs may insert the same row.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from viewkeep.diffs.model import DELETE, INSERT, SIGNS, UPDATE, DiffSchema
from viewkeep.display import rows_html, text_html
from viewkeep.query.algebra import Node

ORDER = (DELETE, UPDATE, INSERT)
"""How the diffs of one target are applied."""


@dataclass(frozen=True)
class Materialized:
    """A relation that is kept: a cache, or the view itself. IDs are its key; NULL is a value."""

    name: str
    definition: Node
    ids: tuple[str, ...]
    why: str = ""
    operator: int | None = None
    """The number of the plan's operator whose rows these are, where it is one."""


@dataclass(frozen=True)
class BaseDiff:
    """A diff of a base table that the script reads; its columns are those of the table."""

    name: str
    table: str
    schema: DiffSchema


@dataclass(frozen=True)
class Compute:
    """`name := query`."""

    name: str
    query: Node
    schema: DiffSchema | None = None


@dataclass(frozen=True)
class Apply:
    """Change the target by a computed diff."""

    diff: str
    target: str
    schema: DiffSchema

    def __str__(self) -> str:
        return f"APPLY {SIGNS[self.schema.kind]} {self.diff} TO {self.target}"


Statement = Compute | Apply


@dataclass(frozen=True)
class Script:
    """Statements for some diffs of base tables, and the relations that they keep.

    `visible` are the columns of the view that its definition asked for, in order: pairs of the
    user's name and the name in the stored view, which also holds IDs and counts.
    """

    view: Materialized
    caches: tuple[Materialized, ...]
    diffs: tuple[BaseDiff, ...]
    statements: tuple[Statement, ...]
    visible: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def materialized(self) -> tuple[Materialized, ...]:
        """The caches and the view, each after what it may be computed from."""
        return (*self.caches, self.view)

    def computes(self) -> Iterator[Compute]:
        """The queries, in order."""
        return (each for each in self.statements if isinstance(each, Compute))

    def applies(self) -> Iterator[Apply]:
        """The changes, in the order in which they are made."""
        applies = [each for each in self.statements if isinstance(each, Apply)]
        return iter(sorted(applies, key=lambda each: ORDER.index(each.schema.kind)))

    def __str__(self) -> str:
        from viewkeep.diffs.show.script import show_script  # which reads the values of this module

        return show_script(self)

    def _repr_html_(self) -> str:
        kept = [(each.name, ", ".join(each.ids), each.why) for each in self.materialized]
        title = f"Delta script ({len(self.statements)} statements)"
        return text_html(title, str(self)) + rows_html(("kept", "IDs", "why"), kept)
