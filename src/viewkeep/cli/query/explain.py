"""`viewkeep explain`: how fast a view can be maintained, and why not faster."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, assert_never

import typer

from viewkeep.cli.lake.open_lake import LakePath
from viewkeep.cli.options import (
    Degrees,
    Dependencies,
    ForeignKeys,
    InsertOnly,
    Keys,
    SchemaFile,
    StaticRelations,
)
from viewkeep.cli.query.explain_view import draw, explain_view, view_of_lake
from viewkeep.cli.screen import show, write
from viewkeep.cli.source import read_argument, read_file
from viewkeep.errors import ViewkeepError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from viewkeep.explain import Explanation, Outcome
    from viewkeep.reading import Node
    from viewkeep.report.query.workload import Line
    from viewkeep.report.script.page import ScriptOptions

SOME_FAILED = 1
"""The exit code when some of several queries are not valid."""

ConstraintTexts = tuple[
    Sequence[str], Sequence[str], Sequence[str], Sequence[str], Sequence[str], bool
]
"""The texts of constraints: dependencies, keys, foreign keys, degrees, static, inserts only."""


class Details(NamedTuple):
    """Which delta script, and how much of it."""

    changes: tuple[str, ...]
    tuple_based: bool
    full: bool
    tree: "Node | None"

    @property
    def options(self) -> "ScriptOptions":
        from viewkeep.report.script.page import ScriptOptions

        return ScriptOptions(self.changes, self.tuple_based, self.full)


def explain(
    query: Annotated[
        str,
        typer.Argument(
            help="A query, an SQL view, a file with one or many of them, - for standard input, or "
            "the name of a view in a lake.",
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
    script: Annotated[
        bool, typer.Option("--script", metavar="", help="Show the whole delta script of a view.")
    ] = False,
    changes: Annotated[
        list[str] | None,
        typer.Option(help="Change that the script is for.", metavar='"T.column", "T+", "T-"'),
    ] = None,
    tuple_based: Annotated[
        bool, typer.Option("--tuple", metavar="", help="Use tuple-based diffs in the script.")
    ] = False,
    svg: Annotated[
        str | None, typer.Option(help="Draw the plan of the script.", metavar="FILE")
    ] = None,
    lake: LakePath = None,
) -> None:
    """Say how fast a view can be maintained, and why not faster.

    Options that state a constraint may be repeated.

    **Examples**

    - viewkeep explain "Q(a, c) = R(a, b) * S(b, c)"

    - viewkeep explain "Q(a) = R(a, b) * S(b)" --fd "b -> a"

    - viewkeep explain "Q(| a, b, c) = E(a, b) * E(b, c) * E(c, a)"

    - viewkeep explain cost.sql --schema tables.sql

    - viewkeep explain queries.cq --static T --json

    - viewkeep explain view.sql --script --changes parts.price --svg plan.svg

    - viewkeep explain cost --lake /data/lake
    """
    place = view_of_lake(query, lake)
    if place is not None:
        explain_view(query, place, changes or (), tuple_based, script, svg, as_json)
        return
    constraint_texts = (
        fd or (),
        key or (),
        foreign_key or (),
        degree or (),
        static or (),
        insert_only,
    )
    explanation, read_tree = _read_and_explain(query, schema, constraint_texts)
    about_script = (script, bool(changes), tuple_based, svg is not None)
    tree = _tree_of_only_view(explanation, read_tree) if any(about_script) else None
    details = Details(tuple(changes or ()), tuple_based, script, tree)
    if svg is not None:
        assert tree is not None
        draw(explanation.outcomes[0].name, tree, details.options, svg)
    if as_json:
        write(json.dumps(_explanation_document(explanation, details), indent=2) + "\n")
    else:
        show(_explanation_page(explanation, details))
    if explanation.failed:
        raise typer.Exit(SOME_FAILED)


ReadTree = Callable[[], "Node"]
"""Translates the only view into operators."""


def _read_and_explain(
    query: str, schema: str | None, constraint_texts: ConstraintTexts
) -> tuple["Explanation", ReadTree]:
    """Read query, schema and constraints, then explain. Imports are here to keep `--help` fast."""
    from viewkeep.explain import explain
    from viewkeep.reading import read_constraints, read_tables, read_view

    constraints = read_constraints(*constraint_texts)
    source = read_argument(query)
    tables = None
    if schema is not None:
        schema_source = read_file(schema)
        with schema_source.named_in_errors():
            tables = read_tables(schema_source.text)
    with source.named_in_errors():
        explanation = explain(source.text, tables, constraints)
    return explanation, lambda: read_view(source.text, tables or {})


def _tree_of_only_view(explanation: "Explanation", read_tree: ReadTree) -> "Node":
    """The operators of the only view; options about a script are for one view."""
    if len(explanation.outcomes) > 1:
        names = ", ".join(each.name for each in explanation.outcomes)
        raise ViewkeepError(
            "--script, --changes, --tuple and --svg are for one view, but the text has "
            f"{len(explanation.outcomes)}: {names}"
        )
    return read_tree()


def _explanation_page(explanation: "Explanation", details: Details) -> "RenderableType":
    """One query in full, several in a table."""
    from rich.console import Group

    from viewkeep.explain import AnalyzedQuery
    from viewkeep.maintainer import engine_obstacle
    from viewkeep.reading import UnclassifiedView
    from viewkeep.report.query.page import algebra_page, analysis_page
    from viewkeep.report.query.workload import workload_page
    from viewkeep.report.script.page import script_sections

    match explanation.outcomes:
        case (AnalyzedQuery(_, analysis),):
            page = analysis_page(analysis, engine_obstacle(analysis.query))
            if details.tree is None:
                return page
            return Group(page, *script_sections(details.tree, details.options))
        case (UnclassifiedView(name, tree, reason),):
            return algebra_page(name, tree, reason, details.options)
        case outcomes:
            return workload_page([_outcome_line(each) for each in outcomes], explanation.cascades)


def _outcome_line(outcome: "Outcome") -> "Line":
    from viewkeep.explain import AnalyzedQuery
    from viewkeep.reading import FailedStatement, UnclassifiedView
    from viewkeep.report.query.workload import analysis_line, failed_line, unsupported_line

    match outcome:
        case AnalyzedQuery(_, analysis):
            return analysis_line(analysis)
        case UnclassifiedView(name, _, reason):
            return unsupported_line(name, reason)
        case FailedStatement(name, error):
            return failed_line(name, error)
    assert_never(outcome)


def _explanation_document(explanation: "Explanation", details: Details) -> dict[str, Any]:
    from viewkeep.report.query.as_json import document

    return document(
        [_outcome_json(each, details) for each in explanation.outcomes], explanation.cascades
    )


def _outcome_json(outcome: "Outcome", details: Details) -> dict[str, Any]:
    from viewkeep.explain import AnalyzedQuery
    from viewkeep.maintainer import engine_obstacle
    from viewkeep.reading import FailedStatement, UnclassifiedView
    from viewkeep.report.query.as_json import analysis_json, failed_json, unsupported_json
    from viewkeep.report.script.page import script_json

    match outcome:
        case AnalyzedQuery(_, analysis):
            document = analysis_json(analysis, engine_obstacle(analysis.query))
            return (
                document | script_json(details.tree, details.options) if details.tree else document
            )
        case UnclassifiedView(name, tree, reason):
            script = script_json(tree, details.options)
            return {**unsupported_json(name, tree, reason), **script}
        case FailedStatement(name, error):
            return failed_json(name, error)
    assert_never(outcome)
