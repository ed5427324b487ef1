"""The net changes of a table between two states (id_based_ivm, sections 2 and 5).

A batch is *effective*: it names every key at most once and tells the final state of its row, so
that its parts can be applied, and turned into diffs, in any order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from viewkeep.changes.rows import ChangeError, Key, Row, RowFormat
from viewkeep.changes.values import same
from viewkeep.errors import SchemaError
from viewkeep.query.tables import Table

Step = tuple[Row | None, Row | None]
"""The row of one key before and after; None where there is none."""


class RowUpdate(NamedTuple):
    """A row before and after: the same key, and a difference in another column."""

    old: Row
    new: Row


@dataclass(frozen=True, init=False)
class ChangeBatch:
    """Whole new rows, whole old rows, and (old, new) pairs that differ.

    >>> parts = Table({"pid": "int", "price": "int"}, key=["pid"])
    >>> batch = ChangeBatch("parts", parts, inserts=[(3, 7)], updates=[((1, 5), (1, 6))])
    >>> batch.apply({(1,): (1, 5)})
    {(1,): (1, 6), (3,): (3, 7)}
    """

    name: str
    table: Table
    inserts: tuple[Row, ...]
    deletes: tuple[Row, ...]
    updates: tuple[RowUpdate, ...]

    def __init__(
        self,
        name: str,
        table: Table,
        inserts: Iterable[Row] = (),
        deletes: Iterable[Row] = (),
        updates: Iterable[tuple[Row, Row]] = (),
    ) -> None:
        # A frozen dataclass can only be filled this way when its constructor normalises.
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "inserts", tuple(inserts))
        object.__setattr__(self, "deletes", tuple(deletes))
        object.__setattr__(self, "updates", tuple(RowUpdate(*pair) for pair in updates))
        self._check_batch()

    @staticmethod
    def of_steps(name: str, table: Table, steps: Iterable[Step]) -> "ChangeBatch":
        """The batch of rows before and after, one step per key; what stays the same is left out."""
        inserts: list[Row] = []
        deletes: list[Row] = []
        updates: list[RowUpdate] = []
        for old, new in steps:
            if old is None:
                inserts.extend([] if new is None else [new])
            elif new is None:
                deletes.append(old)
            elif not same(old, new):
                updates.append(RowUpdate(old, new))
        return ChangeBatch(name, table, inserts, deletes, updates)

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return not (self.inserts or self.deletes or self.updates)

    @property
    def size(self) -> int:
        """How many rows changed."""
        return len(self.inserts) + len(self.deletes) + len(self.updates)

    def steps(self) -> list[Step]:
        """Every changed row before and after."""
        return [
            *((old, None) for old in self.deletes),
            *self.updates,
            *((None, new) for new in self.inserts),
        ]

    def inverse(self) -> "ChangeBatch":
        """The batch that takes this one back."""
        swapped = ((new, old) for old, new in self.updates)
        return ChangeBatch(self.name, self.table, self.deletes, self.inserts, swapped)

    def then(self, other: "ChangeBatch") -> "ChangeBatch":
        """Both batches as one; the other one starts where this one ends."""
        return compose_batches(self.name, self.table, (self, other))

    def apply(self, rows: Mapping[Key, Row]) -> dict[Key, Row]:
        """The rows after the batch, as a new dict; an error if the old rows are not the batch's."""
        after = dict(rows)
        self.apply_to(after)
        return after

    def apply_to(self, rows: dict[Key, Row]) -> None:
        """Change rows in place; nothing is changed if the old rows are not the batch's."""
        format_ = RowFormat(self.name, self.table)
        steps = [(format_.key_of(_row_of_step(step)), step) for step in self.steps()]
        for key, (old, _) in steps:
            if not same(rows.get(key), old):
                format_.refuse(key, _unexpected_row(rows.get(key), old))
        for key, (_, new) in steps:
            if new is None:
                del rows[key]
            else:
                rows[key] = new

    def changed_columns(self, update: RowUpdate) -> frozenset[str]:
        """The columns in which an update's rows differ."""
        columns = zip(self.table.names, update.old, update.new, strict=True)
        return frozenset(name for name, old, new in columns if not same(old, new))

    def by_changed(self, groups: Sequence[frozenset[str]]) -> dict[frozenset[str], list[RowUpdate]]:
        """The updates by what they change, each in exactly one class.

        The groups are the conditional attribute sets of a view's operators and its other
        attributes (id_based_ivm, section 5). The class of an update is the union of the groups
        in which it changes a column; one that changes no column of a group does not concern the
        view and is left out. The paper puts an update into every diff that it concerns; one class
        per update keeps diffs of one table disjoint.
        """
        self._check_groups(groups)
        classes: dict[frozenset[str], frozenset[str]] = {}
        by_columns: dict[frozenset[str], list[RowUpdate]] = {}
        for update in self.updates:
            changed = self.changed_columns(update)
            if changed not in classes:
                classes[changed] = frozenset().union(*(g for g in groups if g & changed))
            if classes[changed]:
                by_columns.setdefault(classes[changed], []).append(update)
        return by_columns

    def _check_groups(self, groups: Sequence[frozenset[str]]) -> None:
        format_ = RowFormat(self.name, self.table)
        for group in groups:
            format_.check_names(sorted(group), f'table "{self.name}", group of columns')

    def _check_batch(self) -> None:
        format_, width = RowFormat(self.name, self.table), len(self.table.columns)
        seen: set[Key] = set()
        for old, new in self.steps():
            for row in (old, new):
                if row is not None and len(row) != width:
                    raise SchemaError(f'table "{self.name}": {row!r} has not {width} columns')
            key = format_.key_of(_row_of_step((old, new)))
            if key in seen:
                format_.refuse(key, "changed twice in one batch; net the changes first")
            seen.add(key)
        for old, new in self.updates:
            if format_.key_of(old) != format_.key_of(new):
                key = format_.key_of(old)
                format_.refuse(key, "an update keeps its key; give a delete and an insert")
            if same(old, new):
                format_.refuse(format_.key_of(old), "an update changes nothing; leave it out")


def compose_batches(name: str, table: Table, batches: Iterable[ChangeBatch]) -> ChangeBatch:
    """Batches of one table, each starting where the one before ends, as one batch."""
    format_ = RowFormat(name, table)
    net: dict[Key, Step] = {}
    for batch in batches:
        if (batch.name, batch.table) != (name, table):
            raise ChangeError(
                f'changes of table "{batch.name}" cannot follow changes of table "{name}"; '
                "compose the batches of each table, as declared, for themselves"
            )
        for step in batch.steps():
            key = format_.key_of(_row_of_step(step))
            first, last = net.get(key, (step[0], step[0]))
            if not same(last, step[0]):
                format_.refuse(key, _unexpected_row(last, step[0]))
            net[key] = (first, step[1])
    return ChangeBatch.of_steps(name, table, net.values())


def _row_of_step(step: Step) -> Row:
    row = step[0] if step[0] is not None else step[1]
    assert row is not None, "a step without rows"
    return row


def _unexpected_row(there: Row | None, expected: Row | None) -> str:
    def shown(row: Row | None) -> str:
        return "no row" if row is None else f"the row {row!r}"

    return (
        f"the batch starts from {shown(expected)}, but {shown(there)} is there; "
        "apply batches in order, each to the state that it was made for"
    )
