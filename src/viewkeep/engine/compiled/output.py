"""Output tuples as Arrow record batches, column by column where the engine is compiled."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from numpy.typing import NDArray

from viewkeep.engine.compiled.engine import CompiledEngine
from viewkeep.engine.compiled.formats import BY_DICTIONARY, NULL, PLAIN, TEXTS
from viewkeep.engine.compiled.memory import number_list
from viewkeep.engine.compiled.values import Coder, Domain
from viewkeep.engine.interpreter.engine import ReferenceEngine
from viewkeep.plan.payload import Payload
from viewkeep.query.conjunctive import ConjunctiveQuery

Row = tuple[Any, ...]
Enumerate = Callable[[dict[str, Any]], Iterator[tuple[Row, Any]]]
COUNT = "count"


def batches_of(
    engine: CompiledEngine | ReferenceEngine,
    enumerate_rows: Enumerate,
    inputs: dict[str, Any],
    query: ConjunctiveQuery,
    payload: Payload,
    rows: int,
) -> Iterator[pa.RecordBatch]:
    """The output in portions; counts as they are, other payloads as the user sees them."""
    names = [*query.outputs, *(_result_titles(query) if query.aggregates else [COUNT])]
    if isinstance(engine, ReferenceEngine):
        yield from _batches_row_by_row(enumerate_rows(inputs), names, query, payload, rows)
        return
    domains = engine.domains(query.outputs)
    for count, columns in engine.portions(inputs, max(rows, 2)):
        keys = [
            decode_column(engine.coder, column[:count], domain)
            for column, domain in zip(columns, domains)  # noqa: B905 - inputs and payloads follow
        ]
        first = len(engine.program.enumerator.head)
        last = first + len(engine.shape.kinds)
        words = [column[:count] for column in columns[first:last]]
        codes = [column[:count] for column in columns[last:]]
        if not query.aggregates and len(engine.shape.kinds) == 1:
            results = [pa.array(words[0].copy())]
        else:
            numbers = zip(*map(number_list, words), strict=True)
            elements = engine.output_elements(numbers, codes)
            results = _result_columns(map(payload.result, elements), query)
        yield pa.RecordBatch.from_arrays([*keys, *results], names=names)


def decode_column(coder: Coder, codes: NDArray[np.int64], domain: Domain) -> pa.Array:
    """A column of values; integers are copied as they are, others by their dictionary."""
    if domain.format not in (None, *BY_DICTIONARY) or (len(codes) and int(codes.max()) >= PLAIN):
        distinct, places = np.unique(codes, return_inverse=True)
        if domain.format == TEXTS and not (distinct == NULL).any():
            return coder.texts.arrow(distinct).take(pa.array(places))
        return pa.array(coder.decode(distinct, domain)).take(pa.array(places))
    if domain.kind is int:
        return pa.array(codes.copy())
    return pa.array(coder.decode(codes, domain))


def _result_columns(results: Iterable[Any], query: ConjunctiveQuery) -> list[pa.Array]:
    payloads = list(results)
    if not query.aggregates:
        return [pa.array(payloads)]
    return [pa.array(list(column)) for column in zip(*payloads, strict=True)]


def _batches_row_by_row(
    output: Iterator[tuple[Row, Any]],
    names: list[str],
    query: ConjunctiveQuery,
    payload: Payload,
    rows: int,
) -> Iterator[pa.RecordBatch]:
    while portion := list(islice(output, max(rows, 1))):
        keys = zip(*(row[: len(query.outputs)] for row, _ in portion), strict=True)
        results = _result_columns((payload.result(element) for _, element in portion), query)
        columns = [*(pa.array(list(key)) for key in keys), *results]
        yield pa.RecordBatch.from_arrays(columns, names=names)


def _result_titles(query: ConjunctiveQuery) -> list[str]:
    return [str(aggregate) for aggregate in query.aggregates]
