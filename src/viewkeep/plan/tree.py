"""View trees: a variable order with atoms at the leaves and a view per variable.

For a variable X with children C1, ..., Ck (atoms, or views of the variables below):

    X bound   V_X(dep) = sum over X of lift(X) * C1 * ... * Ck
    X on top  V'_X(bag) is live where all children are,  V_X(dep) = how many X are live in V'_X

"On top" are the free variables and whatever stands above them. Counting live values instead of
summing payloads keeps enumeration exact even while multiplicities are negative, and lets a change
stop as soon as nothing appears or vanishes any more.
"""

from dataclasses import dataclass, field

from viewkeep.analysis.variable_order import BOUND, JoinShape, VariableOrder


@dataclass(frozen=True, slots=True)
class Leaf:
    """An atom: its position, its map's name and its distinct variables."""

    atom: int
    name: str
    key: tuple[str, ...]


@dataclass(slots=True)
class TreeNode:
    """A variable with its views; `top` tells whether output is read from it.

    In `upper` the variable is summed away, or counted. Nodes may share it: such alternatives
    add up, and are one input of the node above.
    """

    variable: str
    depends_on: tuple[str, ...]
    leaves: list[Leaf]
    children: list["TreeNode"]
    top: bool
    upper: str
    join_view: str
    parent: "TreeNode | None" = None
    atoms: frozenset[int] = field(default=frozenset())

    @property
    def bag(self) -> tuple[str, ...]:
        """The variables of the join view."""
        return (*self.depends_on, self.variable)

    @property
    def inputs(self) -> list["NodeInput"]:
        """What the node joins: its atoms and the views of the nodes below."""
        leaves = [NodeInput(x.name, x.key, False, frozenset({x.atom})) for x in self.leaves]
        below = [NodeInput(c.upper, c.depends_on, c.top, c.atoms) for c in self.children]
        return leaves + list(dict.fromkeys(below))

    @property
    def joined(self) -> str:
        """The join view, or the only input where that is the same."""
        return self.inputs[0].name if self.is_alias else self.join_view

    @property
    def joined_key(self) -> tuple[str, ...]:
        """The key of the join view: an input has its variables in its own order."""
        return self.inputs[0].key if self.is_alias else self.bag

    @property
    def is_alias(self) -> bool:
        """Whether the join of the inputs is just the one input there is."""
        inputs = self.inputs
        return len(inputs) == 1 and set(inputs[0].key) == set(self.bag)


@dataclass(frozen=True, slots=True)
class NodeInput:
    """One factor of a join: a map, its key, whether it counts live values, the atoms in it."""

    name: str
    key: tuple[str, ...]
    live: bool
    atoms: frozenset[int]


@dataclass(frozen=True, slots=True)
class Tree:
    """A forest of nodes, and the atoms without variables beside it."""

    roots: tuple[TreeNode, ...]
    nullary: tuple[Leaf, ...]
    leaves: tuple[Leaf, ...]

    def nodes(self) -> list[TreeNode]:
        """All nodes, parents before children."""
        nodes = list(self.roots)
        for node in nodes:
            nodes.extend(node.children)
        return nodes

    def home(self, leaf: Leaf) -> TreeNode | None:
        """The node at which an atom hangs."""
        return next((node for node in self.nodes() if leaf in node.leaves), None)


def build_tree(
    shape: JoinShape, order: tuple[VariableOrder, ...], leaves: tuple[Leaf, ...]
) -> Tree:
    """The view tree of a variable order; each atom hangs below its lowest variable."""
    roots = tuple(_tree_node(shape, root, leaves, None) for root in order)
    return Tree(roots, tuple(leaf for leaf in leaves if not leaf.key), leaves)


def _tree_node(
    shape: JoinShape, order: VariableOrder, leaves: tuple[Leaf, ...], parent: TreeNode | None
) -> TreeNode:
    below = {each.variable for child in order.children for each in child.walk()}
    node_leaves = [x for x in leaves if order.variable in x.key and not below & set(x.key)]
    subtree = [each.variable for each in order.walk()]
    top = any(shape.levels[v] != BOUND for v in subtree)
    views = f"V_{order.variable}", f"V'_{order.variable}"
    node = TreeNode(order.variable, order.depends_on, node_leaves, [], top, *views, parent)
    node.children = [_tree_node(shape, child, leaves, node) for child in order.children]
    node.atoms = frozenset(x.atom for x in node_leaves).union(*(c.atoms for c in node.children))
    return node
