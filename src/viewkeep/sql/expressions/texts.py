"""Values of other types where a text is expected, and texts beside numbers: as Spark converts them
in ANSI mode."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeep.query.expressions import Literal, literal
from viewkeep.query.types.data_types import BIGINT, BINARY, INTEGRAL, STRING, VOID, Type
from viewkeep.query.types.rules import is_castable
from viewkeep.sql.blocks.scope import Scalar, constant
from viewkeep.sql.expressions.literals import typed_literal

if TYPE_CHECKING:
    from viewkeep.sql.expressions.translator import Translator

_EVERY = range(99)
TEXT_ARGUMENTS: dict[str, Collection[int]] = {
    **dict.fromkeys(("concat", "concat_ws"), _EVERY),
    **dict.fromkeys(("upper", "lower", "trim", "ltrim", "rtrim", "reverse", "ascii"), (0,)),
    **dict.fromkeys(("length", "substring", "left", "right", "repeat"), (0,)),
    **dict.fromkeys(("like", "rlike", "startswith", "endswith", "locate"), (0, 1)),
    **dict.fromkeys(("split_part", "substring_index", "regexp_extract"), (0, 1)),
    **dict.fromkeys(("replace", "translate", "regexp_replace"), (0, 1, 2)),
    **dict.fromkeys(("lpad", "rpad"), (0, 2)),
}
"""The places of functions' arguments that are texts, or are converted to them."""


def arguments_as_texts(
    translator: "Translator", function: str, arguments: Sequence[Scalar], node: exp.Expr
) -> Sequence[Scalar]:
    """The arguments of a call, with numbers, dates and truths as texts where it takes these.

    Bytes, which some functions take as they are, are left alone where there is nothing else.
    """
    places = TEXT_ARGUMENTS.get(function, ())
    kinds = {argument.typed.type for place, argument in enumerate(arguments) if place in places}
    if kinds <= {STRING, VOID, BINARY} or any(kind.is_nested for kind in kinds):
        return arguments
    return [
        translator.cast(argument, STRING, node)
        if place in places and _is_converted(argument.typed.type)
        else argument
        for place, argument in enumerate(arguments)
    ]


def _is_converted(kind: Type) -> bool:
    return kind not in (STRING, VOID) and is_castable(kind, STRING)


def text_as_number(scalar: Scalar, types: Collection[Type]) -> Scalar:
    """A literal such as '12' beside integers, which it is compared with as one."""
    match scalar.expression:
        case Literal(str(text)) if all(kind in (*INTEGRAL, STRING, VOID) for kind in types):
            if any(kind in INTEGRAL for kind in types) and re.fullmatch(r"[+-]?\d{1,18}", text):
                number = typed_literal(literal(int(text)), BIGINT)
                return scalar if number is None else constant(number)
    return scalar
