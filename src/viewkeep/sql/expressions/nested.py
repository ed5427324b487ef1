"""Parts of nested values: fields of structs, elements of arrays, values of maps."""

from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeep.errors import did_you_mean
from viewkeep.query.expressions import literal
from viewkeep.query.types.internal_functions import ENTRY, FIELD, ITEM
from viewkeep.sql.blocks.scope import Scalar, constant

if TYPE_CHECKING:
    from viewkeep.sql.expressions.translator import Translator


def struct(translator: "Translator", node: exp.Anonymous) -> Scalar:
    """A struct of values, whose names are those of columns and aliases, or their places."""
    parts: list[Scalar] = []
    for place, each in enumerate(node.expressions, 1):
        match each:
            case exp.Alias():
                name = each.alias
            case exp.Column() | exp.Dot() if not isinstance(each.this, exp.Star):
                name = each.name
            case exp.Column() | exp.Star() | exp.Bracket():
                raise translator.source.unsupported("struct() of this", each)
            case _:
                name = f"col{place}"
        value = translator.translate(each.unalias())
        parts += [constant(literal(name)), value]
    return translator.call("named_struct", parts, node)


def field(translator: "Translator", struct: Scalar, name: str, node: exp.Expr) -> Scalar:
    """A part of a struct, by its name in any case."""
    parts = struct.typed.type.parts if struct.typed.type.name == "struct" else ()
    places = [i for i, part in enumerate(parts) if part.name.lower() == name.lower()]
    if len(places) != 1:
        part_names = [part.name for part in parts]
        type_and_hint = f"{struct.typed.type}{did_you_mean(name, part_names)}"
        raise translator.source.error(
            f'no part "{name}" in {struct.expression}, {type_and_hint}', node
        )
    [place] = places
    arguments = [struct, constant(literal(parts[place].name)), constant(literal(place))]
    return translator.call(FIELD, arguments, node)


def element(translator: "Translator", node: exp.Bracket) -> Scalar:
    """An element of an array by its place, or of a map by its key."""
    values = translator.translate(node.this)
    if len(node.expressions) != 1 or values.typed.type.name not in ("array", "map"):
        return translator.opaque(node, translator.source.unsupported("this form of []", node))
    function = ITEM if values.typed.type.name == "array" else ENTRY
    return translator.call(function, [values, translator.translate(node.expressions[0])], node)
