"""How a view is to be kept, as its definition says."""

from dataclasses import dataclass

from viewkeep.lake.catalog import ViewDefinition


@dataclass(frozen=True)
class ViewOptions:
    """What a user asks for besides the query: the fields of `ViewDefinition` of the same names."""

    strategy: str = "auto"
    policy: str = "auto"
    functions: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    feed: bool = False
    lag: str = ""
    layout: str = "auto"
    shares: tuple[tuple[str, float], ...] = ()
    chosen: str = ""
    chosen_why: str = ""
    project: str = ""

    @staticmethod
    def of(definition: ViewDefinition) -> "ViewOptions":
        """The options of a view that is defined."""
        return ViewOptions(
            definition.strategy,
            definition.policy,
            definition.functions,
            definition.aggregates,
            definition.feed,
            definition.lag,
            definition.layout,
            definition.shares,
            definition.chosen,
            definition.chosen_why,
            definition.project,
        )
