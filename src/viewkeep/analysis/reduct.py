"""The Sigma-reduct under functional dependencies (recent_increments_in_ivm, definition 4.9)."""

from dataclasses import replace

from viewkeep.analysis.order_search import best_order
from viewkeep.analysis.q_hierarchical import q_hierarchical
from viewkeep.analysis.variable_order import JoinShape, uncovered_variable
from viewkeep.analysis.verdict import Verdict
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.constraints import Dependency, closure, dependencies


def reduct(query: ConjunctiveQuery) -> ConjunctiveQuery:
    """The query with every atom, and the head, extended to its closure under the dependencies.

    Atoms that grow get a prime, several of one relation more and more of them.

    >>> from viewkeep.query.constraints import Constraints
    >>> from viewkeep.query.notation.parse import parse
    >>> query = parse("Q(z, y, x, w) = R(x, w) * S(x, y) * T(y, z)")
    >>> print(reduct(query.with_constraints(Constraints.parse(fds=["x -> y", "y -> z"]))))
    Q(z, y, x, w) = R'(x, w, y, z) * S'(x, y, z) * T(y, z)
    """
    rules = [rule for rule in dependencies(query) if rule.bound == 1]
    return extend(query, rules)


def extend(query: ConjunctiveQuery, rules: list[Dependency]) -> ConjunctiveQuery:
    """Extend atoms by all the rules and the head by those with bound one.

    The head follows exact dependencies only: a bounded degree could repeat an output tuple.
    """
    exact = [rule for rule in rules if rule.bound == 1]
    names = set(query.relations)
    atoms = [_extend_atom(query, atom, rules, names) for atom in query.atoms]
    head = closure(query.free, exact)
    added = tuple(v for v in query.variables if v in head and v not in query.free)
    return ConjunctiveQuery(query.name, query.outputs + added, tuple(atoms), query.inputs)


def _extend_atom(
    query: ConjunctiveQuery, atom: Atom, rules: list[Dependency], names: set[str]
) -> Atom:
    closed = closure(atom.schema, rules)
    added = tuple(v for v in query.variables if v in closed and v not in atom.schema)
    if not added:
        return atom
    name = atom.relation + "'"
    while name in names:
        name += "'"
    names.add(name)
    return Atom(name, atom.variables + added)


def reduct_q_hierarchical(query: ConjunctiveQuery) -> Verdict:
    """Whether the reduct is q-hierarchical and its view tree serves the query itself: then the
    query has constant update time and delay."""
    name = "reduct_q_hierarchical"
    if not dependencies(query):
        base = q_hierarchical(query)
        because = f"no dependencies, the reduct is the query itself; {base.because}"
        return Verdict(name, base.holds, because, base.variables, base.atoms)
    exact = [rule for rule in dependencies(query) if rule.bound == 1]
    return extended_verdict(name, query, exact)


def extended_verdict(name: str, query: ConjunctiveQuery, rules: list[Dependency]) -> Verdict:
    """Whether the query extended by the rules is q-hierarchical, and a view tree follows them.

    Theorem 4.11 alone is not enough where the atom that guards a dependency changes by itself:
    for R(a, c) * S(f, a) * V(c, f) with a -> c and c -> a, one update to R pairs all f anew.
    """
    extended = extend(query, rules)
    base = q_hierarchical(extended)
    shape = JoinShape.of(replace(query, outputs=query.free, inputs=()))
    shape = replace(shape, rules=tuple(rules))
    best = best_order(shape)
    if not base or best.update == 0:
        return Verdict(name, base.holds, f"{extended}: {base.because}", base.variables, base.atoms)
    variable, atom, missing = uncovered_variable(shape, best.roots)
    label = query.labels[atom]
    because = (
        f"{extended}: q-hierarchical, but in the best view tree {label} does not determine "
        f"{', '.join(missing)} in the view of {variable}"
    )
    return Verdict(name, False, because, (variable, *missing), (label,))
