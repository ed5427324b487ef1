"""The triangles of a graph, counted while edges come and go.

An undirected edge leads from the node that was seen first to the other one, so that no edge closes
a cycle and every triangle is met once; a directed cycle is met once from each of its nodes:

    undirected  Q() = E(a, b) * E(b, c) * E(a, c)
    directed    Q() = E(a, b) * E(b, c) * E(c, a)  =  3 * cycles

With heavy and light parts, an edge among N takes O(N^max(eps, 1 - eps)) steps, amortized, so
O(N^1/2) at eps = 1/2, which is optimal unless the OMv conjecture fails (triangle_ivm_epsilon,
Theorem 3). The count is read in constant time.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import count, repeat
from threading import RLock
from typing import Any

from viewkeep.errors import SchemaError
from viewkeep.maintainer import Maintainer, maintain

TRIANGLES = "Triangles() = E(a, b) * E(b, c) * E(a, c)"
CYCLES = "Cycles() = E(a, b) * E(b, c) * E(c, a)"

Edge = tuple[Hashable, Hashable]


class TriangleCounter:
    """The triangles of a graph, or the directed 3-cycles with `directed=True`.

    Nodes are any hashable values. Edges may be parallel: a triangle then counts as often as one
    can choose its three edges. An edge that is refused changes nothing. Threads that share a
    counter take turns.

    >>> friends = TriangleCounter([("Ada", "Ben"), ("Ben", "Cleo")])
    >>> friends.triangles_at_edge("Cleo", "Ada")  # how many would it close?
    1
    >>> friends.add("Cleo", "Ada")
    >>> friends.count, friends.clustering
    (1, 1.0)
    """

    def __init__(
        self,
        edges: Iterable[Edge] | Mapping[Edge, int] = (),
        directed: bool = False,
        epsilon: float = 0.5,
        space: str = "fast",
        strategy: str = "epsilon",
    ) -> None:
        if not isinstance(directed, bool):
            raise SchemaError(f"directed={directed!r}: expected True or False")
        self.directed = directed
        query = CYCLES if directed else TRIANGLES
        self.maintainer: Maintainer = maintain(
            query, strategy=strategy, epsilon=epsilon, space=space
        )
        self._lock = RLock()
        self._nodes: dict[Hashable, _Node] = {}
        self._ranks = count()
        self._size = self._wedges = 0
        self.add_all(edges)

    def __repr__(self) -> str:
        kind = "cycles" if self.directed else "triangles"
        return f"<TriangleCounter: {kind}={self.count}, edges={len(self)}>"

    # --- changing ---------------------------------------------------------------------------------

    def add(self, u: Hashable, v: Hashable, multiplicity: int = 1) -> None:
        """Add an edge, from `u` to `v` if the graph is directed; or several parallel ones."""
        self._check_edge(u, v, multiplicity)
        with self._lock:
            self._change_edge(u, v, multiplicity)

    def remove(self, u: Hashable, v: Hashable, multiplicity: int = 1) -> None:
        """Take an edge away, or several parallel ones; as many must be there."""
        self._check_edge(u, v, multiplicity)
        with self._lock:
            present = self.multiplicity(u, v)
            if present < multiplicity:
                problem = f"{multiplicity} to remove, but {present} there"
                raise SchemaError(f"edge ({u!r}, {v!r}): {problem}")
            self._change_edge(u, v, -multiplicity)

    def add_all(self, edges: Iterable[Edge] | Mapping[Edge, int]) -> None:
        """Add pairs of nodes, or multiplicities by pair; all or, if one is refused, none.

        The first edges of an empty graph are counted in one pass, in O(N^3/2).
        """
        checked = list(_edges_of(edges))
        for (u, v), multiplicity in checked:
            self._check_edge(u, v, multiplicity)
        rows: list[Edge] = []
        with self._lock:
            for (u, v), multiplicity in checked:
                rows.extend(repeat(self._note_neighbours(u, v, multiplicity), multiplicity))
            if rows:
                self.maintainer.load({"E": rows})

    def _change_edge(self, u: Hashable, v: Hashable, multiplicity: int) -> None:
        self.maintainer.update("E", self._row(u, v), multiplicity)
        self._note_neighbours(u, v, multiplicity)

    def _check_edge(self, u: Hashable, v: Hashable, multiplicity: int) -> None:
        """Refuse what is no edge of a graph, before anything changes."""
        self._check_pair(u, v)
        if type(multiplicity) is not int or multiplicity < 1:
            problem = f"multiplicity {multiplicity!r} is not a positive whole number"
            raise SchemaError(f"edge ({u!r}, {v!r}): {problem}")

    def _check_pair(self, u: Hashable, v: Hashable) -> None:
        _check_node(u)
        _check_node(v)
        if u == v:
            raise SchemaError(f"edge ({u!r}, {v!r}) is a loop: a triangle has three nodes")

    # --- the graph --------------------------------------------------------------------------------

    @property
    def edges(self) -> dict[Edge, int]:
        """All edges with their multiplicities; undirected ones from the node seen first."""
        with self._lock:
            return {
                self._row(u, v): multiplicity
                for u, node in self._nodes.items()
                for v, multiplicity in node.following.items()
            }

    def __len__(self) -> int:
        """The number of edges, parallel ones counted once."""
        return self._size

    def __contains__(self, edge: object) -> bool:
        match edge:
            case (u, v):
                return self.multiplicity(u, v) > 0
            case _:
                return False

    def multiplicity(self, u: Hashable, v: Hashable) -> int:
        """How many parallel edges there are between two nodes, or from one to the other."""
        node = self._nodes.get(u)
        return node.following.get(v, 0) if node else 0

    def degree(self, v: Hashable) -> int:
        """The number of edges at a node, parallel ones each, whichever way they lead."""
        node = self._nodes.get(v)
        if node is None:
            return 0
        return node.leaving + node.arriving if self.directed else node.leaving

    def _row(self, u: Hashable, v: Hashable) -> Edge:
        """The tuple of an edge: if undirected, from the node seen first to the other one."""
        if self.directed:
            return u, v
        first, second = self._nodes.get(u), self._nodes.get(v)
        turned = second is not None and (first is None or second.rank < first.rank)
        return (v, u) if turned else (u, v)

    def _note_neighbours(self, u: Hashable, v: Hashable, change: int) -> Edge:
        """Change neighbours, degrees and wedges; nodes without edges are forgotten."""
        row, before = self._row(u, v), self.multiplicity(u, v)
        tail, head = self._node(row[0]), self._node(row[1])
        back = head.following.get(row[0], 0)  # a wedge does not return where it came from
        self._wedges += change * (tail.arriving + head.leaving - 2 * back)
        tail.lead_to(row[1], head, change)
        if not self.directed:
            head.lead_to(row[0], tail, change)
        self._size += bool(before + change) - bool(before)
        for name, node in zip(row, (tail, head), strict=True):
            if not node.leaving and not node.arriving:
                del self._nodes[name]
        return row

    def _node(self, name: Hashable) -> "_Node":
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = _Node(next(self._ranks))
        return node

    # --- reading ----------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """The number of triangles, or of directed cycles; in constant time."""
        count: int = self.maintainer.value()
        return count // 3 if self.directed else count

    def triangles_at_edge(self, u: Hashable, v: Hashable) -> int:
        """How many triangles one edge closes, whether it is there or not; costs what `add` does.

        With parallel edges, this is the number for one of them.
        """
        self._check_pair(u, v)
        # An edge is the first, second and third of its triangles; of a cycle, one is like another.
        atoms, change = range(1 if self.directed else 3), self.maintainer.output_change
        with self._lock:
            row = self._row(u, v)
            return sum(change(atom, row, 1).get((), 0) for atom in atoms)

    def triangles_at_node(self, v: Hashable) -> int:
        """How many triangles a node is in; costs one `triangles_at_edge` per neighbour.

        In a directed graph that is per neighbour to which an edge leads.
        """
        with self._lock:
            node = self._nodes.get(v)
            following = node.following.items() if node else ()
            count = sum(
                multiplicity * self.triangles_at_edge(v, neighbour)
                for neighbour, multiplicity in following
            )
        return count if self.directed else count // 2

    @property
    def wedges(self) -> int:
        """The number of paths of two edges between different nodes; maintained.

        Directed ones if the graph is. Parallel edges make as many paths as there are choices.
        """
        return self._wedges

    @property
    def clustering(self) -> float:
        """The global clustering coefficient: 3 * triangles / wedges, 0 where there are none.

        It is the share of wedges that are closed. With parallel edges it may be above 1: three
        edges are chosen for a triangle, but two for a wedge.
        """
        with self._lock:
            return 3 * self.count / self._wedges if self._wedges else 0.0

    @property
    def steps(self) -> int:
        """Elementary steps so far, questions included: what the bounds are checked with."""
        return self.maintainer.steps


class _Node:
    """The edges at a node: those that leave by where they lead, and how many arrive.

    The rank tells in which order nodes were seen. Undirected edges both leave and arrive.
    """

    __slots__ = ("arriving", "following", "leaving", "rank")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.following: dict[Hashable, int] = {}
        self.leaving = self.arriving = 0

    def lead_to(self, name: Hashable, node: "_Node", change: int) -> None:
        self.leaving += change
        node.arriving += change
        total = self.following.get(name, 0) + change
        if total:
            self.following[name] = total
        else:
            del self.following[name]


def count_triangles(edges: Iterable[Edge] | Mapping[Edge, int], directed: bool = False) -> int:
    """Count the triangles of N edges in O(N^3/2), by adding one edge at a time to an empty graph.

    That is worst-case optimal for listing them, and comes for free from the time of an update.

    >>> count_triangles([(1, 2), (2, 3), (3, 1), (3, 4), (4, 1)])
    2
    """
    counter = TriangleCounter(directed=directed)
    for (u, v), multiplicity in _edges_of(edges):
        counter.add(u, v, multiplicity)
    return counter.count


def _edges_of(edges: Any) -> Iterator[tuple[Edge, int]]:
    """Pairs of nodes with their multiplicities."""
    if isinstance(edges, str | bytes) or not isinstance(edges, Iterable):
        raise SchemaError(f"expected edges, not {type(edges).__name__}")
    weighted = edges.items() if isinstance(edges, Mapping) else ((edge, 1) for edge in edges)
    for edge, multiplicity in weighted:
        if not isinstance(edge, tuple | list) or len(edge) != 2:
            raise SchemaError(f"{edge!r} is no edge: expected a pair of nodes")
        yield (edge[0], edge[1]), multiplicity


def _check_node(node: object) -> None:
    try:
        hash(node)
        usable = bool(node == node) and node is not None
    except TypeError:
        raise SchemaError(f"node {node!r} cannot be hashed and compared") from None
    if not usable:
        problem = "stands for nothing" if node is None else "is equal to nothing"
        raise SchemaError(f"node {node!r} {problem}: give the nodes names or numbers")
