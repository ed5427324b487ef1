"""What `viewkeep maintain` prints while it runs: for people, or an object of JSON per line."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from viewkeep.cli.screen import show, write

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from viewkeep.maintainer import OutputChange
    from viewkeep.report.live.maintenance import Json, Output
    from viewkeep.stream import Stream

SHOWN_ROWS = 20
"""How many rows of a result people are shown unless they ask for more."""

PICTURES_PER_SECOND = 8


class Printer:
    """Results or changes to standard output, progress and the summary to standard error."""

    def __init__(
        self,
        stream: "Stream",
        inputs: Mapping[str, Any],
        deltas: bool,
        every: int | None,
        limit: int | None,
        quiet: bool,
        as_json: bool,
    ) -> None:
        self._stream, self._inputs = stream, inputs
        self._deltas, self._quiet, self._as_json = deltas, quiet, as_json
        self._has_headings = every is not None
        self.every = 1 if deltas and every is None else every
        default = 0 if as_json else SHOWN_ROWS
        self._limit = default if limit is None else limit
        self._bar: Live | None = None
        if inputs or not deltas:
            stream.live.enumerate(inputs)  # says what is wrong with the inputs, and reads nothing

    def start(self, with_program: bool) -> None:
        """Print the program or the JSON header, after the first rows are loaded."""
        if self._deltas:
            self._stream.watch()
        live = self._stream.live
        if self._as_json:
            from viewkeep.report.live.maintenance import start_json

            self._write_json(start_json(live.query, live.program, with_program))
        elif with_program:
            self._clear_screen()
            write(f"{live.program}\n\n")

    def show(self, updates: int) -> None:
        """Print the result after so many updates, or its changes since the last call."""
        self._clear_screen()
        if self._deltas:
            self._show_changes(updates)
        else:
            self._show_result(updates)

    def _show_result(self, updates: int) -> None:
        from viewkeep.report.live.maintenance import result_json, result_table

        rows, more = self._rows_to_show()
        query = self._stream.live.query
        if self._as_json:
            self._write_json(result_json(query, rows, more, updates))
        else:
            show(result_table(query, rows, more, updates))

    def _rows_to_show(self) -> tuple[list["Output"], bool]:
        """The rows up to the limit, and whether there are more."""
        output = self._stream.result(self._inputs)
        if not self._limit:
            return list(output), False
        rows = list(islice(output, self._limit + 1))
        return rows[: self._limit], len(rows) > self._limit

    def _show_changes(self, updates: int) -> None:
        from viewkeep.report.live.maintenance import change_line, changes_json, count_text

        query = self._stream.live.query
        changes = [
            (each.row, each.before, each.after)
            for each in self._stream.take_changes()
            if self._fits_inputs(each)
        ]
        if not changes:
            return
        if self._as_json:
            self._write_json(changes_json(query, changes, updates))
        else:
            heading = f"after {count_text(updates, 'update')}\n" if self._has_headings else ""
            write(heading + "".join(f"{change_line(query, *each)}\n" for each in changes))

    def _fits_inputs(self, change: "OutputChange") -> bool:
        """Whether a change belongs to the inputs that the user fixed."""
        query = self._stream.live.query
        values = change.row[len(query.outputs) :]
        inputs = zip(query.inputs, values, strict=True)
        return not self._inputs or all(self._inputs[name] == value for name, value in inputs)

    def summary(self, interrupted: bool = False) -> None:
        """Print what was done and what it cost."""
        from viewkeep.report.live.maintenance import Summary, summary_json, summary_page

        if self._quiet:
            return
        live, progress = self._stream.live, self._stream.progress
        summary = Summary(live.program, live.sizes(), **vars(progress), interrupted=interrupted)
        if self._as_json:
            self._write_json(summary_json(summary))
        else:
            show(summary_page(summary), stderr=True)

    @contextmanager
    def progress(self) -> Iterator[None]:
        """Show a progress line, on a terminal to which nothing else is printed meanwhile."""
        prints_meanwhile = sys.stdout.isatty() and (self._deltas or self.every)
        if self._quiet or prints_meanwhile or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console
        from rich.live import Live

        self._bar = Live(
            get_renderable=self._progress_picture,
            console=Console(stderr=True),
            refresh_per_second=PICTURES_PER_SECOND,
            transient=True,
            redirect_stdout=False,  # a pipe must get what is printed
            redirect_stderr=False,
        )
        with self._bar:
            yield

    def _progress_picture(self) -> "RenderableType":
        from viewkeep.report.live.maintenance import progress_line

        progress, changes = self._stream.progress, self._stream.changes
        share = changes.done if changes else None
        return progress_line(progress.loaded, progress.updates, progress.seconds, share)

    def _clear_screen(self) -> None:
        """Remove the progress line before something is printed over it."""
        if self._bar is not None and sys.stdout.isatty():
            self._bar.stop()

    def _write_json(self, value: "Json") -> None:
        write(json.dumps(value, ensure_ascii=False) + "\n")
