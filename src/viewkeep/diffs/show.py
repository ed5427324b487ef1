"""Scripts for people, in the algebra of the papers (id_based_ivm, figure 7).

    Δu(parts)    a diff of a table          X ⋈[c] Y   join        σ[c] (X)    select
    Δu7.2        a diff of operator 7       X ⋉[c] Y   semijoin    π[c] (X)    project
    price_pre    a value before the change  X ▷[c] Y   antijoin    γ[k; a] (X) group
    price_post   and after it               X ∪ Y      union all   δ (X)       distinct

A condition that names one column on both sides is that name alone. What sums do about NULL, which
counts as 0 in them, and casts of kept values, which only widen numbers, are not shown.
"""  # noqa: RUF002 - these are the symbols of the papers

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from viewkeep.diffs.build import FALSE, KEY, project, renamed
from viewkeep.diffs.identify import BRANCH, ROWS
from viewkeep.diffs.model import SIGNS
from viewkeep.diffs.script import Apply, Compute, Script, Statement
from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Output,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    children,
    walk,
)
from viewkeep.query.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    literal,
    substitute,
)

WIDTH = 76
"""Statements fit on a page of 80 columns, indented twice."""

NARROWEST = 30
"""Operators are not broken into shorter lines than this, however deep they stand."""

SYMBOLS: Mapping[type[Node], str] = {
    Select: "\N{GREEK SMALL LETTER SIGMA}",
    Project: "π",
    Join: "⋈",
    SemiJoin: "⋉",
    AntiJoin: "▷",
    UnionAll: "\N{UNION}",
    GroupBy: "\N{GREEK SMALL LETTER GAMMA}",
    Distinct: "δ",
}

TIE = "\N{NO-BREAK SPACE}"
LONG = 56
"""Columns with longer definitions are broken at any blank."""

_COMPARISON = re.compile(r" (?:[=<>]|<=|>=|<>|is not|is) ")
_DIFF = re.compile(r"d([+u-])(?:#(?=\d+\.\d+$)|(?=\d*\())")
_HELPER = re.compile(r"t#(?=\d+\.\d+$)")
_MENTIONED = re.compile(r"(?<!\w)(?:d[+u-](?:#\d+\.\d+|\d*\([^)\s]*)|t#\d+\.\d+)")
_WORDS = str.maketrans(
    {symbol: kind.__name__.lower() for kind, symbol in SYMBOLS.items()} | {"Δ": "d", "→": "->"}
)
_SUFFIXES = {KEY: "{}", "#pre": "{}_pre", "#post": "{}_post", "#by": "Δ{}"}
_KEPT = {"#count": "count({})", "#sum": "sum({})"}


# --- names ----------------------------------------------------------------------------------------


def relation_text(name: str) -> str:
    """A diff or a helper as the papers write it; other names as they are.

    >>> relation_text("du#7.2"), relation_text("d+(parts)"), relation_text("t#7.1")
    ('Δu7.2', 'Δ+(parts)', 't7.1')
    """
    return _HELPER.sub("t", _DIFF.sub(r"Δ\1", name, count=1), count=1)


def column_text(name: str) -> str:
    """A column, with a name that can be read where Viewkeep added it.

    >>> column_text("price#pre"), column_text("cost#count#by"), column_text("#rows#post")
    ('price_pre', 'Δcount(cost)', 'count(*)_post')
    """
    if name == ROWS:
        return "count(*)"
    for ending, shown in (_SUFFIXES | _KEPT).items():
        if name.endswith(ending) and name != ending:
            return shown.format(column_text(name.removesuffix(ending)))
    return name.removeprefix("#") if name == BRANCH or name.startswith("#id") else name


def note_text(note: str) -> str:
    """A remark of a pass, with the names of diffs as scripts show them.

    >>> note_text("t#6.5: du(parts) tells its rows")
    't6.5: Δu(parts) tells its rows'
    """
    return _MENTIONED.sub(lambda found: relation_text(found[0]), note)


def ascii_text(text: str) -> str:
    """The same for screens without the symbols.

    >>> ascii_text("Δu7.2 = σ[x] (Δu(parts))")
    'du7.2 = select[x] (du(parts))'
    """  # noqa: RUF002 - see above
    return text.translate(_WORDS)


def expression_text(expression: Expression) -> str:
    """An expression over readable names.

    >>> expression_text(Call("not", (Call("<=>", (Column("x#pre"), Column("x#post"))),)))
    'x_pre is not x_post'
    """
    return str(_readable(expression))


def condition_text(condition: Expression) -> str:
    """A condition; an equality of two columns with the same name is that name."""
    match conjuncts(condition):
        case (Call("or"),):
            return expression_text(condition)
        case several:
            parts = list(map(_conjunct, several))
    columns = map(column_text, columns_of(condition))
    return (", " if set(parts) <= set(columns) else " and ").join(parts)


def _conjunct(condition: Expression) -> str:
    match condition:
        case Call("=" | "<=>", (Column(left), Column(right))):
            first, second = column_text(left), column_text(right)
            return first if first == second else f"{first} = {second}"
        case Call("or"):
            return f"({expression_text(condition)})"
    return expression_text(condition)


def _readable(expression: Expression) -> Expression:
    """The expression without what only machines need."""
    match _plain(expression):
        case Column(name):
            return _Bare(column_text(name))
        case Call(function, arguments):
            return _call(function, tuple(map(_readable, arguments)))
        case Cast(argument, kind):
            return Cast(_readable(argument), kind)
        case other:
            return other


def _plain(expression: Expression) -> Expression:
    """NULL as 0 and wider numbers are left to the imagination, where sums are kept."""
    match expression:
        case Cast(argument=Literal()):
            return expression.argument
        case Cast(argument=Call("case", (Call("isnull", _), _, _))):
            return expression.argument
        case Cast(argument=argument) if _only_kept(argument):
            return _plain(argument)
        case Call("coalesce", (value, zero)) if _is_zero(zero) and _only_kept(value):
            return _plain(value)
        case Call("coalesce", (Cast(argument=Literal() as value), zero)) if _is_zero(zero):
            return value
    return expression


def _only_kept(expression: Expression) -> bool:
    names = columns_of(expression)
    return bool(names) and all("#" in name for name in names)


def _is_zero(expression: Expression) -> bool:
    return isinstance(expression, Cast) and expression.argument == literal(0)


def _call(function: str, arguments: tuple[Expression, ...]) -> Expression:
    """Functions by the names that people have for them; only printed, never computed."""
    match function, arguments:
        case "case", (Call("isnull", (value,)), other, same) if value == same:
            return Call("coalesce", (value, other))
        case "case", (_, _, _):
            return Call("if", arguments)
        case "not", (_Infix("is", both),):
            return _Infix("is not", both)
        case "<=>", _:
            return _Infix("is", arguments)
        case "coalesce", (value, other) if other == FALSE:
            return _Infix("is", (value, TRUE))
    return Call(function, arguments)


@dataclass(frozen=True, slots=True)
class _Infix(Call):
    """`x is y`, where NULL is NULL."""

    def __str__(self) -> str:
        texts = [f"({a})" if isinstance(a, Call) else str(a) for a in self.arguments]
        return f" {self.function} ".join(texts)


@dataclass(frozen=True, slots=True)
class _Bare(Column):
    """A column without quotes."""

    def __str__(self) -> str:
        return self.name


# --- operators ------------------------------------------------------------------------------------


def details(node: Node) -> str:
    """What an operator does, without its inputs: the index of its symbol."""
    return _tied(node).replace(TIE, " ")


def _tied(node: Node) -> str:
    """The same, with blanks where a line should not be broken."""
    match node:
        case Scan():
            state = "" if node.state == "post" else f"@{node.state}"
            return f"{node.name}{state}{_alias(node)}"
        case Stored():
            return relation_text(node.name)
        case Select() | SemiJoin() | AntiJoin() | Join():
            text = "" if node.condition == TRUE else condition_text(node.condition)
            return _COMPARISON.sub(lambda found: found[0].replace(" ", TIE), text)
        case Project():
            return _listed(map(_output, node.outputs))
        case GroupBy():
            keys = _listed(map(column_text, node.keys))
            return "; ".join(filter(None, (keys, _listed(map(_aggregate, node.aggregates)))))
        case UnionAll() | Distinct():
            return ""


def _listed(items: Iterable[str]) -> str:
    """Items with commas; lines are broken between short ones."""
    return ", ".join(i.replace(" ", TIE) if len(i) < LONG else i for i in items)


def _alias(node: Scan) -> str:
    return f" {node.alias}" if node.alias != node.name else ""


def _output(output: Output) -> str:
    return _named(expression_text(output.expression), output.name)


def _aggregate(aggregate: AggregateColumn) -> str:
    argument = "*" if aggregate.argument is None else expression_text(aggregate.argument)
    return _named(f"{aggregate.function}({argument})", aggregate.name)


def _named(text: str, name: str) -> str:
    shown = column_text(name)
    return text if text == shown else f"{text}→{shown}"


def _head(node: Node) -> str:
    inside = _tied(node)
    if isinstance(node, Scan | Stored):
        return inside
    return f"{SYMBOLS[type(node)]}[{inside}]" if inside else SYMBOLS[type(node)]


def _simpler(node: Node) -> Node:
    """The same for a reader: columns that rows are matched by need no projection of their own."""
    node = _merged(node)
    match node:
        case Project(child=child) if _is_same(node):
            return _simpler(child)
        case SemiJoin() | AntiJoin():
            return _keys_in_condition(node)
    return node


def _merged(node: Node) -> Node:
    """A projection of renamed columns as one projection."""
    match node:
        case Project(child=Project(child=below, outputs=inner)) if _renames(inner):
            return _merged(Project(below, _through(node.outputs, inner)))
    return node


def _is_same(node: Project) -> bool:
    """Whether a projection only drops the marks of columns that rows are matched by."""
    shown = [column_text(o.name) for o in node.outputs if isinstance(o.expression, Column)]
    return shown == [column_text(name) for name in node.child.names] and all(
        column_text(o.name) == expression_text(o.expression) for o in node.outputs
    )


def _renames(outputs: Sequence[Output]) -> bool:
    return all(isinstance(o.expression, Column) for o in outputs)


def _through(outer: Sequence[Output], inner: Sequence[Output]) -> tuple[Output, ...]:
    below = {o.name: o.expression for o in inner}
    return tuple(Output(o.name, substitute(o.expression, lambda c: below[c.name])) for o in outer)


def _keys_in_condition(node: SemiJoin | AntiJoin) -> Node:
    """`X ⋉[x = y] Y` for a right side that only renames y to what the condition reads."""
    right = _merged(node.right)
    if not isinstance(right, Project) or not _renames(right.outputs):
        return node
    taken, names = set(node.left.names), right.child.names
    marked = {name: f"{name}{KEY}" if name in taken else name for name in names}
    below = {o.name: renamed(o.expression, marked) for o in right.outputs}
    condition = substitute(node.condition, lambda column: below.get(column.name, column))
    child = project(right.child, {own: Column(name) for name, own in marked.items()})
    return replace(node, right=child, condition=condition)


# --- statements -----------------------------------------------------------------------------------


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
            return _Layout(statement.query, width).statement(relation_text(statement.name))


def statement_text(statement: Statement) -> str:
    """A statement in one line."""
    [*lines] = show_lines(statement, 1_000_000)
    return "; ".join(line.strip() for line in lines)


def reads(statement: Statement, script: Script) -> tuple[str, ...]:
    """Tables, caches and the view that a statement reads, in order; diffs are at hand anyway."""
    if isinstance(statement, Apply):
        return ()
    kept = {each.name for each in script.materialized}
    return tuple(dict.fromkeys(_read_names(statement.query, kept)))


def _read_names(query: Node, kept: set[str]) -> Iterator[str]:
    for node in walk(query):
        match node:
            case Scan():
                yield node.name if node.state == "post" else f"{node.name}@{node.state}"
            case Stored(name=name) if name in kept:
                yield name


class _Layout:
    """One query in lines: what fits stands on one, and what is used twice is named."""

    def __init__(self, query: Node, width: int) -> None:
        self._query, self._width = query, width
        uses = Counter(child for node in walk(query) for child in children(node))
        self._shared = {n for n, count in uses.items() if count > 1 and _is_deep(n)}
        self._names: dict[Node, str] = {}
        self._known: dict[Node, str] = {}

    def statement(self, name: str) -> list[str]:
        lines, defined = self._definition(f"{name} = ", self._query, self._width), 0
        while defined < len(self._names):
            node, own = list(self._names.items())[defined]
            found = self._definition(f"where {own} = ", node, self._width - 2)
            lines += [f"  {line}" for line in found]
            defined += 1
        return [line.replace(TIE, " ") for line in lines]

    def _definition(self, start: str, node: Node, width: int) -> list[str]:
        short = start + _unbracketed(self._operator(node))
        return [short] if len(short) <= width else [start.rstrip(), *self._broken(node, 2, width)]

    def _lines(self, node: Node, depth: int, width: int) -> list[str]:
        inline = " " * depth + _unbracketed(self._inline(node))
        return [inline] if len(inline) <= width else self._broken(node, depth, width)

    def _broken(self, node: Node, depth: int, width: int) -> list[str]:
        """The operator on its lines, and its inputs below and further in."""
        node, indent = _simpler(node), " " * depth
        head = wrap(
            _head(node),
            max(width, depth + NARROWEST),
            initial_indent=indent,
            subsequent_indent=indent + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        below = [line for c in children(node) for line in self._lines(c, depth + 2, width)]
        return [*head, *below]

    def _inline(self, node: Node) -> str:
        if node in self._shared:
            return self._names.setdefault(node, f"s{len(self._names) + 1}")
        return self._operator(node)

    def _operator(self, node: Node) -> str:
        """The operator with its inputs in one line, made once."""
        if node not in self._known:
            self._known[node] = self._made(_simpler(node))
        return self._known[node]

    def _made(self, node: Node) -> str:
        inputs = [self._inline(child) for child in children(node)]
        match inputs:
            case []:
                return _head(node)
            case [one]:
                return f"{_head(node)} ({_unbracketed(one)})"
        return f"({f' {_head(node)} '.join(inputs)})"


def _is_deep(node: Node) -> bool:
    """Whether a subtree is long enough to deserve a name."""
    return any(children(child) for child in children(node))


def _unbracketed(text: str) -> str:
    """Text without the brackets around all of it: those of its operator will do."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if position == len(text) - 1 and text[0] == "(" else text
    return text
