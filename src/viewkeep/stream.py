"""The flow of `viewkeep maintain`: a live query, loaded from files, that follows a file of changes.

files of rows -> load -> changes, one at a time -> every N updates: the result, or what changed
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain
from time import perf_counter
from typing import Any

from viewkeep.csv_input import (
    STANDARD_INPUT,
    CsvFile,
    CsvLayout,
    Row,
    read_csv_changes,
    read_csv_rows,
)
from viewkeep.errors import QueryError, ViewkeepError, did_you_mean
from viewkeep.maintainer import Maintainer, OutputChange
from viewkeep.query.tables import Table

AGGREGATES_WITH_ZERO = ("count", "sum")
"""The aggregates that have a value over no rows at all."""


@dataclass
class Progress:
    """What has happened so far; loading includes reading files, updates are maintenance alone."""

    loaded: int = 0
    load_seconds: float = 0.0
    load_steps: int = 0
    updates: int = 0
    ignored: int = 0
    seconds: float = 0.0
    steps: int = 0
    worst_steps: int = 0


class Stream:
    """A maintained query with the files it reads."""

    def __init__(self, live: Maintainer, tables: Mapping[str, Table]) -> None:
        self.live, self.progress = live, Progress()
        self.changes: CsvFile | None = None
        relations = live.query.relations
        self._layouts = {name: CsvLayout.of(live.query, name, tables) for name in relations}
        self._others = {name: table for name, table in tables.items() if name not in relations}
        self._net_changes: dict[Row, OutputChange] = {}
        self._reading: CsvFile | None = None

    def load(self, sources: Sequence[tuple[str, str]], header: bool | None = None) -> None:
        """Fill relations from files, given as pairs; a relation may have several files."""
        with ExitStack() as opened:
            data: dict[str, Iterable[Row]] = {}
            for relation, name in sources:
                layout = self._layout(relation)
                file = opened.enter_context(closing(CsvFile(name)))
                rows = self._counted(file, read_csv_rows(file, layout, header))
                data[relation] = chain(data.get(relation, ()), rows)
            start = perf_counter()
            try:
                self.live.load(data)
            except ViewkeepError as error:
                self._add_place(error, sources, header)
                raise
            self.progress.load_seconds = perf_counter() - start
            self.progress.load_steps = self.live.steps

    def follow(self, name: str, every: int | None = None) -> Iterator[int]:
        """Apply the changes of a file; stop after every so many updates, and at the end."""
        shown = None
        with closing(CsvFile(name)) as file:
            self.changes = file
            with file.named_in_errors():
                for change in read_csv_changes(file, self._layouts, self._others):
                    if change.row is None:
                        self.progress.ignored += 1
                        continue
                    self._update(change.relation, change.row, change.multiplicity)
                    if every and self.progress.updates % every == 0:
                        shown = self._up_to_date()
                        yield shown
        if shown != self.progress.updates:
            yield self._up_to_date()

    def watch(self) -> None:
        """Keep the changes of the output from now on."""
        self.live.subscribe(self._tell)

    def take_changes(self) -> list[OutputChange]:
        """The net change of every output tuple since the last call."""
        changes = [each for each in self._net_changes.values() if each.before != each.after]
        self._net_changes.clear()
        return changes

    def result(self, given: Mapping[str, Any]) -> Iterator[tuple[Row, Any]]:
        """The output tuples with their payloads; one that is always there if nothing is output."""
        query = self.live.query
        if query.outputs:
            return self.live.enumerate(given)
        payload = self.live.lookup((), given)
        if payload is None:
            functions = [aggregate.function for aggregate in query.aggregates]
            payload = tuple([0 if f in AGGREGATES_WITH_ZERO else None for f in functions])
        return iter([((), payload)])

    # --- in between -------------------------------------------------------------------------------

    def _layout(self, relation: str) -> CsvLayout:
        if relation not in self._layouts:
            names, hint = ", ".join(self._layouts), did_you_mean(relation, self._layouts)
            raise QueryError(f'no relation "{relation}" in the query ({names}){hint}')
        return self._layouts[relation]

    def _counted(self, file: CsvFile, rows: Iterable[Row]) -> Iterator[Row]:
        self._reading = file
        for row in rows:
            self.progress.loaded += 1
            yield row
        self._reading = None

    def _add_place(
        self, error: ViewkeepError, sources: Sequence[tuple[str, str]], header: bool | None
    ) -> None:
        """Say which line is wrong: the last that was read, or one found by reading again."""
        if self._reading is not None:
            error.add_note(self._reading.place)
            return
        for relation, name in sources:
            if name != STANDARD_INPUT:
                with closing(CsvFile(name)) as file:
                    for row in read_csv_rows(file, self._layout(relation), header):
                        try:
                            self.live.check_batch(relation, [row], loading=True)
                        except ViewkeepError:
                            error.add_note(file.place)
                            return

    def _update(self, relation: str, row: Row, multiplicity: int) -> None:
        progress, steps, start = self.progress, self.live.steps, perf_counter()
        self.live.update(relation, row, multiplicity)
        progress.seconds += perf_counter() - start
        progress.updates += 1
        self._count_steps(steps)

    def _up_to_date(self) -> int:
        """Apply what a lazy maintainer has put off, which is maintenance too."""
        steps, start = self.live.steps, perf_counter()
        self.live.flush()
        self.progress.seconds += perf_counter() - start
        self._count_steps(steps)
        return self.progress.updates

    def _count_steps(self, before: int) -> None:
        steps = self.live.steps - before
        self.progress.steps += steps
        self.progress.worst_steps = max(self.progress.worst_steps, steps)

    def _tell(self, changes: list[OutputChange]) -> None:
        for change in changes:
            earlier = self._net_changes.get(change.row, change)
            self._net_changes[change.row] = OutputChange(change.row, earlier.before, change.after)
