"""Scripts for people, in the algebra of the papers (id_based_ivm, figure 7).

    Δu(parts)    a diff of a table          X ⋈[c] Y   join        σ[c] (X)    select
    Δu7.2        a diff of operator 7       X ⋉[c] Y   semijoin    π[c] (X)    project
    price_pre    a value before the change  X ▷[c] Y   antijoin    γ[k; a] (X) group
    price_post   and after it               X ∪ Y      union all   δ (X)       distinct

A condition that names one column on both sides is that name alone. What sums do about NULL, which
counts as 0 in them, and casts of kept values, which only widen numbers, are not shown.
"""  # noqa: RUF002 - these are the symbols of the papers

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from viewkeep.diffs.model import SIGNS
from viewkeep.diffs.script import Apply, Compute, Script, Statement
from viewkeep.diffs.show.names import relation_text
from viewkeep.diffs.show.operators import TIE, head, simpler
from viewkeep.query.algebra import Node, Scan, Stored
from viewkeep.query.traversal import inputs_of, walk

WIDTH = 76
"""Statements fit on a page of 80 columns, indented twice."""

NARROWEST = 30
"""Operators are not broken into shorter lines than this, however deep they stand."""


def show_script(script: Script, width: int = WIDTH) -> str:
    """All statements, each with what it reads beside diffs."""
    return "\n".join(line for each in script.statements for line in show_lines(each, width))


def show_lines(statement: Statement, width: int = WIDTH) -> list[str]:
    """A statement in lines of at most this width, as far as names allow."""
    match statement:
        case Apply():
            sign = SIGNS[statement.schema.kind]
            return [f"APPLY {sign}  {relation_text(statement.diff)} TO {statement.target}"]
        case Compute():
            return _ScriptLayout(statement.query, width).statement(relation_text(statement.name))


def statement_text(statement: Statement) -> str:
    """A statement in one line."""
    [*lines] = show_lines(statement, 1_000_000)
    return "; ".join(line.strip() for line in lines)


def relations_read(statement: Statement, script: Script) -> tuple[str, ...]:
    """Tables, caches and the view that a statement reads, in order; diffs are at hand anyway."""
    if isinstance(statement, Apply):
        return ()
    materialized_names = {each.name for each in script.materialized}
    return tuple(dict.fromkeys(_read_names(statement.query, materialized_names)))


def _read_names(query: Node, materialized_names: set[str]) -> Iterator[str]:
    for node in walk(query):
        match node:
            case Scan():
                yield node.name if node.state == "post" else f"{node.name}@{node.state}"
            case Stored(name=name) if name in materialized_names:
                yield name


class _ScriptLayout:
    """One query in lines: what fits stands on one, and what is used twice is named."""

    def __init__(self, query: Node, width: int) -> None:
        self._query, self._width = query, width
        uses = Counter(child for node in walk(query) for child in inputs_of(node))
        self._shared = {n for n, count in uses.items() if count > 1 and _is_deep_subtree(n)}
        self._names: dict[Node, str] = {}
        self._lines_of: dict[Node, str] = {}

    def statement(self, name: str) -> list[str]:
        lines, defined = self._definition_lines(f"{name} = ", self._query, self._width), 0
        while defined < len(self._names):
            node, own = list(self._names.items())[defined]
            definition = self._definition_lines(f"where {own} = ", node, self._width - 2)
            lines += [f"  {line}" for line in definition]
            defined += 1
        return [line.replace(TIE, " ") for line in lines]

    def _definition_lines(self, start: str, node: Node, width: int) -> list[str]:
        short = start + _text_without_brackets(self._operator_inline(node))
        return (
            [short]
            if len(short) <= width
            else [start.rstrip(), *self._operator_lines(node, 2, width)]
        )

    def _node_lines(self, node: Node, depth: int, width: int) -> list[str]:
        inline = " " * depth + _text_without_brackets(self._node_inline(node))
        return [inline] if len(inline) <= width else self._operator_lines(node, depth, width)

    def _operator_lines(self, node: Node, depth: int, width: int) -> list[str]:
        """The operator on its lines, and its inputs below and further in."""
        node, indent = simpler(node), " " * depth
        first = wrap(
            head(node),
            max(width, depth + NARROWEST),
            initial_indent=indent,
            subsequent_indent=indent + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        below = [line for c in inputs_of(node) for line in self._node_lines(c, depth + 2, width)]
        return [*first, *below]

    def _node_inline(self, node: Node) -> str:
        if node in self._shared:
            return self._names.setdefault(node, f"s{len(self._names) + 1}")
        return self._operator_inline(node)

    def _operator_inline(self, node: Node) -> str:
        """The operator with its inputs in one line, made once."""
        if node not in self._lines_of:
            self._lines_of[node] = self._node_text(simpler(node))
        return self._lines_of[node]

    def _node_text(self, node: Node) -> str:
        inputs = [self._node_inline(child) for child in inputs_of(node)]
        match inputs:
            case []:
                return head(node)
            case [one]:
                return f"{head(node)} ({_text_without_brackets(one)})"
        return f"({f' {head(node)} '.join(inputs)})"


def _is_deep_subtree(node: Node) -> bool:
    """Whether a subtree is long enough to deserve a name."""
    return any(inputs_of(child) for child in inputs_of(node))


def _text_without_brackets(text: str) -> str:
    """Text without the brackets around all of it: those of its operator will do."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if position == len(text) - 1 and text[0] == "(" else text
    return text
