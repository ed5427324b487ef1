"""Reads scalar expressions of the notation: the inverse of printing them."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import NoReturn

from viewkeep.errors import ParseError, SchemaError
from viewkeep.query.expressions import (
    KEYWORDS,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    Value,
    literal,
)
from viewkeep.query.notation.tokens import Token, tokenize
from viewkeep.query.types.data_types import parse_type

_TYPED_LITERALS: dict[str, Callable[[str], Value]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "double": float,
    "decimal": Decimal,
    "x": bytes.fromhex,
}

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


class TokenReader:
    """A position in a token list, with the few moves that parsers make."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokenize(text)
        self._next = 0

    @property
    def token(self) -> Token:
        """The token to be read next."""
        return self._tokens[self._next]

    def peek(self, *texts: str, ahead: int = 0) -> bool:
        """Whether a coming symbol or bare word is one of these."""
        token = self._tokens[min(self._next + ahead, len(self._tokens) - 1)]
        if token.quoted or token.kind not in ("symbol", "name"):
            return False
        return token.text in texts

    def take(self) -> Token:
        """Read one token."""
        token = self.token
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def accept(self, *texts: str) -> Token | None:
        """Read one of these symbols or words, if it is next."""
        return self.take() if self.peek(*texts) else None

    def expect(self, text: str, purpose: str = "") -> Token:
        """Read this symbol or word, or say what stands there instead."""
        token = self.accept(text)
        return token if token is not None else self.fail(f'expected "{text}"{purpose}')

    def name(self, expected: str) -> str:
        """Read an identifier."""
        token = self.token
        keyword = not token.quoted and token.text.lower() in KEYWORDS
        if token.kind != "name" or keyword:
            self.fail(f"expected {expected}")
        return self.take().text

    def find(self, name: str, start: Token) -> Token:
        """The first token with this name, from `start` on."""
        later = self._tokens[self._tokens.index(start) :]
        return next(token for token in later if token.kind == "name" and token.text == name)

    def fail(self, problem: str, at: Token | None = None, hint: str = "") -> NoReturn:
        """Stop with the problem, the place and what may be meant."""
        token = at or self.token
        actual = "" if at else f", found {_token_text(token)}"
        raise ParseError(problem + actual, self.text, token.position, hint)


def read_expression(reader: TokenReader) -> Expression:
    """Read one expression; `or` binds loosest."""
    return _read_binary(reader, ("or",), lambda r: _read_binary(r, ("and",), _read_not))


def _read_binary(
    reader: TokenReader, operators: tuple[str, ...], operand: Callable[[TokenReader], Expression]
) -> Expression:
    left = operand(reader)
    while token := reader.accept(*operators):
        left = Call(token.text, (left, operand(reader)))
    return left


def _read_not(reader: TokenReader) -> Expression:
    if reader.accept("not"):
        return Call("not", (_read_not(reader),))
    return _read_comparison(reader)


def _read_comparison(reader: TokenReader) -> Expression:
    left = _read_sum(reader)
    if token := reader.accept(*_COMPARISONS):
        left = Call(token.text, (left, _read_sum(reader)))
        if reader.peek(*_COMPARISONS):
            reader.fail("comparisons do not chain: join them with and")
    return left


def _read_sum(reader: TokenReader) -> Expression:
    return _read_binary(reader, ("+", "-"), _read_product)


def _read_product(reader: TokenReader) -> Expression:
    return _read_binary(reader, ("*", "/", "%"), _read_sign)


def _read_sign(reader: TokenReader) -> Expression:
    if not reader.accept("-"):
        return _read_primary(reader)
    if reader.token.kind == "number":
        return literal(_number_value("-" + reader.take().text))
    return Call("negate", (_read_sign(reader),))


def _read_primary(reader: TokenReader) -> Expression:
    token = reader.token
    if token.kind == "number":
        return literal(_number_value(reader.take().text))
    if token.kind == "string":
        return literal(reader.take().text)
    if reader.accept("("):
        inner = read_expression(reader)
        reader.expect(")")
        return inner
    if reader.accept("cast"):
        return _read_cast(reader)
    if word := reader.accept("true", "false", "null"):
        return literal({"true": True, "false": False, "null": None}[word.text])
    return _read_named(reader)


def _read_named(reader: TokenReader) -> Expression:
    start = reader.token
    name = reader.name("a value")
    if reader.token.kind == "string" and name.lower() in _TYPED_LITERALS:
        return _read_typed_literal(reader, name.lower())
    if reader.accept("("):
        return Call(name if start.quoted else name.lower(), read_call_arguments(reader))
    return Column(name)


def read_call_arguments(reader: TokenReader) -> tuple[Expression, ...]:
    """Read expressions up to the closing bracket."""
    arguments: list[Expression] = []
    while not reader.accept(")"):
        if arguments:
            reader.expect(",", ' or ")"')
        arguments.append(read_expression(reader))
    return tuple(arguments)


def _read_typed_literal(reader: TokenReader, type_name: str) -> Literal:
    token = reader.take()
    try:
        return literal(_TYPED_LITERALS[type_name](token.text))
    except (ValueError, InvalidOperation):
        reader.fail(f"'{token.text}' is not a {type_name}", at=token)


def _read_cast(reader: TokenReader) -> Cast:
    reader.expect("(")
    argument = read_expression(reader)
    reader.expect("as")
    start = reader.token
    name = reader.name("a type")
    if reader.accept("("):
        numbers = [_read_whole_number(reader)]
        if reader.accept(","):
            numbers.append(_read_whole_number(reader))
        reader.expect(")")
        name += f"({', '.join(numbers)})"
    reader.expect(")")
    try:
        return Cast(argument, parse_type(name))
    except SchemaError as error:
        reader.fail(str(error), at=start)


def _read_whole_number(reader: TokenReader) -> str:
    if reader.token.kind != "number" or not reader.token.text.isdecimal():
        reader.fail("expected a whole number")
    return reader.take().text


def _number_value(text: str) -> Value:
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text else int(text)


def _token_text(token: Token) -> str:
    return token.text if token.kind == "end" else f'"{token.text}"'
