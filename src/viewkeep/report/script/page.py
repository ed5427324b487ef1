"""The delta script of an SQL view: what is kept, what each change reads, and the statements.

The page shows the very script that is run. What would fill it is counted; `full` shows all: the
rules, the script before minimization, and why accesses could go (id_based_ivm, section 4).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from viewkeep.diffs.generate import GeneratedScript, generate
from viewkeep.diffs.script import Apply, BaseDiff, Compute, Script, Statement
from viewkeep.diffs.show.names import column_text, note_text, relation_text
from viewkeep.diffs.show.operators import details
from viewkeep.diffs.show.script import relations_read, show_lines, statement_text
from viewkeep.errors import ViewkeepError
from viewkeep.query.algebra import Node, Scan, Stored
from viewkeep.query.traversal import walk
from viewkeep.report.script.changes import read_change_kinds
from viewkeep.report.script.formulas import Formulas, Symbols, indented_line, plain_columns
from viewkeep.report.script.id_plan import (
    change_text,
    diffs_section,
    plan_json,
    plan_section,
    rules_json,
    rules_section,
)
from viewkeep.report.style import BAD, GOOD, section

MOST_LINES = 40
"""Longer scripts are only counted, unless all is asked for."""

NO_TABLE = "no table"
READS = "  -- reads "
PAGE = 76

Json = dict[str, Any]


@dataclass(frozen=True)
class ScriptOptions:
    """Which script, and how much of it: `changes` like `parts.price`, `parts+`, `parts-`."""

    changes: tuple[str, ...] = ()
    tuple_based: bool = False
    full: bool = False


DEFAULT = ScriptOptions()


@lru_cache(maxsize=1)  # a page and its picture show the same one
def delta_script(tree: Node, options: ScriptOptions) -> GeneratedScript:
    """What every pass makes of a view; an error says why there is no script."""
    changes = read_change_kinds(tree, options.changes) if options.changes else None
    return generate(tree, changes, options.tuple_based)


# --- for people -----------------------------------------------------------------------------------


def script_sections(tree: Node, options: ScriptOptions) -> Iterator[RenderableType]:
    """How the view is maintained, or why it cannot be."""
    try:
        generated = delta_script(tree, options)
    except ViewkeepError as problem:
        if options.changes:
            raise  # they may be misspelt
        yield section("Operators", *map(indented_line, str(tree).splitlines()))
        yield section("Maintenance", Text("No delta script: ", BAD).append(f"{problem}."))
        return
    yield plan_section(generated)
    yield diffs_section(generated)
    yield _reads_section(generated.script)
    if options.full:
        yield rules_section(generated)
        yield _script_section("Script before minimization", generated.composed)
        yield _notes_section(generated.script)
    yield _short_script(generated.script, options)


def _short_script(script: Script, options: ScriptOptions) -> RenderableType:
    count = len(script.statements)
    kind = "tuple-based" if options.tuple_based else "ID-based"
    title = f"Delta script ({kind}, {count} statements)"
    short = count <= MOST_LINES and len(script_lines(script, PAGE)) <= MOST_LINES
    if options.full or short:
        return _script_section(title, script)
    computes = sum(1 for _ in script.computes())
    digest = (
        f"{computes} queries over diffs, then {count - computes} changes of what is kept. "
        "--script shows them; --changes parts.price, parts+ or parts- shows those for some "
        "changes."
    )
    return section(title, Text(digest))


def _script_section(title: str, script: Script) -> RenderableType:
    return section(title, Formulas(lambda width: script_lines(script, width)))


def script_lines(script: Script, width: int) -> list[str]:
    """All statements, each with the tables, caches and views that it reads."""
    return [line for each in script.statements for line in _statement_lines(each, script, width)]


def _statement_lines(statement: Statement, script: Script, width: int) -> list[str]:
    lines, names = show_lines(statement, width), ", ".join(relations_read(statement, script))
    if not names:
        return lines
    if len(lines) == 1 and len(lines[0]) + len(READS) + len(names) <= width:
        return [f"{lines[0]}{READS}{names}"]
    return [*lines, f"{READS}{names}"]


def _notes_section(script: Script) -> RenderableType:
    notes = [f"{note_text(note)}." for note in script.notes] or ["None."]
    body = (Symbols(Text(note)) for note in notes)
    return section("Accesses that minimization removed", *body)


# --- what changes read ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Reads:
    """What the statements that depend on one diff of a table read."""

    diff: BaseDiff
    tables: tuple[str, ...]
    kept: tuple[str, ...]


def reads_by_change(script: Script) -> list[Reads]:
    """For each diff, the tables and the kept relations that its statements read."""
    stored_names = {each.name for each in script.materialized}
    computes = [(each, *_relations_of_statement(each)) for each in script.computes()]
    by_change: list[Reads] = []
    for diff in script.diffs:
        reached = {diff.name}
        tables: dict[str, None] = {}
        relations: dict[str, None] = {}
        for statement, scans, names in computes:
            if reached & names.keys():
                reached.add(statement.name)
                tables |= scans
                relations |= {name: None for name in names if name in stored_names}
        by_change.append(Reads(diff, tuple(tables), tuple(relations)))
    return by_change


def _relations_of_statement(statement: Compute) -> tuple[dict[str, None], dict[str, None]]:
    """The tables that a statement scans and the relations that it reads, in order."""
    nodes = list(walk(statement.query))
    scans = dict.fromkeys(node.name for node in nodes if isinstance(node, Scan))
    return scans, dict.fromkeys(node.name for node in nodes if isinstance(node, Stored))


def _reads_section(script: Script) -> RenderableType:
    table = plain_columns("table", "change", "reads tables", "reads kept")
    lines = reads_by_change(script)
    for each in lines:
        tables = Text(", ".join(each.tables)) if each.tables else Text(NO_TABLE, GOOD)
        relations = Text(", ".join(each.kept) or "nothing")
        table.add_row(Text(each.diff.table), Text(change_text(each.diff)), tables, relations)
    body: list[RenderableType] = [table]
    if not any(each.tables for each in lines):
        body.append(Text("The script touches no base table.", GOOD))
    return section("What each change reads, besides diffs", *body)


# --- for programs ---------------------------------------------------------------------------------


def script_json(tree: Node, options: ScriptOptions) -> Json:
    """The fields `script` and `script_problem`, of which one is null."""
    try:
        generated = delta_script(tree, options)
    except ViewkeepError as problem:
        if options.changes:
            raise
        return {"script": None, "script_problem": str(problem)}
    return {"script": _generated_json(generated, options), "script_problem": None}


def _generated_json(generated: GeneratedScript, options: ScriptOptions) -> Json:
    script = generated.script
    return {
        "tuple_based": options.tuple_based,
        "plan": plan_json(generated),
        "caches": [
            {
                "name": each.name,
                "ids": [column_text(name) for name in each.ids],
                "operator": f"{type(each.definition).__name__} {details(each.definition)}".strip(),
                "reason": each.why,
            }
            for each in script.caches
        ],
        "diffs": [_diff_json(each) for each in reads_by_change(script)],
        "rules": rules_json(generated.dag),
        "statements": [_statement_json(each, script) for each in script.statements],
        "before_minimization": [statement_text(each) for each in generated.composed.statements],
        "notes": [note_text(note) for note in script.notes],
    }


def _diff_json(each: Reads) -> Json:
    schema = each.diff.schema
    return {
        "diff": relation_text(each.diff.name),
        "table": each.diff.table,
        "kind": schema.kind,
        "columns": _column_texts(schema.columns),
        "changed": list(schema.changed) if schema.kind == "update" else [],
        "reads_tables": list(each.tables),
        "reads_kept": list(each.kept),
    }


def _statement_json(statement: Statement, script: Script) -> Json:
    applied = isinstance(statement, Apply)
    return {
        "kind": "apply" if applied else "compute",
        "diff": relation_text(statement.diff if isinstance(statement, Apply) else statement.name),
        "target": statement.target if isinstance(statement, Apply) else None,
        "text": statement_text(statement),
        "reads": list(relations_read(statement, script)),
    }


def _column_texts(names: Sequence[str]) -> list[str]:
    return [column_text(name) for name in names]
