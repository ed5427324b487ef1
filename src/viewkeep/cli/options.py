"""Options that several commands share: the tables, and the constraints on the data."""

from math import isfinite
from typing import Annotated

import typer

from viewkeep.errors import ViewkeepError

Texts = list[str]

SchemaFile = Annotated[
    str | None, typer.Option(help="File of CREATE TABLE statements.", metavar="FILE")
]
Dependencies = Annotated[
    Texts | None, typer.Option(help="Functional dependency on variables.", metavar='"x -> y"')
]
Keys = Annotated[Texts | None, typer.Option(help="Key of a relation.", metavar='"C.id"')]
ForeignKeys = Annotated[Texts | None, typer.Option(help="Foreign key.", metavar='"M.c -> C.id"')]
KeyColumns = Annotated[Texts | None, typer.Option("--key", help="Key column.", metavar="COLUMN")]
ColumnForeignKeys = Annotated[
    Texts | None,
    typer.Option("--foreign-key", help="Foreign key.", metavar='"did -> devices.did"'),
]
TableDependencies = Annotated[
    Texts | None, typer.Option("--fd", help="Functional dependency.", metavar='"x -> y"')
]
Static = Annotated[bool, typer.Option("--static", metavar="", help="The table never changes.")]
Degrees = Annotated[Texts | None, typer.Option(help="Bounded degree.", metavar='"S: x -> y <= 3"')]
StaticRelations = Annotated[
    Texts | None, typer.Option(help="Relation that never changes.", metavar="T")
]
InsertOnly = Annotated[
    bool, typer.Option("--insert-only", metavar="", help="Rows are never deleted.")
]
Shares = Annotated[
    Texts | None,
    typer.Option(
        "--share",
        help="The part of a table's rows that you expect to change between two refreshes, from 0 "
        "to 1; may be repeated.",
        metavar="TABLE=PART",
        show_default=False,
    ),
]


def named_value(text: str, form: str) -> tuple[str, str]:
    """The name and the value of an option such as `--given a=1`, which is its `form`."""
    name, equals, value = text.partition("=")
    if not name.strip() or not equals or not value:
        raise ViewkeepError(f'"{text}": expected a name and a value, as in {form}')
    return name.strip(), value


def read_shares(texts: Texts | None) -> dict[str, float]:
    """The parts of tables that are expected to change.

    >>> read_shares(["orders=0.01", "parts=0"])
    {'orders': 0.01, 'parts': 0.0}
    """
    form, shares = "--share orders=0.01", dict[str, float]()
    for text in texts or ():
        name, value = named_value(text, form)
        if name in shares:
            raise ViewkeepError(f'--share {text}: "{name}" has a part already')
        shares[name] = _finite_number(value, f"--share {text}: expected a number, as in {form}")
    return shares


def _finite_number(text: str, problem: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ViewkeepError(problem) from None
    if not isfinite(number):
        raise ViewkeepError(problem)
    return number
