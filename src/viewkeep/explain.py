"""The flow of `viewkeep explain`: text to queries (`reading.py`) to verdicts.

text -> queries, each on its own -> constraints -> analyses and cascades
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from viewkeep.analysis import Analysis, analyze_workload
from viewkeep.analysis.analyze import constrain
from viewkeep.analysis.cascade import Cascade
from viewkeep.errors import QueryError
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints
from viewkeep.reading import FailedStatement, Read, Tables, UnclassifiedView, read_queries


@dataclass(frozen=True, slots=True)
class AnalyzedQuery:
    """A conjunctive query with what is possible for it."""

    name: str
    analysis: Analysis


Outcome = AnalyzedQuery | UnclassifiedView | FailedStatement


@dataclass(frozen=True, slots=True)
class Explanation:
    """The outcome of every statement, and which queries can ride on which."""

    outcomes: tuple[Outcome, ...]
    cascades: tuple[Cascade, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether some statement is not a valid query."""
        return any(isinstance(outcome, FailedStatement) for outcome in self.outcomes)


def explain(
    text: str, tables: Tables | None = None, constraints: Constraints | None = None
) -> Explanation:
    """Explain every query of a text over these tables, under these constraints.

    A mistake in the only query is raised; among several queries it is an outcome.

    >>> [outcome] = explain("Q(a, b, c) = R(a, b) * S(b, c)").outcomes
    >>> outcome.analysis.q_hierarchical
    True
    """
    statements = list(_with_distinct_names(read_queries(text, tables or {})))
    if not statements:
        raise QueryError("there is no query in the text")
    if len(statements) == 1 and isinstance(statements[0], FailedStatement):
        raise statements[0].error
    queries = [read for read in statements if isinstance(read, ConjunctiveQuery)]
    workload = analyze_workload(constrain(queries, constraints or Constraints()))
    analyses = iter(workload)
    outcomes = [
        AnalyzedQuery(read.name, next(analyses)) if isinstance(read, ConjunctiveQuery) else read
        for read in statements
    ]
    return Explanation(tuple(outcomes), workload.cascades)


def _with_distinct_names(statements: Iterable[Read]) -> Iterator[Read]:
    names: set[str] = set()
    for read in statements:
        if read.name in names and isinstance(read, ConjunctiveQuery):
            problem = f'another query is called "{read.name}" too: give each its own name'
            yield FailedStatement(read.name, QueryError(problem))
        else:
            yield read
        names.add(read.name)
