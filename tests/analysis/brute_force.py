"""The properties straight from their definitions, by trying everything: slow and obvious."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product

from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import dependencies


def atoms(query: ConjunctiveQuery, variable: str) -> set[int]:
    return {i for i, atom in enumerate(query.atoms) if variable in atom.variables}


def hierarchical(query: ConjunctiveQuery) -> bool:
    """Definition 4.2."""
    return all(
        atoms(query, x) <= atoms(query, y)
        or atoms(query, y) <= atoms(query, x)
        or not atoms(query, x) & atoms(query, y)
        for x in query.variables
        for y in query.variables
    )


def dominant(query: ConjunctiveQuery, kind: Iterable[str]) -> bool:
    """Definition 4.7: if A is of the kind and B dominates A, then B is of the kind."""
    chosen = set(kind)
    return all(
        b in chosen for a in chosen for b in query.variables if atoms(query, a) < atoms(query, b)
    )


def q_hierarchical(query: ConjunctiveQuery) -> bool:
    return hierarchical(query) and dominant(query, query.free)


def delta_rank(query: ConjunctiveQuery) -> int | None:
    """The least i such that i atoms of X beside A cover the free variables in the atoms of X."""
    if not hierarchical(query):
        return None
    return max((_covering(query, x, a) for x in query.bound for a in atoms(query, x)), default=0)


def _covering(query: ConjunctiveQuery, variable: str, first: int) -> int:
    own = atoms(query, variable)
    wanted = {v for i in own for v in query.atoms[i].variables if v in query.free}
    for size in range(len(own) + 1):
        for others in combinations(own, size):
            if wanted <= {v for i in (first, *others) for v in query.atoms[i].variables}:
                return size
    raise AssertionError("all atoms together cover")


def acyclic(edges: list[frozenset[str]]) -> bool:
    """Some tree over the edges has, for each variable, a connected set of edges (join tree)."""
    return any(_is_join_tree(edges, tree) for tree in _trees(len(edges)))


def _trees(size: int) -> Iterator[list[tuple[int, int]]]:
    """All labelled trees: every node but the first picks a parent, without cycles."""
    for parents in product(range(size), repeat=size - 1):
        tree = list(enumerate(parents, start=1))
        if _connected(set(range(size)), tree):
            yield tree


def _connected(nodes: set[int], tree: list[tuple[int, int]]) -> bool:
    if not nodes:
        return True
    reached, changed = {min(nodes)}, True
    while changed:
        more = {j for e in tree for i, j in (e, e[::-1]) if i in reached and j in nodes}
        changed = not more <= reached
        reached |= more
    return reached == nodes


def _is_join_tree(edges: list[frozenset[str]], tree: list[tuple[int, int]]) -> bool:
    variables = frozenset().union(*edges)
    return all(_connected({i for i, e in enumerate(edges) if v in e}, tree) for v in variables)


def edge_cover(target: frozenset[str], edges: Iterable[frozenset[str]]) -> Fraction:
    """The least total weight on the edges that covers the target."""
    return _edge_cover(target, frozenset(edge & target for edge in edges if edge & target))


@cache
def _edge_cover(target: frozenset[str], distinct: frozenset[frozenset[str]]) -> Fraction:
    """The least vertex of {x >= 0, every target variable covered}, by trying all bases."""
    edges = sorted(distinct, key=sorted)
    rows = [([Fraction(v in e) for e in edges], Fraction(1)) for v in sorted(target)]
    rows += [
        ([Fraction(i == j) for j in range(len(edges))], Fraction(0)) for i in range(len(edges))
    ]
    values = [
        sum(solution, Fraction(0))
        for basis in combinations(rows, len(edges))
        if (solution := _solve(basis)) is not None
        and all(sum(a * x for a, x in zip(row, solution, strict=True)) >= b for row, b in rows)
    ]
    return min(values)


def _solve(basis: tuple[tuple[list[Fraction], Fraction], ...]) -> list[Fraction] | None:
    matrix = [[*row, right] for row, right in basis]
    for i in range(len(matrix)):
        pivot = next((r for r in range(i, len(matrix)) if matrix[r][i]), None)
        if pivot is None:
            return None
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        matrix[i] = [value / matrix[i][i] for value in matrix[i]]
        for r in range(len(matrix)):
            if r != i and matrix[r][i]:
                factor = matrix[r][i]
                matrix[r] = [a - factor * b for a, b in zip(matrix[r], matrix[i], strict=True)]
    return [row[-1] for row in matrix]


Order = dict[str, tuple[str, ...]]
"""For each variable its ancestors, root first."""


def orders(query: ConjunctiveQuery) -> Iterator[Order]:
    """All variable orders in which siblings share no atom, from all permutations."""
    seen = set()
    for sequence in permutations(query.variables):
        order = _order(query, sequence, ())
        key = tuple(sorted(order.items()))
        if key not in seen:
            seen.add(key)
            yield order


def _order(query: ConjunctiveQuery, sequence: tuple[str, ...], above: tuple[str, ...]) -> Order:
    order: Order = {}
    rest = list(sequence)
    while rest:
        part = {rest[0]}
        while (
            more := {v for a in query.atoms if a.schema & part for v in a.schema & set(rest)} - part
        ):
            part |= more
        members = tuple(v for v in rest if v in part)
        order[members[0]] = above
        order |= _order(query, members[1:], (*above, members[0]))
        rest = [v for v in rest if v not in part]
    return order


def free_top(query: ConjunctiveQuery, order: Order) -> bool:
    return all(up in query.free for v in query.free for up in order[v])


def closed(query: ConjunctiveQuery, variables: Iterable[str], below: set[int]) -> frozenset[str]:
    known = set(variables)
    rules = [rule for rule in dependencies(query) if rule.guard in below]
    for _ in query.variables:
        known |= {rule.dependent for rule in rules if rule.determinant <= known}
    return frozenset(known)


def order_costs(query: ConjunctiveQuery, order: Order) -> tuple[Fraction, Fraction]:
    """Update exponent and width of one order, from the formulas."""
    update = width = Fraction(0)
    for variable, ancestors in order.items():
        subtree = {v for v in order if v == variable or variable in order[v]}
        below = {i for i, a in enumerate(query.atoms) if a.schema & subtree}
        depends_on = {v for i in below for v in query.atoms[i].variables if v in ancestors}
        bag = frozenset({variable} | depends_on)
        edges = [closed(query, query.atoms[i].schema, below) for i in below]
        width = max(width, edge_cover(bag, edges))
        for i in below:
            if query.atoms[i].relation not in query.constraints.static:
                known = closed(query, query.atoms[i].schema, below)
                update = max(update, edge_cover(bag - known, edges))
    return update, width


def best_costs(query: ConjunctiveQuery) -> tuple[Fraction, Fraction]:
    """The least update exponent over free-top orders, and the least width that goes with it."""
    return min(order_costs(query, order) for order in orders(query) if free_top(query, order))
