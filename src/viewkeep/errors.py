"""The errors a user can meet: each names the thing, the place and the way out."""

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


_DID_YOU_MEAN = '; did you mean "'
_WIDTH = 400
"""The most characters of a line that an error shows."""


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
        source, start = _excerpt(text.split("\n")[self.line - 1], self.column - 1)
        # Tabs are kept so that the caret stands under the character it points at.
        indent = "".join("\t" if c == "\t" else " " for c in source[:start])
        place = f"line {self.line}, column {self.column}{hint and f'; {hint}'}"
        super().__init__(f"{problem} at {place}\n  {source}\n  {indent}^")


def _excerpt(line: str, start: int) -> tuple[str, int]:
    """A line, of a very long one what stands around a place, and where the place is in it."""
    if len(line) <= _WIDTH:
        return line, start
    first = max(0, start - _WIDTH // 2)
    return line[first : first + _WIDTH], start - first


class UnsupportedError(ParseError):
    """Well-formed SQL that Viewkeep does not maintain, named with its position."""

    def with_hint(self, hint: str) -> "UnsupportedError":
        """The same refusal, with a way out."""
        return UnsupportedError(self.problem, self.text, self.position, hint)


class UnreadableError(ParseError):
    """Text that Viewkeep does not read as SQL; Spark may read more."""


class TypeRuleError(ParseError):
    """An expression whose types do not fit as far as Viewkeep knows; Spark may know more casts."""


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


def did_you_mean(name: str, names: "Iterable[str]") -> str:
    """A hint for a misspelt name, or nothing.

    >>> did_you_mean("prize", ["pid", "price"])
    '; did you mean "price"?'
    """
    matches = get_close_matches(str(name), list(names), n=1)
    return f'{_DID_YOU_MEAN}{matches[0]}"?' if matches else ""


_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_LONGEST = 500


def brief(error: BaseException) -> str:
    """What an error says: one of Viewkeep as it is, one of a library in a line with its class.

    Of Java's errors it is the innermost cause; plans, stack traces and colours are left out.

    >>> brief(ValueError("calling o1.x.\\n: aborted\\n\\tat A\\nCaused by: B: full\\n\\tat C"))
    'ValueError: B: full'
    >>> brief(OSError("no space\\n   0: delta::log"))
    'OSError: no space'
    """
    if isinstance(error, ViewkeepError):
        return without_colours(str(error))
    message = cause(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def cause(error: BaseException) -> str:
    """The line of a library's error that tells what is wrong.

    >>> cause(ValueError("see below\\nTraceback (most recent call last):\\n  File x\\nKeyError: 7"))
    'KeyError: 7'
    """
    text = without_colours(str(error))
    lines = [line.strip() for line in text.split("\n")]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    # py4j says first which call failed, and on the next line, after a colon, why.
    java = [line.removeprefix(": ") for line in lines[:2] if line.startswith(": ")]
    message = [*_python_errors(text), *reversed(causes), *java, *filter(None, lines), ""][0]
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]} ..."


def _python_errors(text: str) -> list[str]:
    """The error at the end of the last Python traceback in a text: Spark reports those of its
    workers so, where users' own functions run."""
    _, begin, after = text.rpartition("Traceback (most recent call last):\n")
    return [line for line in after.split("\n") if begin and line[:1].strip()][:1]


def problem_of(error: Exception) -> str:
    """An error as one view's problem; one that nobody foresaw has its type before it.

    >>> problem_of(KeyError("x"))
    "unexpected KeyError: 'x'"
    """
    if isinstance(error, ViewkeepError) or type(error).__module__.startswith(("pyspark", "py4j")):
        return reason(error)
    return f"unexpected {type(error).__name__}: {reason(error)}"


def reason(error: Exception) -> str:
    """What an engine complains of: the innermost cause, without the calls that led to it.

    >>> reason(ValueError("calling o1\\n: aborted\\n\\tat A\\nCaused by: B: full\\n\\tat C"))
    'B: full'
    """
    if not isinstance(error, ViewkeepError):
        return cause(error)
    lines = brief(error).split("\n")
    causes = [each.removeprefix("Caused by: ") for each in lines if each.startswith("Caused by: ")]
    return causes[-1] if causes else "\n".join(each for each in lines if each[:4] != "\tat ")


def without_colours(text: str) -> str:
    """The text without what only terminals understand."""
    return _COLOURS.sub("", text)
