"""What the theory says of a view: the class of its query, bounds of strategies, what would help."""

from collections.abc import Iterator

from viewkeep.analysis.analyze import Analysis, analyze_query
from viewkeep.analysis.routes import best_route, cost_of, routes
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.programs.count_program import query_of_joined
from viewkeep.diffs.programs.grouped_join import GroupedJoin, grouped_join
from viewkeep.errors import QueryError
from viewkeep.plan.choose import plan_groups
from viewkeep.query.algebra import Distinct, GroupBy, Join, Node
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints, ForeignKey, Key
from viewkeep.query.flatten import NotConjunctive
from viewkeep.query.traversal import walk

CLASSES = ("q_hierarchical", "hierarchical", "free_connex", "alpha_acyclic")
"""From the best to the worst, by the names of verdicts."""

_NAMES = {"viewtree": "viewtree", "delta": "tuple", "epsilon": "epsilon"}
"""What strategies are called in lakes."""


def theory_of(view: Node) -> list[tuple[str, str]]:
    """Names and texts about the last group-by over joins of a view; none if there is none."""
    join = _last_join(optimize(view))
    if join is None:
        return []
    analysis = analyze_query(join.query)
    ranked = sorted(routes(join.query), key=cost_of)
    rows = [("query", str(join.query)), ("class", _query_class(analysis))]
    rows += [
        (_NAMES[r.strategy], f"{r.bounds}; {r.reason}{_theory_note(join, r.strategy)}")
        for r in ranked
    ]
    rows += _grouped_bound(join)
    rows.append(("lower", analysis.describe_lower_bound()))
    rows += [("better", text) for text in _improvements(join, analysis)]
    return rows


def query_of_view(view: Node) -> ConjunctiveQuery | None:
    """The conjunctive query of the last group-by over joins of a view, if there is one."""
    join = _last_join(optimize(view))
    return join.query if join is not None else None


def _grouped_bound(join: GroupedJoin) -> Iterator[tuple[str, str]]:
    """What heavy and light parts take for groups that are written, where they help."""
    if not join.keys:
        return
    try:
        program = plan_groups(query_of_joined(join))
    except (QueryError, NotConjunctive):
        return
    update = "N^2/3" if any(split.fixed for split in program.splits) else "N^1/2"
    yield (
        _NAMES["epsilon"],
        f"update O({update}) amortized for each group that a change may reach, "
        "for sums, counts and averages: heavy and light parts",
    )


def _theory_note(join: GroupedJoin, strategy: str) -> str:
    """Lakes write the output: that of hierarchical queries changes as fast by view trees."""
    return "; in one process only" if strategy == "epsilon" and join.keys else ""


def _last_join(view: Node) -> GroupedJoin | None:
    last = None
    for node in walk(view):
        if isinstance(node, Distinct):
            node = GroupBy(node.child, node.child.names, ())
        if isinstance(node, GroupBy) and any(isinstance(each, Join) for each in walk(node.child)):
            try:
                last = grouped_join(node)
            except NotConjunctive:
                continue
    return last


def _query_class(analysis: Analysis) -> str:
    name = next((each for each in CLASSES if analysis.verdicts[each].holds), "cyclic")
    reduct = analysis.verdicts["reduct_q_hierarchical"]
    by_reduct = name != CLASSES[0] and reduct.holds
    return f"{name.replace('_', '-')}{', q-hierarchical by its keys and dependencies' * by_reduct}"


def _improvements(join: GroupedJoin, analysis: Analysis) -> Iterator[str]:
    """Single declarations that make updates constant."""
    if analysis.bounds.constant:
        return
    tables = {scan.alias: scan.name for scan in join.scans}
    for alias, table in tables.items():
        if _has_constant_updates(join.query, Constraints(static=frozenset({alias}))):
            yield f"updates would take O(1) if {table} were declared static"
    for key in _possible_keys(join.query):
        if _has_constant_updates(join.query, Constraints(keys=(key,))):
            name = f"{tables[key.relation]}.{key.columns[0]}"
            yield f"updates would take O(1) if {name} were a key"

    foreign_keys = _helpful_foreign_keys(join.query)
    if foreign_keys:
        names = [
            f"{tables[each.relation]}.{each.columns[0]} -> "
            f"{tables[each.referenced]}.{each.referenced_columns[0]}"
            for each in foreign_keys
        ]
        kind = "foreign keys" if names[1:] else "a foreign key"
        yield f"updates would take O(1) amortized if {' and '.join(names)} were {kind}"


def _helpful_foreign_keys(query: ConjunctiveQuery) -> list[ForeignKey]:
    """References to keys that are joined which together make updates constant, none of them in
    vain; none if no references do."""
    chosen = list(_possible_foreign_keys(query))
    if not chosen or not _has_constant_updates(query, Constraints(foreign_keys=tuple(chosen))):
        return []
    for each in tuple(chosen):
        others = [other for other in chosen if other is not each]
        if _has_constant_updates(query, Constraints(foreign_keys=tuple(others))):
            chosen = others
    return chosen


def _possible_foreign_keys(query: ConjunctiveQuery) -> Iterator[ForeignKey]:
    """The columns that are joined with the key of another table."""
    keys = {each.relation: each.columns for each in query.constraints.keys if not each.columns[1:]}
    bound = {
        (atom.relation, column): variable
        for atom in query.atoms
        for column, variable in zip(query.columns_of(atom.relation), atom.variables, strict=True)
    }
    for (relation, column), variable in bound.items():
        for other, key in keys.items():
            if other != relation and bound.get((other, key[0])) == variable:
                yield ForeignKey(relation, (column,), other, key)


def _has_constant_updates(query: ConjunctiveQuery, constraints: Constraints) -> bool:
    return best_route(query.with_constraints(constraints)).bounds.constant


def _possible_keys(query: ConjunctiveQuery) -> Iterator[Key]:
    """The columns that join an atom to others."""
    for atom in query.atoms:
        columns = zip(query.columns_of(atom.relation), atom.variables, strict=True)
        yield from (Key(atom.relation, (c,)) for c, v in columns if len(query.atoms_of[v]) > 1)
