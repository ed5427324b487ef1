"""`viewkeep explain`: how fast a view can be maintained, and why not faster."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, assert_never

import typer

from viewkeep.cli.options import (
    Degrees,
    Dependencies,
    ForeignKeys,
    InsertOnly,
    Keys,
    SchemaFile,
    StaticRelations,
)
from viewkeep.cli.screen import show, write
from viewkeep.cli.source import read_argument, read_file

if TYPE_CHECKING:
    from rich.console import RenderableType

    from viewkeep.explain import Explanation, Outcome
    from viewkeep.report.workload import Line

SOME_FAILED = 1
"""The exit code when some of several queries are not valid."""

Stated = tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str], Sequence[str], bool]
"""The constraints as stated: dependencies, keys, foreign keys, degrees, static, inserts only."""


def explain(
    query: Annotated[
        str,
        typer.Argument(
            help="A query, an SQL view, a file with one or many of them, or - for standard input.",
            show_default=False,
        ),
    ],
    schema: SchemaFile = None,
    fd: Dependencies = None,
    key: Keys = None,
    foreign_key: ForeignKeys = None,
    degree: Degrees = None,
    static: StaticRelations = None,
    insert_only: InsertOnly = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print JSON for programs.")
    ] = False,
) -> None:
    """Say how fast a view can be maintained, and why not faster.

    Options that state a constraint may be repeated.

    **Examples**

    - viewkeep explain "Q(a, c) = R(a, b) * S(b, c)"

    - viewkeep explain "Q(a) = R(a, b) * S(b)" --fd "b -> a"

    - viewkeep explain "Q(| a, b, c) = E(a, b) * E(b, c) * E(c, a)"

    - viewkeep explain cost.sql --schema tables.sql

    - viewkeep explain queries.cq --static T --json
    """
    stated = (fd or (), key or (), foreign_key or (), degree or (), static or (), insert_only)
    explanation = _explain(query, schema, stated)
    if as_json:
        write(json.dumps(_document(explanation), indent=2) + "\n")
    else:
        show(_page(explanation))
    if explanation.failed:
        raise typer.Exit(SOME_FAILED)


def _explain(query: str, schema: str | None, stated: Stated) -> "Explanation":
    """Read everything, then explain; the imports wait until `--help` no longer can be meant."""
    from viewkeep.explain import explain
    from viewkeep.reading import read_constraints, read_tables

    constraints = read_constraints(*stated)
    source = read_argument(query)
    tables = None
    if schema is not None:
        declared = read_file(schema)
        with declared.named_in_errors():
            tables = read_tables(declared.text)
    with source.named_in_errors():
        return explain(source.text, tables, constraints)


def _page(explanation: "Explanation") -> "RenderableType":
    """One query in full, several in a table."""
    from viewkeep.explain import Analyzed
    from viewkeep.reading import Unclassified
    from viewkeep.report.page import algebra_page, analysis_page
    from viewkeep.report.workload import workload_page

    match explanation.outcomes:
        case (Analyzed(_, analysis),):
            return analysis_page(analysis)
        case (Unclassified(name, tree, reason),):
            return algebra_page(name, tree, reason)
        case outcomes:
            return workload_page([_line(each) for each in outcomes], explanation.cascades)


def _line(outcome: "Outcome") -> "Line":
    from viewkeep.explain import Analyzed
    from viewkeep.reading import Failed, Unclassified
    from viewkeep.report.workload import analysis_line, failed_line, unsupported_line

    match outcome:
        case Analyzed(_, analysis):
            return analysis_line(analysis)
        case Unclassified(name, _, reason):
            return unsupported_line(name, reason)
        case Failed(name, error):
            return failed_line(name, error)
    assert_never(outcome)


def _document(explanation: "Explanation") -> dict[str, Any]:
    from viewkeep.report.as_json import document

    return document([_json(each) for each in explanation.outcomes], explanation.cascades)


def _json(outcome: "Outcome") -> dict[str, Any]:
    from viewkeep.explain import Analyzed
    from viewkeep.reading import Failed, Unclassified
    from viewkeep.report.as_json import analysis_json, failed_json, unsupported_json

    match outcome:
        case Analyzed(_, analysis):
            return analysis_json(analysis)
        case Unclassified(name, tree, reason):
            return unsupported_json(name, tree, reason)
        case Failed(name, error):
            return failed_json(name, error)
    assert_never(outcome)
