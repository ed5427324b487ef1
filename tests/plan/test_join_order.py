"""In which order the inputs of a view are joined."""

from viewkeep.plan.tree import NodeInput
from viewkeep.plan.view_tree import join_all
from viewkeep.query.constraints import Dependency

P = NodeInput("P", ("x", "y"), False, frozenset({0}))
G = NodeInput("G", ("x", "z"), False, frozenset({1}))
H = NodeInput("H", ("z", "y"), False, frozenset({2}))


def order(*inputs, bound, rules=()):
    joins = join_all(list(inputs), set(bound), True, rules)
    return [(join.opens, *(access.map for access in join.accesses)) for join in joins]


def test_inputs_that_open_the_same_variable_are_intersected():
    assert order(P, H, bound="xz") == [(("y",), "P", "H")]


def test_dependencies_are_followed_before_other_inputs_open_variables():
    """x -> z -> y finds one y; P alone could pair x with any number of them."""
    rules = (Dependency(frozenset("x"), "z", 1), Dependency(frozenset("z"), "y", 2))
    assert order(P, G, H, bound="x")[0] == (("y",), "P")
    assert order(P, G, H, bound="x", rules=rules) == [(("z",), "G"), (("y",), "P", "H")]
