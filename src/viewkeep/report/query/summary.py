"""The class of a query in a few words and what it means in one sentence."""

from collections.abc import Iterator

from viewkeep.analysis import Analysis, Bounds, Verdict


def query_class(analysis: Analysis) -> str:
    """The class that the bounds rest on."""
    if analysis.bounds.constant:
        return next(_constant_classes(analysis))[0]
    if _is_tractable_with_sums(analysis):
        return "merged extremes"
    if analysis.query.inputs:
        return "intractable access pattern"
    if analysis.hierarchical:
        return f"delta_{analysis.delta_rank}-hierarchical"
    return "acyclic, not hierarchical" if analysis.alpha_acyclic else "cyclic"


def headline(analysis: Analysis) -> str:
    """What the class means, in one plain sentence."""
    if analysis.bounds.constant:
        return next(_constant_classes(analysis))[1]
    costs = describe_costs(analysis.bounds)
    if _is_tractable_with_sums(analysis):
        return f"updates merge the ordered values of a min or max: {costs}"
    if analysis.query.inputs:
        return f"intractable access pattern: inputs given, the best strategy here has {costs}"
    if analysis.hierarchical:
        return (
            f"hierarchical, but not q-hierarchical (delta rank {analysis.delta_rank}): "
            f"the best strategy here has {costs}"
        )
    shape = "acyclic, but not hierarchical" if analysis.alpha_acyclic else "cyclic"
    return f"{shape}: the best strategy here has {costs}"


def _is_tractable_with_sums(analysis: Analysis) -> bool:
    """Whether the query would be tractable with sums in the place of min and max."""
    return analysis.bounds.logarithmic and analysis.tractable_access_pattern


def first_obstacle(analysis: Analysis) -> Verdict | None:
    """The first "no" that keeps updates or delay from being constant."""
    if analysis.bounds.constant:
        return None
    names = ["q_hierarchical", "hierarchical"]
    if analysis.query.inputs:
        names = ["tractable_access_pattern"]
    failed = [analysis.verdicts[name] for name in names if not analysis.verdicts[name]]
    return failed[-1] if failed else None


def at_best(bounds: Bounds) -> Bounds:
    """The bounds at the best epsilon; those without epsilon as they are."""
    epsilon = bounds.best_epsilon
    return bounds if epsilon is None else bounds.at(epsilon)


def describe_costs(bounds: Bounds) -> str:
    """Update time and delay at the best epsilon."""
    best = at_best(bounds)
    average = " amortized" if bounds.amortized else ""
    return f"update {best.order('update')}{average}, delay {best.order('delay')}"


def _constant_classes(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """The classes with constant costs that the query is in, as name and sentence."""
    verdicts, constraints = analysis.verdicts, analysis.query.constraints
    constant = _constant_costs(analysis.bounds)
    if analysis.bounds.amortized:
        if constraints.insert_only and verdicts["insert_only"]:
            yield "insert-only join", f"acyclic join under inserts only: {constant}"
        yield (
            "foreign-key join",
            f"join along foreign keys: {constant}, in valid batches",
        )
        return
    without = f"(without: {_class_of_query(analysis)})"
    if analysis.q_hierarchical and not analysis.query.inputs:
        yield "q-hierarchical", f"q-hierarchical: {constant}"
    if analysis.query.inputs and analysis.tractable_access_pattern:
        yield "tractable access pattern", f"tractable access pattern: {constant}, given the inputs"
    if verdicts["reduct_q_hierarchical"]:
        yield "q-hierarchical reduct", f"{constant}, thanks to the dependencies {without}"
    if constraints.static and analysis.tractable_with_static:
        names = ", ".join(sorted(constraints.static))
        yield "tractable with static", f"{constant}, because of static {names} {without}"
    if verdicts["bounded_degree"]:
        yield "bounded degree", f"{constant}, because degrees are bounded {without}"
    yield "constant under constraints", f"{constant}, thanks to the constraints {without}"


def _constant_costs(bounds: Bounds) -> str:
    """Constant costs in words; min and max add a logarithm."""
    average = " on average" if bounds.amortized else ""
    if bounds.logarithmic:
        return f"update time O(log N){average}, for ordered values, and constant delay"
    return f"constant update time{average} and constant delay"


def _class_of_query(analysis: Analysis) -> str:
    """What the query is when nothing is known of the data."""
    if analysis.q_hierarchical:
        return "q-hierarchical"
    return "hierarchical, not q-hierarchical" if analysis.hierarchical else "not hierarchical"
