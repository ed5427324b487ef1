"""A claim of a paper beside what is measured, and the page that such claims make."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

REPRODUCED, PARTLY, NOT = "reproduced", "partly", "not"
VERDICTS = (REPRODUCED, PARTLY, NOT)

Show = Callable[[str], None]
"""Tells what is being measured."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper: where it stands, what is printed there, and what comes out here."""

    place: str
    statement: str
    printed: str
    measured: str
    verdict: str
    why: str = ""

    def __post_init__(self) -> None:
        assert self.verdict in VERDICTS, self.verdict


def exact_claim(place: str, statement: str, printed: Any, measured: Any) -> Claim:
    """A claim about a value: reproduced where both are equal.

    >>> exact_claim("figure 2", "the count", 19, 19).verdict
    'reproduced'
    """
    verdict = REPRODUCED if printed == measured else NOT
    return Claim(place, statement, as_text(printed), as_text(measured), verdict)


def graded_claim(
    place: str,
    statement: str,
    printed: str,
    measured: str,
    *,
    holds: Sequence[bool],
    why: str = "",
) -> Claim:
    """A claim with several parts: reproduced where all of them hold, partly where some do.

    >>> graded_claim("figure 12", "faster", "4", "3", holds=[True, False]).verdict
    'partly'
    """
    verdict = REPRODUCED if all(holds) else PARTLY if any(holds) else NOT
    return Claim(place, statement, printed, measured, verdict, why)


def as_text(value: Any) -> str:
    """A value as a cell shows it.

    >>> as_text({("Elise", 35): 2, (): 19})
    'Elise 35: 2; (): 19'
    """
    if isinstance(value, dict):
        rows = (f"{' '.join(map(str, row)) or '()'}: {held}" for row, held in value.items())
        return "; ".join(rows)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "round"), counted(2, "round")
    ('1 round', '2 rounds')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Section:
    """One paper, or one part of it: its claims, and the tables that they are read from."""

    title: str
    text: str
    claims: Sequence[Claim]
    details: Sequence[str] = field(default_factory=tuple)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """A table in Markdown; the last `numbers` columns are numbers.

    >>> print(table(["a", "b"], [["1", "2|3"]], 1))
    | a | b |
    |---|---:|
    | 1 | 2\\|3 |
    """
    marks = ["---"] * (len(header) - numbers) + ["---:"] * numbers
    lines = [header, *([each.replace("|", "\\|") for each in row] for row in rows)]
    head, *rest = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, f"|{'|'.join(marks)}|", *rest])


def claims_table(claims: Sequence[Claim]) -> str:
    """The claims of a section."""
    header = ["where", "claim", "printed", "here", "verdict", "why it differs"]
    columns = len(header) if any(each.why for each in claims) else len(header) - 1
    rows = (
        [c.place, c.statement, c.printed, c.measured, f"**{c.verdict}**", c.why][:columns]
        for c in claims
    )
    return table(header[:columns], rows)


def summary(sections: Sequence[Section]) -> str:
    """How many claims of each section have which verdict."""
    rows = []
    for section in sections:
        counts = Counter(claim.verdict for claim in section.claims)
        rows.append([section.title, *(str(counts[verdict]) for verdict in VERDICTS)])
    totals = [str(sum(int(row[i]) for row in rows)) for i in range(1, len(VERDICTS) + 1)]
    return table(["", *VERDICTS], [*rows, ["all", *totals]], len(VERDICTS))


def markdown(title: str, text: str, sections: Sequence[Section]) -> str:
    """The whole page."""
    parts = [f"# {title}", text, summary(sections)]
    for section in sections:
        parts += [f"## {section.title}", section.text, claims_table(section.claims)]
        parts += section.details
    return "\n\n".join(part for part in parts if part) + "\n"
