"""The errors a user can meet: each names the thing, the place and the way out."""

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


_DID_YOU_MEAN = '; did you mean "'


class ViewkeepError(Exception):
    """Base of every error that Viewkeep raises on purpose."""


class QueryError(ViewkeepError):
    """A query that is not well formed: unknown names, wrong arity, unsafe head."""


class ParseError(QueryError):
    """Text that is not a query, with the place where reading stopped and, after it, a hint.

    >>> print(ParseError("expected ')'", "Q(a = R(a)", 4, hint="close the head"))
    expected ')' at line 1, column 5; close the head
      Q(a = R(a)
          ^
    """

    def __init__(self, problem: str, text: str, position: int, hint: str = "") -> None:
        self.problem = f"{problem}; {hint}" if hint else problem
        if not hint:
            problem, _, hint = problem.partition(_DID_YOU_MEAN)
            hint = hint and _DID_YOU_MEAN.removeprefix("; ") + hint
        self.text = text
        self.position = position
        before = text[:position]
        self.line = before.count("\n") + 1
        self.column = position - (before.rfind("\n") + 1) + 1
        source = text.split("\n")[self.line - 1]
        # Tabs are kept so that the caret stands under the character it points at.
        indent = "".join("\t" if c == "\t" else " " for c in source[: self.column - 1])
        place = f"line {self.line}, column {self.column}{hint and f'; {hint}'}"
        super().__init__(f"{problem} at {place}\n  {source}\n  {indent}^")


class UnsupportedError(ParseError):
    """Well-formed SQL that Viewkeep does not maintain, named with its position."""


class ConstraintError(QueryError):
    """A constraint (functional dependency, key, foreign key, ...) that does not fit the query."""


class ArgumentError(ViewkeepError):
    """An argument of a public function that is not what the function takes."""


class MissingLibraryError(ViewkeepError, ImportError):
    """A library that is not installed, and the extra of Viewkeep that brings it."""


class RingError(ViewkeepError):
    """A ring asked for what it cannot do, such as subtraction in a semiring."""


class SchemaError(ViewkeepError):
    """Data or columns that do not fit the declared schema."""


def did_you_mean(name: str, known: "Iterable[str]") -> str:
    """A hint for a misspelt name, or nothing.

    >>> did_you_mean("prize", ["pid", "price"])
    '; did you mean "price"?'
    """
    matches = get_close_matches(str(name), list(known), n=1)
    return f'{_DID_YOU_MEAN}{matches[0]}"?' if matches else ""
