"""Every verdict equals a brute-force check from the definition, on random queries."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis import brute_force
from tests.strategies import guarded_fds, queries, renamings, static_relations
from viewkeep.analysis import analyze, analyze_query
from viewkeep.analysis.access_pattern import fracture
from viewkeep.analysis.edge_cover import edge_cover
from viewkeep.analysis.exponents import HALF
from viewkeep.analysis.order_search import best_order, best_width
from viewkeep.analysis.reduct import reduct
from viewkeep.analysis.static_dynamic import static_preprocessing
from viewkeep.analysis.variable_order import JoinShape
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints
from viewkeep.query.notation.parse import parse

plain = queries(inputs=False, aggregates=False, conditions=False)
small = queries(
    max_atoms=4, variables=tuple("abcde"), inputs=False, aggregates=False, conditions=False
)


@given(plain)
@settings(max_examples=300)
def test_classes_follow_their_definitions(query):
    analysis = analyze_query(query)
    assert analysis.hierarchical == brute_force.hierarchical(query)
    assert analysis.q_hierarchical == brute_force.q_hierarchical(query)
    assert analysis.delta_rank == brute_force.delta_rank(query)


@given(plain)
@settings(max_examples=150)
def test_acyclicity_means_that_a_join_tree_exists(query):
    analysis = analyze_query(query)
    schemas = [atom.schema for atom in query.atoms]
    head = frozenset(query.free)
    assert analysis.alpha_acyclic == brute_force.acyclic(schemas)
    free_connex = brute_force.acyclic(schemas) and brute_force.acyclic([*schemas, head])
    assert analysis.free_connex == free_connex


@given(queries(aggregates=False, conditions=False))
@settings(max_examples=200)
def test_tractable_access_patterns_follow_the_definition(query):
    split = brute_fracture(query)
    tractable = (
        brute_force.hierarchical(split)
        and brute_force.dominant(split, split.free)
        and brute_force.dominant(split, split.inputs)
    )
    analysis = analyze_query(query)
    assert analysis.tractable_access_pattern == tractable
    assert len(analysis.fracture.inputs) == len(split.inputs)
    assert [len(set(a.variables)) for a in fracture(query).atoms] == [
        len(set(a.variables)) for a in split.atoms
    ]


def brute_fracture(query: ConjunctiveQuery) -> ConjunctiveQuery:
    """Definition 4.7 step by step, naming the copies after the smallest atom they reach."""
    inputs = set(query.inputs)

    def component(start: int) -> int:
        reached = {start}
        for _ in query.atoms:
            names = {v for i in reached for v in query.atoms[i].variables} - inputs
            reached |= {i for i, a in enumerate(query.atoms) if names & set(a.variables)}
        return min(reached)

    def name(variable: str, atom: int) -> str:
        return f"{variable}@{component(atom)}" if variable in inputs else variable

    atoms = [
        type(a)(a.relation, tuple(name(v, i) for v in a.variables))
        for i, a in enumerate(query.atoms)
    ]
    fresh = {v for a in atoms for v in a.variables if "@" in v}
    return ConjunctiveQuery("Q", query.outputs, tuple(atoms), tuple(sorted(fresh)))


@given(st.data())
@settings(max_examples=150)
def test_the_reduct_extends_every_atom_to_its_closure(data):
    query = data.draw(plain)
    fds = data.draw(guarded_fds(query))
    query = query.with_constraints(Constraints.parse(fds=fds))
    everything = set(range(len(query.atoms)))
    extended = reduct(query)
    for atom, grown in zip(query.atoms, extended.atoms, strict=True):
        assert grown.schema == brute_force.closed(query, atom.schema, everything)
    assert set(extended.free) == brute_force.closed(query, query.free, everything)


@given(st.frozensets(st.sampled_from("abcde"), min_size=1), st.data())
@settings(max_examples=100)
def test_edge_covers_are_optimal(target, data):
    edges = data.draw(
        st.lists(st.frozensets(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=4)
    )
    edges.append(target - frozenset().union(*edges))
    edges = [edge for edge in edges if edge]
    assert edge_cover(target, edges) == brute_force.edge_cover(target, edges)


@given(st.data())
@settings(max_examples=120)
def test_the_search_finds_the_best_variable_order(data):
    query = data.draw(small)
    static = data.draw(static_relations(query))
    query = query.with_constraints(Constraints.parse(static=static))
    found = best_order(JoinShape.of(query))
    assert found.exact
    assert (found.update, found.width) == brute_force.best_costs(query)


@given(st.data())
@settings(max_examples=120)
def test_dependencies_only_help_the_search(data):
    """With dependencies more orders are allowed than `free_top` admits, never fewer."""
    query = data.draw(small)
    fds = data.draw(guarded_fds(query))
    query = query.with_constraints(Constraints.parse(fds=fds))
    found = best_order(JoinShape.of(query))
    update, _ = brute_force.best_costs(query)
    assert found.update <= update
    claimed = [node for root in found.roots for node in root.walk()]
    order = _ancestors(found.roots)
    assert len(claimed) == len(query.variables)
    assert brute_force.order_costs(query, order) == (found.update, found.width)


def _ancestors(roots, above=()):
    order = {}
    for root in roots:
        order[root.variable] = above
        order |= _ancestors(root.children, (*above, root.variable))
    return order


@given(plain)
@settings(max_examples=200)
def test_constant_updates_without_constraints_are_the_q_hierarchical_queries(query):
    """recent_increments_in_ivm, theorem 4.1, seen through variable orders."""
    assert (best_order(JoinShape.of(query)).update == 0) == brute_force.q_hierarchical(query)


@given(plain)
@settings(max_examples=300)
def test_the_delta_rank_is_the_update_exponent_of_hierarchical_queries(query):
    rank = brute_force.delta_rank(query)
    if rank is not None:
        assert best_order(JoinShape.of(query)).update == rank


@given(plain)
@settings(max_examples=200)
def test_free_connex_queries_are_those_of_width_one(query):
    schemas = [atom.schema for atom in query.atoms]
    free_connex = brute_force.acyclic(schemas) and brute_force.acyclic(
        [*schemas, frozenset(query.free)]
    )
    assert (best_width(JoinShape.of(query)) <= 1) == free_connex


@given(st.data())
@settings(max_examples=200)
def test_a_q_hierarchical_reduct_gives_constant_updates(data):
    """recent_increments_in_ivm, theorem 4.11, where a view tree follows the dependencies."""
    query = data.draw(plain)
    analysis = analyze(query, fds=data.draw(guarded_fds(query)))
    if brute_force.q_hierarchical(analysis.reduct):
        follows = best_order(JoinShape.of(analysis.query)).update == 0
        assert analysis.verdicts["reduct_q_hierarchical"].holds == follows
    if analysis.verdicts["reduct_q_hierarchical"].holds:
        assert analysis.bounds.constant
        assert not analysis.bounds.amortized


@given(st.data())
@settings(max_examples=150)
def test_static_tractability_means_that_a_covering_view_tree_exists(data):
    """recent_increments_in_ivm, section 4.5."""
    query = data.draw(small)
    query = query.with_constraints(Constraints.parse(static=data.draw(static_relations(query))))
    update, width = brute_force.best_costs(query)
    cost = static_preprocessing(query)
    if update == 0:
        assert cost == max(width, Fraction(1))
    else:
        assert cost in (None, "exponential")


@given(st.data())
@settings(max_examples=200)
def test_renaming_and_reordering_change_no_verdict(data):
    query = data.draw(queries(aggregates=False, conditions=False))
    fds = data.draw(guarded_fds(query))
    static = data.draw(static_relations(query))
    insert_only = data.draw(st.booleans())
    renaming = data.draw(renamings(query))
    before = analyze(query, fds=fds, static=static, insert_only=insert_only)
    after = analyze_query(renaming.query(before.query))
    assert {n: (v.holds, v.value) for n, v in before.verdicts.items()} == {
        n: (v.holds, v.value) for n, v in after.verdicts.items()
    }
    assert before.bounds == after.bounds
    assert before.strategy == after.strategy


@given(st.data())
@settings(max_examples=200)
def test_more_dependencies_never_make_the_bounds_worse(data):
    query = data.draw(queries(aggregates=False, conditions=False))
    fds = data.draw(guarded_fds(query))
    more = data.draw(guarded_fds(query))
    before = analyze(query, fds=fds).bounds
    after = analyze(query, fds=fds + more).bounds
    assert _worst(after) <= _worst(before)


@given(st.data())
@settings(max_examples=100)
def test_static_relations_never_make_the_bounds_worse(data):
    query = data.draw(queries(aggregates=False, conditions=False))
    static = data.draw(static_relations(query))
    assert _worst(analyze(query, static=static).bounds) <= _worst(analyze(query).bounds)


def _worst(bounds) -> Fraction:
    epsilon = bounds.best_epsilon
    return bounds.worst(HALF if epsilon is None else epsilon)


@given(queries())
@settings(max_examples=200)
def test_every_query_has_bounds_and_a_reason(query):
    analysis = analyze_query(query)
    joined = {"recompute"} if query.inputs else set()
    assert analysis.strategy in {"viewtree", "delta", "epsilon"} | joined
    assert analysis.route.reason
    assert all(verdict.because for verdict in analysis.verdicts.values())
    assert analysis.bounds.worst(HALF) >= 0
    if analysis.lower_bound is not None and analysis.lower_bound.conjecture:
        assert _worst(analysis.bounds) >= analysis.lower_bound.update
    assert parse(str(query)) == query
