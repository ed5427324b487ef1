"""What runs now: the best strategy, or another one as long as that is not available."""

from viewkeep.analysis import Analysis
from viewkeep.analysis.routes import Route, cost_of, routes
from viewkeep.plan.choose import choose
from viewkeep.report.summary import describe_costs


def running_route(analysis: Analysis) -> Route:
    """The route that `maintain()` takes in this version, with its bounds."""
    strategy = choose(analysis.query, "auto").strategy
    if strategy == analysis.strategy:
        return analysis.route
    return min((r for r in routes(analysis.query) if r.strategy == strategy), key=cost_of)


def meanwhile(analysis: Analysis) -> str:
    """The strategy that runs in place of the best one and what it costs; empty for the best.

    >>> from viewkeep.analysis import analyze
    >>> meanwhile(analyze("Q(a, b, c) = R(a, b) * S(b, c)"))
    ''
    """
    route = running_route(analysis)
    if route.strategy == analysis.strategy:
        return ""
    return f"{route.strategy} ({describe_costs(route.bounds)})"
