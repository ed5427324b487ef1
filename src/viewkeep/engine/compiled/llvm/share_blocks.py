"""Blocks that occur several times in a program, up to names and places, become one function.

The triggers of symmetric queries are alike: of the heavy and light parts of a four-cycle, dozens of
loops differ only in the tables they read. Each block (an `if` or a loop) is written down with its
names numbered in the order in which they occur; blocks that then read the same are called.
"""

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from viewkeep.engine.compiled.llvm.wide import is_wide

NODES_AT_LEAST = 60
"""Smaller blocks are not worth a call."""

_STATE = "s"


@dataclass
class _BlockText:
    """A block as text without names, and what it takes from outside."""

    text: list[str] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    """Places in the state, each with its number."""
    uses: dict[str, int] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    size: int = 0
    closed: bool = True
    """Whether it can be cut out: it neither returns nor leaves a loop that is not in it."""

    def read(self, node: ast.AST, in_loop: bool = False) -> None:
        """Write down a node, and all below it."""
        self.size += 1
        _READERS.get(type(node), _BlockText._other)(self, node, in_loop)

    def _name(self, node: ast.Name, in_loop: bool) -> None:
        name = node.id
        if name == _STATE:
            self.text.append(name)
            return
        self.uses[name] = self.uses.get(name, 0) + 1
        (self.assigned if type(node.ctx) is ast.Store else self.loaded).add(name)
        number = self.names.setdefault(name, len(self.names))
        self.text.append(f"{_type_mark(name)}{number}")

    def _constant(self, node: ast.Constant, in_loop: bool) -> None:
        self.text.append(repr(node.value))

    def _operation(self, node: ast.BinOp, in_loop: bool) -> None:
        if (place := place_of(node)) is None:
            self._other(node, in_loop)
        else:
            number = self.places.setdefault(place, len(self.places))
            self.text.append(f"s+{number}")

    def _call(self, node: ast.Call, in_loop: bool) -> None:
        assert isinstance(node.func, ast.Name)
        self.text.append(f"{node.func.id}(")
        self._all(node.args, in_loop)

    def _for(self, node: ast.For, in_loop: bool) -> None:
        self.text.append("for")
        self.read(node.target)
        self.read(node.iter)
        self._all(node.body, True)

    def _while(self, node: ast.While, in_loop: bool) -> None:
        self.text.append("while")
        self.read(node.test)
        self._all(node.body, True)

    def _if(self, node: ast.If, in_loop: bool) -> None:
        self.text.append("if")
        self.read(node.test)
        self._all(node.body, in_loop)
        self.text.append("else")
        self._all(node.orelse, in_loop)

    def _augmented(self, node: ast.AugAssign, in_loop: bool) -> None:
        if isinstance(node.target, ast.Name):
            self.loaded.add(node.target.id)
        self._other(node, in_loop)

    def _return(self, node: ast.Return, in_loop: bool) -> None:
        self.closed = False

    def _leave(self, node: ast.Break | ast.Continue, in_loop: bool) -> None:
        self.text.append(type(node).__name__)
        self.closed &= in_loop

    def _other(self, node: ast.AST, in_loop: bool) -> None:
        self.text.append(type(node).__name__)
        self._all(ast.iter_child_nodes(node), in_loop)

    def _all(self, nodes: Iterable[ast.AST], in_loop: bool) -> None:
        for each in nodes:
            if not isinstance(each, ast.expr_context):
                self.read(each, in_loop)
        self.text.append(";")


_READERS: dict[type[ast.AST], Callable[[_BlockText, Any, bool], None]] = {
    ast.Name: _BlockText._name,
    ast.Constant: _BlockText._constant,
    ast.BinOp: _BlockText._operation,
    ast.Call: _BlockText._call,
    ast.For: _BlockText._for,
    ast.While: _BlockText._while,
    ast.If: _BlockText._if,
    ast.AugAssign: _BlockText._augmented,
    ast.Return: _BlockText._return,
    ast.Break: _BlockText._leave,
    ast.Continue: _BlockText._leave,
}


def place_of(node: ast.BinOp) -> int | None:
    """The place in the state that `s + 48` means."""
    if isinstance(node.left, ast.Name) and node.left.id == _STATE and type(node.op) is ast.Add:
        right = node.right
        if isinstance(right, ast.Constant) and isinstance(right.value, int):
            return right.value
    return None


@dataclass(frozen=True)
class _Block:
    """A block that can be cut out, with what goes in and comes out, all in a fixed order."""

    node: ast.stmt
    key: str
    places: tuple[int, ...]
    arguments: tuple[str, ...]
    result: str | None


def share(
    functions: list[ast.FunctionDef], excluded: Collection[str] = ()
) -> list[ast.FunctionDef]:
    """The functions, with calls in place of blocks that occur more than once.

    Those that are `excluded` stay as they are.
    """
    return _BlockSharing(functions, excluded).functions


class _BlockSharing:
    """Finds blocks, counts them, and cuts out those that are worth it."""

    def __init__(self, functions: list[ast.FunctionDef], excluded: Collection[str]) -> None:
        self._blocks: dict[ast.stmt, _Block] = {}
        self._names: dict[str, str] = {}
        self._cut: list[ast.FunctionDef] = []
        open_ = [
            each for each in functions if each.name not in excluded and _has_state_parameter(each)
        ]
        for function in open_:
            self._find_blocks(function)
        self._counts = Counter(block.key for block in self._blocks.values())
        for function in open_:
            self._replace_blocks(function.body, 1)
        self.functions = [*functions, *self._cut]

    def _find_blocks(self, function: ast.FunctionDef) -> None:
        """The blocks of a function that can be cut out."""
        uses = Counter(n.id for n in ast.walk(function) if isinstance(n, ast.Name))
        parameters = {argument.arg for argument in function.args.args}
        for node, before in _blocks_of_statements(function.body, parameters):
            reading = _BlockText()
            reading.read(node)
            if reading.size < NODES_AT_LEAST or not reading.closed:
                continue
            results = [
                n for n in reading.names if n in reading.assigned and reading.uses[n] < uses[n]
            ]
            if len(results) > 1 or any(map(_type_mark, results)):
                continue
            inputs = reading.loaded.union(results) & before
            arguments = tuple(name for name in reading.names if name in inputs)
            outer = (*(reading.names[name] for name in (*arguments, *results)), len(arguments))
            key = f"{' '.join(reading.text)} | {outer}"
            self._blocks[node] = _Block(
                node, key, tuple(reading.places), arguments, results[0] if results else None
            )

    def _replace_blocks(self, statements: list[ast.stmt], count: int) -> None:
        """Calls in place of blocks that occur more often than what they are a part of."""
        for number, node in enumerate(statements):
            block = self._blocks.get(node)
            if block is not None and self._counts[block.key] > count:
                statements[number] = self._call(block)
            else:
                for inner in _statement_bodies(node):
                    self._replace_blocks(inner, count)

    def _call(self, block: _Block) -> ast.stmt:
        name = self._names.get(block.key)
        if name is None:
            name = self._names[block.key] = f"shared_{len(self._names)}"
            self._outline_block(name, block)
        places = [_state_address(place) for place in block.places]
        arguments = [ast.Name(each, ast.Load()) for each in block.arguments]
        call = ast.Call(ast.Name(name, ast.Load()), [_state_argument(), *places, *arguments], [])
        if block.result is None:
            return ast.Expr(call)
        return ast.Assign([ast.Name(block.result, ast.Store())], call)

    def _outline_block(self, name: str, block: _Block) -> None:
        """A function of the block, in which smaller blocks may be shared in turn."""
        node = deepcopy(block.node)
        for copy, original in zip(ast.walk(node), ast.walk(block.node), strict=True):
            if isinstance(original, ast.stmt) and isinstance(copy, ast.stmt):
                block_of_original = self._blocks.get(original)
                if block_of_original is not None:
                    self._blocks[copy] = block_of_original
        places = {place: f"place_{number}" for number, place in enumerate(block.places)}
        names = [_STATE, *places.values(), *block.arguments]
        body: list[ast.stmt] = [node]
        for statements in _statement_bodies(node):
            self._replace_blocks(statements, self._counts[block.key])
        _BlockParameters(places).visit(node)
        result: ast.expr = ast.Constant(0)
        if block.result is not None:
            result = ast.Name(block.result, ast.Load())
        body.append(ast.Return(result))
        arguments = ast.arguments([], [ast.arg(each) for each in names], None, [], [], None, [])
        self._cut.append(ast.FunctionDef(name, arguments, body, [], None))


class _BlockParameters(ast.NodeTransformer):
    """Places of the state become parameters."""

    def __init__(self, places: dict[int, str]) -> None:
        self._places = places

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Replace `s + 48` by its parameter."""
        place = place_of(node)
        if place is not None:
            return ast.Name(self._places[place], ast.Load())
        self.generic_visit(node)
        return node


def _blocks_of_statements(
    statements: list[ast.stmt], names: set[str]
) -> Iterator[tuple[ast.stmt, frozenset[str]]]:
    """Blocks at any depth, each with the names that may have a value before it."""
    for node in statements:
        if isinstance(node, ast.If | ast.For | ast.While):
            yield node, frozenset(names)
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
            for body in _statement_bodies(node):
                yield from _blocks_of_statements(body, names)
        else:
            names.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def _statement_bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.If | ast.For | ast.While):
        yield node.body
        yield node.orelse


def _type_mark(name: str) -> str:
    """How names start that are not of 64-bit integers."""
    return name[: name.index("_") + 1] if name.startswith("f_") or is_wide(name) else ""


def _has_state_parameter(function: ast.FunctionDef) -> bool:
    return any(argument.arg == _STATE for argument in function.args.args)


def _state_argument() -> ast.expr:
    return ast.Name(_STATE, ast.Load())


def _state_address(place: int) -> ast.expr:
    return ast.BinOp(_state_argument(), ast.Add(), ast.Constant(place))
