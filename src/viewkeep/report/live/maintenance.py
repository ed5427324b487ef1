"""A live query for people and for programs: its result, its changes, and what they cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from viewkeep.plan.program import Map, Program
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.report.style import HEADING, section

FORMAT = 1
"""The version of the JSON lines, told in the first."""

NULL = "NULL"
COUNT = "count"
"""The name of the payload of a query without aggregates."""

Json = dict[str, Any]
Row = tuple[Any, ...]
Output = tuple[Row, Any]
"""An output tuple and its payload."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What maintenance did and what it cost; updates without reading and printing."""

    program: Program
    sizes: dict[str, int]
    loaded: int
    load_seconds: float
    load_steps: int
    updates: int
    ignored: int
    seconds: float
    steps: int
    worst_steps: int
    interrupted: bool = False

    @property
    def rate(self) -> float | None:
        """Updates per second; None where too little was measured."""
        return self.updates / self.seconds if self.updates and self.seconds else None

    @property
    def why(self) -> tuple[str, ...]:
        """Why this strategy runs; then why not another."""
        name = f"{self.program.strategy}: "
        notes = sorted(self.program.notes, key=lambda note: not note.startswith(name))
        return tuple(note.removeprefix(name) for note in notes) or ("as asked",)


# --- the result -----------------------------------------------------------------------------------


def payload_names(query: ConjunctiveQuery) -> tuple[str, ...]:
    """What the payload of an output tuple is called, part by part."""
    return tuple(map(str, query.aggregates)) or (COUNT,)


def result_table(
    query: ConjunctiveQuery, rows: Sequence[Output], more: bool, updates: int
) -> RenderableType:
    """Output tuples in columns, then their payloads; `more` if not all are shown."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in query.outputs:
        table.add_column(Text(name), overflow="fold")
    for name in payload_names(query):
        table.add_column(Text(name), overflow="fold", justify="right")
    for row, payload in rows:
        table.add_row(*(Text(cell(value)) for value in (*row, *_payload_parts(query, payload))))
    notes = []
    if more:
        notes.append(Text(f"and more than these {len(rows)} rows: --limit 0 shows all", "dim"))
    elif not rows:
        notes.append(Text("no rows", "dim"))
    return section(f"{query.name} after {count_text(updates, 'update')}", table, *notes)


def change_line(query: ConjunctiveQuery, row: Row, before: Any, after: Any) -> str:
    """One change of the output: `+` came, `-` went, `~` has another payload.

    >>> from viewkeep.query.notation.parse import parse
    >>> print(change_line(parse("Q(a, b) = R(a, b)"), (1, "x"), 3, 4))
    ~ (1, 'x') 3 -> 4
    """
    output_row = row_text(row)
    old, new = _payload_text(query, before), _payload_text(query, after)
    if before is None:
        return f"+ {output_row} {new}"
    return f"- {output_row} {old}" if after is None else f"~ {output_row} {old} -> {new}"


def row_text(row: Row) -> str:
    """A row for people, text in quotes."""
    return f"({', '.join(map(_value_text, row))})"


def _payload_parts(query: ConjunctiveQuery, payload: Any) -> Row:
    """The payload as a tuple, with or without aggregates."""
    return tuple(payload) if query.aggregates else (payload,)


def _payload_text(query: ConjunctiveQuery, payload: Any) -> str:
    if payload is None:
        return NULL
    parts = [_value_text(part) for part in _payload_parts(query, payload)]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def cell(value: Any) -> str:
    """A value in a table: text as it is, unless the screen would not show it so."""
    if isinstance(value, str):
        return value if value.isprintable() else repr(value)
    return NULL if value is None else str(value)


def _value_text(value: Any) -> str:
    return repr(value) if isinstance(value, str) else cell(value)


# --- the cost -------------------------------------------------------------------------------------


def summary_page(summary: Summary) -> Group:
    """What was done, how fast, why so, and what is kept for it."""
    return Group(section("Summary", _summary_table(summary)), section("Maps", _maps_table(summary)))


def progress_line(loaded: int, updates: int, seconds: float, share: float | None) -> Table:
    """How far it is; the bar moves to and fro where the end is not known."""
    bar = ProgressBar(total=1.0, completed=share or 0.0, width=30, pulse=share is None)
    line = Table.grid(padding=(0, 2, 0, 0))
    rate = f"{updates / seconds:,.0f} per second" if updates and seconds else ""
    amount = count_text(updates, "update") if updates else f"loading: {count_text(loaded, 'row')}"
    line.add_row(bar, amount, rate)
    return line


def _summary_table(summary: Summary) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _summary_facts(summary):
        table.add_row(name, Text(text))
    return table


def _summary_facts(summary: Summary) -> Iterable[tuple[str, str]]:
    first, *others = summary.why
    yield "strategy", f"{summary.program.strategy}: {first}"
    yield from (("", other) for other in others)
    yield "loaded", f"{count_text(summary.loaded, 'row')} in {summary.load_seconds:.3f} s"
    rate = f", {summary.rate:,.0f} per second" if summary.rate else ""
    stopped = " (interrupted)" if summary.interrupted else ""
    yield "updates", f"{summary.updates:,} in {summary.seconds:.3f} s{rate}{stopped}"
    if summary.ignored:
        changes = count_text(summary.ignored, "change")
        yield "ignored", f"{changes} of tables that the query does not read"
    mean = f" ({summary.steps / summary.updates:.1f} each" if summary.updates else ""
    worst = f", at most {summary.worst_steps:,})" if summary.updates else ""
    yield "steps", f"{summary.steps:,} in updates{mean}{worst}, {summary.load_steps:,} in loading"


def _maps_table(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=HEADING)
    table.add_column("map", no_wrap=True)
    table.add_column("entries", justify="right", no_wrap=True)
    table.add_column("holds", overflow="fold")
    for each in summary.program.maps:
        size = f"{summary.sizes[each.name]:,}"
        table.add_row(Text(_map_signature(each)), size, Text(each.definition))
    return table


def _map_signature(each: Map) -> str:
    return f"{each.name}({', '.join(each.key)})"


def count_text(number: int, thing: str) -> str:
    """A number of things for people.

    >>> count_text(1, "row"), count_text(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


# --- for programs: one JSON object per line -------------------------------------------------------


def start_json(query: ConjunctiveQuery, program: Program, with_program: bool) -> Json:
    """The first line: what is maintained, and how to read the lines that follow."""
    return {
        "kind": "start",
        "format": FORMAT,
        "query": str(query),
        "outputs": list(query.outputs),
        "payload": list(payload_names(query)),
        "strategy": program.strategy,
        **({"program": str(program)} if with_program else {}),
    }


def result_json(query: ConjunctiveQuery, rows: Sequence[Output], more: bool, updates: int) -> Json:
    """The result after so many updates."""
    listed = [
        {"row": row_json(row), "payload": row_json(_payload_parts(query, p))} for row, p in rows
    ]
    return {"kind": "result", "updates": updates, "rows": listed, "more": more}


def changes_json(
    query: ConjunctiveQuery, changes: Iterable[tuple[Row, Any, Any]], updates: int
) -> Json:
    """What changed in the output; null stands for absent."""
    listed = [
        {
            "row": row_json(row),
            "before": None if before is None else row_json(_payload_parts(query, before)),
            "after": None if after is None else row_json(_payload_parts(query, after)),
        }
        for row, before, after in changes
    ]
    return {"kind": "changes", "updates": updates, "changes": listed}


def summary_json(summary: Summary) -> Json:
    """The last line."""
    return {
        "kind": "summary",
        "strategy": summary.program.strategy,
        "why": list(summary.why),
        "loaded": summary.loaded,
        "load_seconds": summary.load_seconds,
        "load_steps": summary.load_steps,
        "updates": summary.updates,
        "ignored": summary.ignored,
        "seconds": summary.seconds,
        "updates_per_second": summary.rate,
        "steps": summary.steps,
        "worst_steps": summary.worst_steps,
        "interrupted": summary.interrupted,
        "maps": [
            {
                "name": each.name,
                "key": list(each.key),
                "holds": each.definition,
                "entries": summary.sizes[each.name],
            }
            for each in summary.program.maps
        ],
    }


def row_json(row: Row) -> list[Any]:
    """A row as a list of values that JSON has."""
    return [_json_value(value) for value in row]


def _json_value(value: Any) -> Any:
    """Decimals, dates and times as text, which keeps them exact."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
