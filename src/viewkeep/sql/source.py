"""SQL text with its tokens: parsing through sqlglot, and exact positions for errors."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Protocol

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError as SyntaxProblem
from sqlglot.errors import TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from viewkeep.errors import ParseError, TypeRuleError, UnreadableError, UnsupportedError
from viewkeep.query.types.data_types import Type
from viewkeep.sql.token_rules import check_tokens, deepest

_SPECIAL_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "SUBSTR", "TRIM")


class ViewDialect(Spark):
    """Spark SQL in which every function call keeps the name and position it is written with."""

    SUPPORTS_USER_DEFINED_TYPES = True  # so that an unknown type is named as one

    class Parser(SparkParser):
        """Without sqlglot's function table: `query/types/functions.py` says what a name means."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: SparkParser.FUNCTION_PARSERS[name] for name in _SPECIAL_SYNTAX
        }

        def _warn_unsupported(self) -> None:
            """No log line: what is not a query is refused with an error of its own."""

        def expression(
            self, instance: Any, token: Token | None = None, comments: list[str] | None = None
        ) -> Any:
            """The node, which also knows the last token that it was read from."""
            node = super().expression(instance, token, comments)
            if self._prev:
                node.meta.setdefault(LAST, self._prev.start)
            return node

        def _parse_function_call(self, *arguments: Any, **options: Any) -> exp.Expr | None:
            """The call, which starts where its name does, whatever node sqlglot makes of it."""
            token = self._curr
            return _node_starting_at(super()._parse_function_call(*arguments, **options), token)

        def _parse_types(self, *arguments: Any, **options: Any) -> exp.Expr | None:
            """The type, with its place."""
            token = self._curr
            read = super()._parse_types(*arguments, **options)
            return _node_starting_at(read, token) if isinstance(read, exp.DataType) else read


def _node_starting_at(node: exp.Expr | None, token: Token | None) -> exp.Expr | None:
    if node is not None and token:
        node.meta.setdefault(START, token.start)
    return node


START, LAST = "start", "last"
"""What a node remembers of its place: where it starts, else the start of its last token."""


class SparkTypes(Protocol):
    """What knows the types of expressions that only Spark computes."""

    @property
    def functions(self) -> Collection[str]:
        """The functions of the user that always give the same result for the same data."""

    @property
    def aggregates(self) -> Collection[str]:
        """The aggregates of the user, which are deterministic too."""

    def type_of(self, text: str, arguments: Sequence[Type]) -> Type | None:
        """The type of an expression over columns `a0`, `a1`, ...; None if there is none."""


class Source:
    """One text, for as long as it is translated."""

    def __init__(self, text: str, types: SparkTypes | None = None) -> None:
        self.text, self.types = text, types

    def statements(self) -> list[exp.Expr]:
        """The statements, or a ParseError where reading stopped."""
        try:
            check_tokens(self.text, self.tokens)
            parsed = ViewDialect().parser().parse(self.tokens, self.text)
        except SyntaxProblem as problem:
            raise self._syntax_error(problem) from None
        except TokenError:
            raise self._token_error() from None
        except TypeError:  # sqlglot's own, for options that its dialect does not expect
            raise UnreadableError("this text does not read as SQL", self.text, 0) from None
        return [statement for statement in parsed if statement is not None]

    def error(self, problem: str, node: exp.Expr) -> ParseError:
        """An error that points at a node."""
        return ParseError(problem, self.text, self.position(node))

    def type_error(self, problem: str, node: exp.Expr) -> TypeRuleError:
        """An error about types that points at a node."""
        return TypeRuleError(problem, self.text, self.position(node))

    def too_deep(self) -> ParseError:
        """An error about a text that is nested deeper than can be read."""
        problem = "the query is nested too deeply; split it into several views"
        return ParseError(problem, self.text, deepest(self.tokens))

    def unsupported(
        self, construct: str, node: exp.Expr, keywords: Collection[TokenType] = ()
    ) -> UnsupportedError:
        """A refusal that names a construct and points at it, or at its keyword before it."""
        start = self.keyword(node, keywords)
        return UnsupportedError(f"{construct} is not supported in a view", self.text, start)

    def keyword(self, node: exp.Expr, keywords: Collection[TokenType]) -> int:
        """Where the last of some keywords starts at or before a node, else the node itself."""
        start = self.position(node)
        before = [t.start for t in self.tokens if t.start <= start and t.token_type in keywords]
        return before[-1] if before else start

    def position(self, node: exp.Expr) -> int:
        """Where a node starts: its first part with a place, else that of what surrounds it."""
        current: exp.Expr | None = node
        while current is not None:
            places = [part.meta.get(START, part.meta.get(LAST)) for part in current.walk()]
            starts = [int(place) for place in places if place is not None]
            if starts:
                return min(starts)
            current = current.parent
        return 0

    def start_of(self, statement: exp.Expr) -> int:
        """Where a statement starts: at its first word, which the tree does not keep."""
        inside = self.position(statement)
        start, ended = inside, True
        for token in self.tokens:
            if token.start > inside:
                break
            start = token.start if ended else start
            ended = token.token_type is TokenType.SEMICOLON
        return start

    def first(self, kind: TokenType) -> int | None:
        """Where the first token of a kind starts, if there is one."""
        return next((token.start for token in self.tokens if token.token_type is kind), None)

    @cached_property
    def tokens(self) -> list[Token]:
        """The words of the text."""
        return [*_with_calls_of_window(ViewDialect().tokenize(self.text))]

    def _token_error(self) -> ParseError:
        start = _start_of_open_quote(self.text)
        if start < len(self.text):
            return ParseError("text in quotes or a comment does not end", self.text, start)
        return ParseError("a constant in this text is malformed", self.text, 0)

    def _syntax_error(self, problem: SyntaxProblem) -> ParseError:
        details = problem.errors[0] if problem.errors else {}
        description = re.sub(r" but got <Token.*", "", str(details.get("description", problem)))
        highlight = str(details.get("highlight") or "")
        description = description.replace(
            "Invalid expression / Unexpected token", f'unexpected "{highlight}"'
        )
        missing = re.match(r"Required keyword: .*\.(\w+)'>", description)
        if missing:
            description = f"this {missing[1]} is incomplete"
        line, column = int(details.get("line") or 1), int(details.get("col") or 1)
        starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        start = starts[min(line, len(starts)) - 1] + column - len(highlight)
        return UnreadableError(f"SQL: {description}", self.text, max(0, min(start, len(self.text))))


def _with_calls_of_window(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens, in which `window (` calls the function: the clause WINDOW has a name first."""
    for place, token in enumerate(tokens):
        behind = tokens[place + 1].token_type if place + 1 < len(tokens) else None
        if behind is TokenType.L_PAREN and token.token_type is TokenType.WINDOW:
            call = Token(TokenType.VAR, token.text, token.line, token.col)
            call.start, call.end, call.comments = token.start, token.end, token.comments
            yield call
        else:
            yield token


def _start_of_open_quote(text: str) -> int:
    """Where the quote or comment starts that never ends."""
    tokens = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*.*?\*/|[^'"`]"""
    position = 0
    while match := re.compile(tokens, re.DOTALL).match(text, position):
        position = match.end()
    return position


def describe_position(sql: str, position: int) -> str:
    """A position for people: `at line 2, column 5`."""
    before = sql[:position]
    return f"at line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"
