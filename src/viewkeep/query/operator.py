"""What all operators of the algebra share: columns, a hash and equality, each found once."""

from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Self, cast

from viewkeep.query.types.inference import Schema, check_names

if TYPE_CHECKING:
    from viewkeep.query.algebra import Node

INPUTS = ("child", "left", "right", "inputs")
"""The fields of operators that are their inputs."""


@cache
def _fields_but_inputs(operator: Any) -> tuple[str, ...]:
    names = (part.name for part in fields(operator) if part.init)
    return tuple(name for name in names if name not in INPUTS)


@dataclass(frozen=True, eq=False)
class Operator:  # not an ABC: passes ask often what a node is, and those answer slowly
    """The base of all nodes: a schema and a hash computed once, since subtrees are shared."""

    schema: Schema = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)
    _own_hash: int = field(init=False, repr=False)
    _names: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        schema = self._output()
        check_names(schema)
        hash_but_inputs = hash((type(self), self.own_values()))
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "_names", tuple([field.name for field in schema]))
        object.__setattr__(self, "_own_hash", hash_but_inputs)
        object.__setattr__(self, "_hash", hash((hash_but_inputs, self.children)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operator):
            return NotImplemented
        return _equal_trees(self, other, set())

    def __hash__(self) -> int:
        return self._hash

    @property
    def names(self) -> tuple[str, ...]:
        """The output columns' names, in order."""
        return self._names

    @property
    def children(self) -> tuple["Node", ...]:
        """The inputs of the operator."""
        return ()

    def own_values(self) -> tuple[object, ...]:
        """All that makes the operator but its inputs."""
        return tuple([getattr(self, name) for name in _fields_but_inputs(cast("Any", type(self)))])

    def over(self, **inputs: object) -> Self:
        """The operator over inputs that have the columns of its own: nothing is checked again."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **inputs)
        copy.__dict__["_hash"] = hash((self._own_hash, copy.children))
        return copy

    def _output(self) -> Schema:
        """The output columns, after everything about the node was checked."""
        raise NotImplementedError

    def __str__(self) -> str:
        from viewkeep.query.show import print_tree

        return print_tree(cast("Node", self))


@dataclass(frozen=True, eq=False)
class Unary(Operator):
    """An operator with one input."""

    child: "Node"

    @property
    def children(self) -> tuple["Node", ...]:
        """The input."""
        return (self.child,)


@dataclass(frozen=True, eq=False)
class Binary(Operator):
    """An operator with two inputs."""

    left: "Node"
    right: "Node"

    @property
    def children(self) -> tuple["Node", ...]:
        """Both inputs."""
        return (self.left, self.right)


def _equal_trees(first: Operator, second: Operator, equal_pairs: set[tuple[int, int]]) -> bool:
    """Equality that compares each pair of shared subtrees once."""
    pair = (id(first), id(second))
    if first is second or pair in equal_pairs:
        return True
    if type(first) is not type(second) or hash(first) != hash(second):
        return False
    inputs = first.children, second.children
    if len(inputs[0]) != len(inputs[1]):
        return False
    if not all(_equal_trees(a, b, equal_pairs) for a, b in zip(*inputs, strict=True)):
        return False
    equal_pairs.add(pair)
    return first.own_values() == second.own_values()
