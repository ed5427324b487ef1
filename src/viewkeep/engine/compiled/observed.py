"""How a batch changed the output, as rows and as Arrow."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.engine.compiled.engine import CompiledEngine
from viewkeep.engine.compiled.memory import number_list
from viewkeep.engine.compiled.output import decode_column
from viewkeep.engine.compiled.reading import Observed
from viewkeep.engine.subscribers import OutputChange, change_names
from viewkeep.query.conjunctive import ConjunctiveQuery

Row = tuple[Any, ...]


def observed_rows(engine: CompiledEngine, observed: Observed) -> list[OutputChange]:
    """Output tuples whose payload changed, one by one."""
    domains = engine.domains(engine.program.enumerator.head)
    count = len(observed.changes[0])
    keys = observed.keys
    rows = engine.coder.rows(keys, domains) if keys else iter([()] * count)
    before, after = _results(engine, observed)
    changes = zip(rows, before, after, strict=True)
    return [OutputChange(*change) for change in changes if change[1] != change[2]]


def observed_batch(engine: CompiledEngine, observed: Observed) -> pa.RecordBatch:
    """The same as an Arrow batch of keys, and payloads before and after."""
    if engine.query.aggregates or len(observed.after) > 1:
        return batch_of_changes(engine.query, observed_rows(engine, observed))
    domains = engine.domains(engine.program.enumerator.head)
    after = observed.after[0]
    pairs = zip(observed.keys, domains, strict=True)
    keys = [decode_column(engine.coder, codes, domain) for codes, domain in pairs]
    payloads = [pa.array(each, mask=each == 0) for each in (after - observed.changes[0], after)]
    return pa.RecordBatch.from_arrays([*keys, *payloads], names=change_names(engine.query))


def batch_of_changes(query: ConjunctiveQuery, changes: list[OutputChange]) -> pa.RecordBatch:
    """Changes that were told row by row as an Arrow batch."""
    absent = (None,) * max(len(query.aggregates), 1)
    rows = [
        (*each.row, *_payload(query, each.before, absent), *_payload(query, each.after, absent))
        for each in changes
    ]
    names = change_names(query)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.RecordBatch.from_arrays([pa.array(list(each)) for each in columns], names=names)


def _payload(query: ConjunctiveQuery, payload: Any, absent: Row) -> Row:
    if payload is None:
        return absent
    return payload if query.aggregates else (payload,)


def _results(engine: CompiledEngine, observed: Observed) -> tuple[list[Any], list[Any]]:
    """What users see of payloads before and after; None stands for absent."""
    after = list(zip(*map(number_list, observed.after), strict=True))
    changes = zip(*map(number_list, observed.changes), strict=True)
    before = [
        tuple([a - c for a, c in zip(now, change, strict=True)])
        for now, change in zip(after, changes, strict=True)
    ]
    return [_result(engine, each) for each in before], [_result(engine, each) for each in after]


def _result(engine: CompiledEngine, numbers: tuple[Any, ...]) -> Any:
    element = engine.shape.decode(numbers)
    return None if engine.ring.is_zero(element) else engine.payload.result(element)
