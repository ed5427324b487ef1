"""The columns of a group-by from the measures of all its scans."""

from functools import cached_property

from viewkeep.diffs.programs.factors import Factor
from viewkeep.diffs.programs.grouped_join import GroupedJoin
from viewkeep.diffs.programs.measures import (
    SUM,
    AggregateReading,
    Measure,
    aggregate_reading,
    result,
)
from viewkeep.diffs.rules.build import project
from viewkeep.query.algebra import Node
from viewkeep.query.expressions import Call, Cast, Expression, literal
from viewkeep.query.types.aggregates import aggregate_result
from viewkeep.query.types.data_types import BIGINT, Type
from viewkeep.query.types.inference import find_field, type_of


class Outputs:
    """The measures that the aggregates of a group-by need, and how they are read from them."""

    def __init__(self, join: GroupedJoin) -> None:
        self._join = join
        self._readings = [aggregate_reading(join, each) for each in join.aggregates]

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of all scans."""
        return tuple(dict.fromkeys(m for each in self._readings for m in each.measures))

    def rows(self, root: Factor) -> Node:
        """The rows of the group-by, from a factor of all scans with one row per group."""
        columns = {key: root.variables[variable] for key, variable in self._join.keys.items()}
        for each in self._readings:
            columns[each.aggregate.name] = self._result_expression(each, root)
        return project(root.rows, columns)

    def _result_expression(self, read: AggregateReading, root: Factor) -> Expression:
        def value(measure: Measure) -> Expression:
            expression = root.measures[measure]
            if self._join.keys or measure.function != SUM:
                return expression
            kind = type_of(expression, root.rows.schema).type
            return Call("coalesce", (expression, Cast(literal(0), kind)))

        kind = find_field(read.aggregate.name, self._join.node.schema).type
        return result(read, kind, self._type_of_sum(read), value)

    def _type_of_sum(self, read: AggregateReading) -> Type:
        if read.aggregate.function != "avg" or read.aggregate.argument is None:
            return BIGINT
        argument = type_of(read.aggregate.argument, self._join.schema)
        return aggregate_result("sum", [argument], grouped=True).type
