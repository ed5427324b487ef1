"""Functions that make rows of an array or a map: explode and its kin, in FROM and SELECT."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeep.query.algebra import Node, Output, Project, Unnest
from viewkeep.query.expressions import Call, Column, literal
from viewkeep.query.types.data_types import INT, VOID, Type
from viewkeep.query.types.internal_functions import FIELD
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.context import FreshNames
from viewkeep.sql.blocks.date_sequences import moment_steps
from viewkeep.sql.blocks.scope import Scalar, constant
from viewkeep.sql.expressions.translator import Translator

_EXPLODE, _POSEXPLODE, _INLINE, _STACK = "explode", "posexplode", "inline", "stack"
_OUTER = "_outer"
_OF_NESTED = (_EXPLODE, _POSEXPLODE, _INLINE)
GENERATORS = frozenset((*_OF_NESTED, *(f"{name}{_OUTER}" for name in _OF_NESTED), _STACK))
"""The functions that make rows, and are kept by row."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A call of such a function; the columns that come of it are named after `alias`."""

    function: str
    outer: bool
    values: Scalar
    alias: str
    moment: Callable[[Scalar], Scalar] | None = None
    """What the elements are made into, if they are the numbers of steps."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns as Spark names them."""
        if self.function == _INLINE:
            return tuple(part.name for part in self._element_types[0].parts)
        values = ("col",) if len(self._element_types) == 1 else ("key", "value")
        return ("pos", *values) if self.function == _POSEXPLODE else values

    @property
    def columns(self) -> tuple[Scalar, ...]:
        """Its columns over the rows that it makes."""
        position, *values = map(Column, self._generated_columns)
        if self.function == _INLINE:
            fields = self._element_types[0].parts
            parts = [(literal(field.name), literal(i)) for i, field in enumerate(fields)]
            calls = [Call(FIELD, (values[0], *part)) for part in parts]
            types = [TypedValue(field.type, True) for field in fields]
            return tuple(map(Scalar, calls, types))
        pairs = zip(values, self._element_types, strict=True)
        scalars = tuple(Scalar(column, TypedValue(type_, True)) for column, type_ in pairs)
        scalars = scalars if self.moment is None else tuple(map(self.moment, scalars))
        place = Scalar(position, TypedValue(INT, True))
        return (place, *scalars) if self.function == _POSEXPLODE else scalars

    def over(self, rows: Node, outer: bool = False) -> Node:
        """Every row once for each of its elements."""
        expression = self.values.expression
        if isinstance(expression, Column):
            return Unnest(rows, expression.name, self._generated_columns, outer or self.outer)
        own_columns = [Output(name, Column(name)) for name in rows.names]
        array = f"{self.alias}.#array"
        below = Project(rows, (*own_columns, Output(array, expression)))
        return Unnest(below, array, self._generated_columns, outer or self.outer)

    @property
    def _element_types(self) -> tuple[Type, ...]:
        """The types of an element, or of a key and its value."""
        return tuple(part.type for part in self.values.typed.type.parts)

    @property
    def _generated_columns(self) -> tuple[str, ...]:
        values = ("element",) if len(self._element_types) == 1 else ("key", "value")
        return tuple(f"{self.alias}.#{name}" for name in ("position", *values))


def is_generator(node: exp.Expr) -> bool:
    """Whether a node calls such a function."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS


def read_generator(
    node: exp.Expr, alias: str, translator: Translator, names: FreshNames
) -> Generator:
    """A call over the rows of a translator."""
    assert isinstance(node, exp.Anonymous)
    function = node.name.lower().removesuffix(_OUTER)
    if function == _STACK:
        return Generator(
            _INLINE, False, _stacked_rows(node, translator), names.take(alias or function)
        )
    if len(node.expressions) != 1:
        raise translator.source.error(f"{node.name.lower()}() takes 1 argument", node)
    outer = node.name.lower().endswith(_OUTER)
    steps = moment_steps(node.expressions[0], translator)
    if steps is not None and function != _INLINE:
        own_alias = names.take(alias or function)
        return Generator(function, outer, steps.numbers, own_alias, steps.moment)
    values = translator.translate(node.expressions[0])
    kind = values.typed.type
    structs = kind.name == "array" and kind.parts[0].type.name == "struct"
    if not (structs if function == _INLINE else kind.name in ("array", "map")):
        expected = "an array of structs" if function == _INLINE else "an array or a map"
        problem = f"{node.name.lower()}() takes {expected}, not {kind}"
        raise translator.source.type_error(problem, node)
    return Generator(function, outer, values, names.take(alias or function))


def _stacked_rows(node: exp.Anonymous, translator: Translator) -> Scalar:
    """`stack(n, a, b, ...)` as an array of n structs, whose last one may end with NULL."""
    cells = translator.translate_all(node.expressions)
    rows = cells.pop(0).typed.value if cells else None
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1 or not cells:
        raise translator.source.unsupported("stack() without a number of rows and values", node)
    width = -(-len(cells) // rows)
    cells += [constant(literal(None))] * (width * rows - len(cells))
    columns = [_cells_of_one_type(cells[i::width], node, translator) for i in range(width)]
    structs = []
    for row in zip(*columns, strict=True):
        named = [(constant(literal(f"col{i}")), cell) for i, cell in enumerate(row)]
        parts = [part for pair in named for part in pair]
        structs.append(translator.call("named_struct", parts, node))
    return translator.call("array", structs, node)


def _cells_of_one_type(
    cells: Sequence[Scalar], node: exp.Expr, translator: Translator
) -> list[Scalar]:
    """A column of stack(); as in Spark, only NULL is converted."""
    types = {cell.typed.type for cell in cells} - {VOID}
    if len(types) > 1:
        listed = ", ".join(sorted(map(str, types)))
        problem = f"stack(): a column must have one type, but found {listed}; add a CAST"
        raise translator.source.type_error(problem, node)
    [kind] = types or {VOID}
    return [
        translator.cast(cell, kind, node) if cell.typed.type != kind else cell for cell in cells
    ]


@dataclass
class BlockGenerator:
    """The one such function that the select list of a block may have."""

    names: FreshNames
    call: Generator | None = None

    def columns(self, node: exp.Expr, translator: Translator) -> list[tuple[str, Scalar]]:
        """The names and values of the columns that a call becomes."""
        if self.call is not None:
            raise translator.source.error("a select list has one explode() at most", node)
        self.call = read_generator(node, "", translator, self.names)
        return list(zip(self.call.names, self.call.columns, strict=True))

    def apply(self, rows: Node) -> Node:
        """The rows with those that the function makes of each."""
        return rows if self.call is None else self.call.over(rows)
