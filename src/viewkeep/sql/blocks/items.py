"""The select list: names, stars and expressions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeep.query.algebra import Node, Output, Project
from viewkeep.sql.blocks.context import FreshNames
from viewkeep.sql.blocks.generators import is_generator
from viewkeep.sql.blocks.scope import Scalar, ScopeColumn
from viewkeep.sql.expressions.names import plain_column
from viewkeep.sql.expressions.stars import parts_of_struct
from viewkeep.sql.expressions.translator import Translator
from viewkeep.sql.source import Source


@dataclass(frozen=True, slots=True)
class Item:
    """An output column, with the place it was written."""

    name: str
    scalar: Scalar
    node: exp.Expr
    is_alias: bool = False
    """Whether its name is an alias, which no other column may have."""
    is_unnamed: bool = False
    """Whether it is called by its text: two alike are told apart, `count(1)` and `count(1)_2`."""
    column: ScopeColumn | None = None
    """The column of FROM that it is."""

    def repeats(self, other: "Item") -> bool:
        """Whether both are one column of FROM, so that a name which both have means either."""
        if self.column is None or other.column is None or self.name.lower() != other.name.lower():
            return False
        first = other.column.repeats or other.scalar.expression
        return first == (self.column.repeats or self.scalar.expression)


def select_items(select: exp.Select, translator: Translator) -> list[Item]:
    """The output columns of a query block; each may read those before it by their aliases."""
    items: list[Item] = []
    for node in select.expressions:
        items.extend(_select_items(node, translator))
        if isinstance(node, exp.Alias):
            aliases = translator.earlier
            is_plain = node.alias.lower() not in aliases and node.find(exp.Window) is None
            scalar = items[-1].scalar if is_plain else None  # none where Spark decides
            translator.earlier = {**aliases, node.alias.lower(): scalar}
    translator.earlier = {}
    return items


def project_items(node: Node, items: Sequence[Item], source: Source) -> Node:
    """The output of a query block; columns of two tables that are called alike are told apart,
    `id` and `id_2`."""
    pairs = zip(item_names(items, source, tells_columns_apart=True), items, strict=True)
    return Project(node, tuple(Output(name, item.scalar.expression) for name, item in pairs))


def output_names(items: Sequence[Item], node: Node) -> tuple[str, ...]:
    """How the text calls the columns of a block, in which some may be alike."""
    pairs = zip(items, node.names, strict=True)
    return tuple(name if item.is_unnamed else item.name for item, name in pairs)


def repeated_outputs(items: Sequence[Item]) -> dict[int, int]:
    """The places of columns that stand in a list for a second time, and where they stand first."""
    repeats: dict[int, int] = {}
    for place, item in enumerate(items):
        first = next((i for i in range(place) if item.repeats(items[i])), None)
        if first is not None:
            repeats[place] = first
    return repeats


def item_names(
    items: Sequence[Item], source: Source, tells_columns_apart: bool = False
) -> tuple[str, ...]:
    """The names of the output columns; aliases must differ, and columns unless they are told
    apart. What has its name to itself keeps it."""
    aliases = {item.name.lower() for item in items if item.is_alias}
    names, fresh_names = FreshNames(), dict[int, str]()
    for place in _naming_order(items):
        item = items[place]
        fresh_names[place] = names.take(item.name)
        is_plain = tells_columns_apart and item.name.lower() not in aliases
        if fresh_names[place] != item.name and not item.is_unnamed and not is_plain:
            problem = f'two output columns are called "{item.name}"; give one an alias'
            raise source.error(problem, item.node)
    return tuple(fresh_names[place] for place in range(len(items)))


def _naming_order(items: Sequence[Item]) -> list[int]:
    """Places of aliases, of columns, of columns called as one before them, and of expressions."""
    first = {items[place].name.lower(): place for place in reversed(range(len(items)))}

    def rank(place: int) -> int:
        item = items[place]
        if item.is_alias or item.is_unnamed:
            return 0 if item.is_alias else 3
        return 1 if first[item.name.lower()] == place else 2

    return sorted(range(len(items)), key=rank)


def _select_items(node: exp.Expr, translator: Translator) -> Iterator[Item]:
    match node:
        case exp.Star():
            yield from _star_items(node, "", translator)
        case exp.Column() if isinstance(node.this, exp.Star):
            yield from _star_items(node, node.table, translator)
        case exp.Alias() | exp.Aliases() if is_generator(node.this):
            yield from _generator_items(node.this, _alias_names(node), translator)
        case exp.Anonymous() if is_generator(node):
            yield from _generator_items(node, [], translator)
        case exp.Alias():
            yield Item(node.alias, translator.translate(node.this), node, is_alias=True)
        case exp.Paren():
            yield from _select_items(node.this, translator)
        case exp.Column():
            scalar, column = translator.translate(node), plain_column(translator, node)
            yield Item(node.name, scalar, node, column=column)
        case exp.Aliases():
            raise translator.source.unsupported("several names for one column", node)
        case _:
            # As in Spark, a column without a name is called by its text.
            name = _item_name(node)
            yield Item(name, translator.translate(node), node, is_unnamed=True)


def _alias_names(node: exp.Alias | exp.Aliases) -> list[str]:
    return [node.alias] if isinstance(node, exp.Alias) else [e.name for e in node.expressions]


def _generator_items(node: exp.Expr, names: list[str], translator: Translator) -> Iterator[Item]:
    """The columns of explode or its kin."""
    if translator.generator is None:
        raise translator.source.unsupported(f"{node.name.lower()}() here", node)
    columns = translator.generator.columns(node, translator)
    if names and len(names) != len(columns):
        problem = f"{node.name.lower()}() has {len(columns)} columns, but {len(names)} names"
        raise translator.source.error(f"{problem} for them", node)
    for i, (name, scalar) in enumerate(columns):
        yield Item(names[i] if names else name, scalar, node, is_alias=bool(names))


def _item_name(node: exp.Expr) -> str:
    match node:
        case exp.Anonymous(expressions=[exp.Star()]) if node.name.lower() == "count":
            return "count(1)"
    return node.sql("spark", normalize_functions="lower")


def _star_without(
    left_out: Sequence[exp.Expr], qualifier: str, translator: Translator, star: exp.Expr
) -> list[ScopeColumn]:
    """The columns of a star, but those that EXCEPT names."""
    columns = translator.scope.visible(qualifier)
    for each in left_out:
        if isinstance(each, exp.Dot) or each.args.get("db"):
            raise translator.source.unsupported("* EXCEPT of a field", star)
        table = each.table if isinstance(each, exp.Column) else ""
        excluded = [
            c for c in translator.scope.named(table or qualifier, each.name) if c in columns
        ]
        if not excluded:
            problem = translator.scope.unknown(table or qualifier, each.name)
            raise translator.source.error(problem, each)
        columns = [column for column in columns if column not in excluded]
    if left_out and not columns:
        raise translator.source.error("* EXCEPT leaves no column", star)
    return columns


def _star_items(node: exp.Expr, qualifier: str, translator: Translator) -> Iterator[Item]:
    star = node.this if isinstance(node, exp.Column) else node
    if any(value for part, value in star.args.items() if part != "except_"):
        raise translator.source.unsupported("* REPLACE or RENAME", node)
    columns = _star_without(star.args.get("except_") or (), qualifier, translator, node)
    if not columns and isinstance(node, exp.Column) and not star.args.get("except_"):
        parts = parts_of_struct(translator, node)
        yield from (Item(name, scalar, node) for name, scalar in parts or ())
        if parts is not None:
            return
    if not columns:
        raise translator.source.error(translator.scope.unknown(qualifier, "*"), node)
    for column in columns:
        yield Item(column.name, translator.column(column, node), node, column=column)
