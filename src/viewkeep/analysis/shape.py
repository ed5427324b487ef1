"""The join shape on which variable orders of a query are searched."""

from viewkeep.analysis.access_pattern import fracture
from viewkeep.analysis.variable_order import JoinShape
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Dependency, dependencies


def join_shape(query: ConjunctiveQuery) -> JoinShape:
    """The shape of the query's fracture, with its dependencies carried over.

    Inputs are given at enumeration, so parts that only inputs connect are independent. Without
    inputs the fracture is the query itself.
    """
    if not query.inputs:
        return JoinShape.of(query)
    split = fracture(query)
    rename = [
        dict(zip(atom.variables, copy.variables, strict=True))
        for atom, copy in zip(query.atoms, split.atoms, strict=True)
    ]
    static = query.constraints.static
    rules = [_rule_of_component(rule, rename[rule.guard]) for rule in dependencies(query)]
    plain = JoinShape.of(split)
    dynamic = tuple(atom.relation not in static for atom in query.atoms)
    return JoinShape(plain.atoms, plain.level_of, dynamic, tuple(rules))


def _rule_of_component(rule: Dependency, names: dict[str, str]) -> Dependency:
    """A dependency in the names of its guard's component; its variables are the guard's."""
    determinant = frozenset(names[v] for v in rule.determinant)
    return Dependency(determinant, names[rule.dependent], rule.guard, rule.bound)
