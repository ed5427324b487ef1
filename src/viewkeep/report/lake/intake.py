"""What was taken in from sources, and what is in quarantine, for people and programs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from viewkeep.report.amounts import duration
from viewkeep.report.lake.refreshes import FORMAT
from viewkeep.report.lines import rows_table
from viewkeep.report.live.maintenance import count_text

if TYPE_CHECKING:  # it loads what reads a lake
    from viewkeep.lake.intake import CaptureReport, IngestReport

Json = dict[str, Any]
COLUMNS = ("file", "line", "reason", "record")


def ingest_text(report: "IngestReport") -> str:
    """What was taken in, then what waits."""
    lines = [f"{report.table}: {_intake_amounts(report)}"] if report.changed else []
    lines += [f"{report.table}: {each.name} waits: {each.reason}" for each in report.waiting]
    return "\n".join(lines) or f"{report.table}: nothing new"


def _intake_amounts(report: "IngestReport") -> str:
    amounts = [
        f"version {report.version}",
        count_text(report.files, "file"),
        count_text(report.records, "record"),
        f"{report.rejected:,} of them in quarantine" if report.rejected else "",
        f"{report.skipped:,} with nothing new" if report.skipped else "",
        duration(report.seconds),
    ]
    return ", ".join(filter(None, amounts))


def ingest_json(report: "IngestReport") -> Json:
    """The same for programs."""
    document = asdict(report)
    waiting = [asdict(each) for each in report.waiting]
    return {"format": FORMAT, **document, "waiting": waiting, "error": report.error or None}


def capture_text(report: "CaptureReport") -> str:
    """What was taken in from a table of a database."""
    if not report.changed:
        return f"{report.table}: nothing new"
    amounts = [
        f"version {report.version}",
        f"all {report.rows:,} rows read" if report.is_whole else count_text(report.rows, "row"),
        f"{report.rejected:,} of them in quarantine" if report.rejected else "",
        f"without {', '.join(report.left_out)}" if report.left_out else "",
        duration(report.seconds),
    ]
    return f"{report.table}: {', '.join(filter(None, amounts))}"


def capture_json(report: "CaptureReport") -> Json:
    """The same for programs."""
    return {"format": FORMAT, **asdict(report), "error": report.error or None}


def quarantine_page(name: str, records: Sequence[Mapping[str, Any]]) -> RenderableType:
    """A line for each record in quarantine."""
    if not records:
        return Text(f"no record of {name} is in quarantine", "dim")
    lines = [[r["name"], r["record"], r["reason"], r["text"]] for r in records]
    return rows_table(COLUMNS, lines)


def quarantine_json(name: str, records: Iterable[Mapping[str, Any]]) -> Json:
    """The same for programs."""
    return {"format": FORMAT, "table": name, "records": [dict(each) for each in records]}
