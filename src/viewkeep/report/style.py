"""The few styles of all reports; every meaning is also said in words, for output without colour."""

import re

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from viewkeep.analysis import Bounds
from viewkeep.analysis.exponents import HALF
from viewkeep.query.conjunctive import ConjunctiveQuery

HEADING = "bold cyan"
GOOD, FAIR, BAD = "green", "yellow", "red"
RELATION = "bold"
KINDS = {"output": "green", "input": "cyan", "bound": "magenta"}
"""Styles of the three kinds of variables."""


def section(title: str, *body: RenderableType) -> RenderableType:
    """A heading with its content indented below, and room after it."""
    return Group(Text(title, HEADING), Padding(Group(*body), (0, 0, 1, 2)))


def kind_of(query: ConjunctiveQuery, variable: str) -> str:
    """Whether a variable is an output, an input or bound."""
    if variable in query.inputs:
        return "input"
    return "output" if variable in query.outputs else "bound"


def query_text(query: ConjunctiveQuery) -> Text:
    """The query with the kinds of its variables in colour."""
    text = Text(str(query))
    for variable in query.variables:
        # A relation may have the name of a variable; it is followed by a bracket.
        text.highlight_regex(rf"\b{re.escape(variable)}\b(?!\()", KINDS[kind_of(query, variable)])
    return text


def grade(bounds: Bounds) -> str:
    """Green for constant time, yellow for sublinear, red for linear and more."""
    if bounds.constant:
        return GOOD
    epsilon = bounds.best_epsilon
    return FAIR if bounds.worst(HALF if epsilon is None else epsilon) < 1 else BAD
