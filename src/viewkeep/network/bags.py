"""Changes of bags of rows, and the steps that they go through."""

from collections.abc import Callable, Sequence

from viewkeep.engine.subscribers import OutputChange
from viewkeep.engine.subscribers import Row as Row
from viewkeep.query.evaluate.compile import compile_condition, compile_expression
from viewkeep.sql.stages.model import Kind, Stage, Step

Bag = dict[Row, int]
"""Rows and how many copies of each come, or go."""
RowFunction = Callable[[Row], Row | None]
"""From a row to what becomes of it; None where it is left out."""


def add_to(bag: Bag, row: Row, count: int) -> None:
    """Add copies of a row; what adds up to nothing is removed."""
    total = bag.get(row, 0) + count
    if total:
        bag[row] = total
    else:
        bag.pop(row, None)


def row_function(steps: Sequence[Step]) -> RowFunction:
    """The steps as one function."""
    functions = [_step_function(step) for step in steps]

    def through(row: Row) -> Row | None:
        result: Row | None = row
        for function in functions:
            if result is None:
                return None
            result = function(result)
        return result

    return through


def _step_function(step: Step) -> RowFunction:
    admits = compile_condition(step.conditions, step.names)
    outputs = [compile_expression(each, step.names) for each in step.outputs]
    return lambda row: tuple([output(row) for output in outputs]) if admits(row) else None


def stage_changes(stage: Stage, changes: Sequence[OutputChange], empty_total: Row) -> Bag:
    """What changes in the rows of a stage; an empty total has the row `empty_total`."""
    bag: Bag = {}
    for change in changes:
        for row, count in _payload_copies(stage, change.row, change.before, empty_total):
            add_to(bag, row, -count)
        for row, count in _payload_copies(stage, change.row, change.after, empty_total):
            add_to(bag, row, count)
    return bag


def _payload_copies(
    stage: Stage, row: Row, payload: object, empty_total: Row
) -> list[tuple[Row, int]]:
    if payload is None:
        return [(empty_total, 1)] if stage.is_total else []
    return [stage_row(stage, row, payload)]


def stage_row(stage: Stage, row: Row, payload: object) -> tuple[Row, int]:
    """An output tuple with its payload as a row of a stage, and its number of copies."""
    if stage.kind is Kind.GROUPS:
        assert isinstance(payload, tuple)
        return row + payload, 1
    assert isinstance(payload, int)
    return row, payload if stage.kind is Kind.ROWS else 1
