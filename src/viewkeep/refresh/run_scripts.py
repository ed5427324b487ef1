"""Runs the delta scripts of a view for changes of its inputs; nothing is written yet."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from viewkeep.errors import ViewkeepError
from viewkeep.execute.backend import Backend
from viewkeep.execute.base_diffs import BaseDiffs
from viewkeep.execute.row_changes import RowChanges, changed_relation, compose_row_changes
from viewkeep.lake import Pins
from viewkeep.lake.views.clock import clock_rows
from viewkeep.lake.views.stored_view import StoredView
from viewkeep.lake.views.view import View
from viewkeep.query.clock import CLOCK
from viewkeep.refresh.relations import ViewRelations
from viewkeep.refresh.write_changes import Outcome
from viewkeep.tables.relations import OverlaidRows, StoredRows
from viewkeep.tables.table_changes import TableChanges

KeptRows = dict[str, StoredRows | OverlaidRows]
"""The caches and the view as they are before the changes, by their names in the script."""


class TooManyRowsError(ViewkeepError):
    """Changes of so many rows that computing the view anew is the better way."""


@dataclass(frozen=True)
class ViewScripts:
    """The scripts of a view, from the versions that it reflects to other ones of its inputs."""

    view: View
    stored: StoredView
    inputs: Pins
    changes: Mapping[str, TableChanges]
    backend: Backend

    @contextmanager
    def outcome(
        self, diffs: BaseDiffs, kept: KeptRows, shared: frozenset[str]
    ) -> Iterator[Outcome]:
        """The changes of the view and its caches, which are there inside the block; `shared` are
        caches that another view has brought to these versions already."""
        if self.view.is_recursive:
            yield self._run_table_by_table(diffs, kept)
            return
        relations = self._script_relations(diffs, kept, self.stored.state.inputs, self.inputs)
        script = self.view.script_for(diffs.kinds, shared)
        with self.backend.run(script, relations) as run:
            outcome = Outcome(dict(run.rows), run)
            outcome.add(run)
            yield outcome

    def _run_table_by_table(self, diffs: BaseDiffs, kept: KeptRows) -> Outcome:
        """A recursive script takes the changes of one table (`diffs.recursive`); the next script
        reads caches and view as the one before leaves them."""
        outcome, rows, versions = Outcome(), dict(kept), dict(self.stored.state.inputs)
        for table, kinds in diffs.kinds.items():
            script = self.view.recursive_script(table, kinds)
            after = {**versions, table: self.inputs[table]}
            relations = self._script_relations(diffs, rows, versions, after)
            with self.backend.run(script, relations) as run:
                outcome.add(run)
                for name, changes in run.rows.items():
                    self._add_changes(outcome, rows, name, changes)
            versions = after
        return outcome

    def _add_changes(
        self, outcome: Outcome, rows: KeptRows, name: str, changes: RowChanges | None
    ) -> None:
        if changes is None:
            raise TooManyRowsError(f"too many rows of {name} change")
        # The scripts of different tables name the same rows by different columns of equal values.
        ids = next(each.ids for each in self.view.script.materialized if each.name == name)
        rows[name] = changed_relation(rows[name], changes, ids)
        earlier = outcome.rows.get(name)
        outcome.rows[name] = (
            changes if earlier is None else compose_row_changes(earlier, changes, ids)
        )

    def _script_relations(
        self, diffs: BaseDiffs, kept: KeptRows, before: Pins, after: Pins
    ) -> ViewRelations:
        """Where a script finds its relations."""
        pre = {(name, "pre"): before[name] for name in self.view.sources}
        post = {(name, "post"): after[name] for name in self.view.sources}
        changes = {
            name: self.changes[name]
            for name, source in self.view.sources.items()
            if source.declared.key and before[name] != after[name]
        }
        relations = ViewRelations(self.view, {**pre, **post}, changes=changes)
        relations.update(kept)
        relations.update(diffs.diffs)
        if self.stored.state.clock is not None:
            relations[CLOCK, "pre"] = clock_rows(self.stored.state.clock)
        return relations
