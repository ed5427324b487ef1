"""The plan of a view as its delta script sees it: IDs, what is kept and why, rules and diffs
(id_based_ivm, figures 5 and 6)."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from viewkeep.diffs.generate import GeneratedScript
from viewkeep.diffs.model import DELETE, INSERT
from viewkeep.diffs.passes.instantiate import BLOCKING, RuleDag
from viewkeep.diffs.rules.common import AFTER, NEW, POST, PRE, Piece, Subview
from viewkeep.diffs.script import BaseDiff, Materialized
from viewkeep.diffs.show.names import column_text, relation_text
from viewkeep.diffs.show.operators import details
from viewkeep.query.algebra import Node, Stored
from viewkeep.query.traversal import inputs_of, walk
from viewkeep.report.script.formulas import Symbols, plain_columns
from viewkeep.report.style import FAIR, GOOD, HEADING, section

Json = dict[str, Any]

STATES = {PRE: "before", POST: "after", NEW: "after", AFTER: "after"}
"""Rows before and after the changes, as rules ask for them (diffs/rules/common.py)."""


def operator_text(node: Node) -> str:
    """The kind of an operator, in a word, and what it does."""
    return f"{type(node).__name__} {details(node)}".rstrip()


def kept_nodes(generated: GeneratedScript) -> dict[Node, Materialized]:
    """The operators whose rows are kept."""
    nodes = generated.plan.nodes
    caches = {nodes[c.operator]: c for c in generated.script.caches if c.operator is not None}
    return caches | {generated.plan.root: generated.script.view}


# --- operators ------------------------------------------------------------------------------------


def plan_section(generated: GeneratedScript) -> RenderableType:
    """Every operator with its number, its IDs, and what is kept of it."""
    tree = _operator_tree(generated, generated.plan.root, set())
    return section("Plan with the IDs of every operator", tree)


def _operator_tree(generated: GeneratedScript, node: Node, nodes_above: set[Node]) -> Tree:
    number = generated.plan.nodes.index(node)
    if node in nodes_above and inputs_of(node):
        return Tree(Text(f"{number} (above)"), guide_style="dim")
    nodes_above.add(node)
    tree = Tree(_operator_label(generated, node, number), guide_style="dim")
    for child in inputs_of(node):
        tree.children.append(_operator_tree(generated, child, nodes_above))
    return tree


def _operator_label(generated: GeneratedScript, node: Node, number: int) -> RenderableType:
    ids = ", ".join(map(column_text, generated.plan.ids[node])) or "none: a single row"
    label = Text.assemble((f"{number} ", "dim"), operator_text(node), "\n", (f"IDs: {ids}", "dim"))
    cache = kept_nodes(generated).get(node)
    if cache is not None:
        why = "" if cache is generated.script.view else f": {cache.why}"
        label.append(f"\nkept as {cache.name}{why}", GOOD)
    return Symbols(label)


def plan_json(generated: GeneratedScript) -> list[Json]:
    """The operators, inputs first; positions are their numbers."""
    plan, caches = generated.plan, kept_nodes(generated)
    return [
        {
            "operator": operator_text(node),
            "inputs": [plan.nodes.index(child) for child in inputs_of(node)],
            "ids": [column_text(name) for name in plan.ids[node]],
            "kept": caches[node].name if node in caches else None,
        }
        for node in plan.nodes
    ]


# --- diffs of tables ------------------------------------------------------------------------------


def change_text(diff: BaseDiff) -> str:
    """What a diff of a table is about: `insert`, `delete`, or `update of price`."""
    columns = "" if diff.schema.kind in (INSERT, DELETE) else ", ".join(diff.schema.changed)
    return f"{diff.schema.kind} of {columns}" if columns else diff.schema.kind


def diffs_section(generated: GeneratedScript) -> RenderableType:
    """The diffs that the view wants: updates by the columns that conditions read together."""
    table = plain_columns("table", "change", "diff")
    for diff in generated.script.diffs:
        columns = ", ".join(map(column_text, diff.schema.columns))
        diff_text = Symbols(Text(f"{relation_text(diff.name)}: {columns}"))
        table.add_row(Text(diff.table), Text(change_text(diff)), diff_text)
    return section("Diffs of tables", table)


# --- rules ----------------------------------------------------------------------------------------


def rules_section(generated: GeneratedScript) -> RenderableType:
    """Which rule of which operator turns which diff into which, from the tables up."""
    return section("Rules, from the tables up", *_rules_by_operator(generated.dag))


def _rules_by_operator(dag: RuleDag) -> Iterator[RenderableType]:
    for number, node in enumerate(dag.plan.nodes):
        pieces = [piece for piece in dag.pieces if piece.operator == number]
        if not pieces:
            continue
        title = Text.assemble((f"{number} ", "dim"), (type(node).__name__, HEADING))
        if isinstance(node, BLOCKING):
            title.append("  blocking: it waits for all changes of its input", FAIR)
        yield title
        yield _rules_table(pieces)


def _rules_table(pieces: list[Piece]) -> Table:
    table = plain_columns()
    for piece in pieces:
        diff, diffs = relation_text(piece.name), ", ".join(_diffs_read(piece))
        rows = ", ".join(_rows_asked_by_rule(piece))
        row_text = f", with rows of {rows}" if rows else ""
        table.add_row(
            Symbols(Text(f"  {diff}")), Symbols(Text(f"by {piece.rule}, from {diffs}{row_text}"))
        )
    return table


def rules_json(dag: RuleDag) -> list[Json]:
    """The instantiated rules in the order in which they can run."""
    return [
        {
            "diff": relation_text(piece.name),
            "operator": piece.operator,
            "rule": piece.rule,
            "from": _diffs_read(piece),
            "rows_of": _rows_asked_by_rule(piece),
            "blocking": isinstance(dag.plan.nodes[piece.operator], BLOCKING),
        }
        for piece in dag.pieces
    ]


def _relations_read(piece: Piece) -> list[Stored]:
    by_name = {node.name: node for node in walk(piece.query) if isinstance(node, Stored)}
    return list(by_name.values())


def _diffs_read(piece: Piece) -> list[str]:
    read = _relations_read(piece)
    return [relation_text(each.name) for each in read if not isinstance(each, Subview)]


def _rows_asked_by_rule(piece: Piece) -> list[str]:
    """Rows that a rule asks for: `6 before`, of the output of operator 6 before the changes."""
    subviews = [each for each in _relations_read(piece) if isinstance(each, Subview)]
    return [f"{each.operator} {_subview_state(each)}" for each in subviews]


def _subview_state(subview: Subview) -> str:
    """A state in a word, and which rows are meant if not all."""
    word = STATES[subview.state]
    return f"{word} ({relation_text(subview.rows)})" if subview.rows else word
