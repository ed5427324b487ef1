"""Telling subscribers how the output changes, tuple by tuple."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any

from viewkeep.errors import QueryError, RingError
from viewkeep.query.conjunctive import ConjunctiveQuery

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # has no stubs

Row = tuple[Any, ...]


@dataclass(frozen=True)
class OutputChange:
    """An output tuple whose payload changed; None stands for absent."""

    row: Row
    before: Any
    after: Any


Callback = Callable[[list[OutputChange]], None]
BatchCallback = Callable[["RecordBatch"], None]
MakeBatch = Callable[[list[OutputChange]], "RecordBatch"]
Delivery = Callable[[], None]


@dataclass(frozen=True)
class Told:
    """Changes in the forms that subscribers want, each made only if one of them does."""

    rows: Callable[[], list[OutputChange]]
    batch: Callable[[], "RecordBatch | None"]


def change_names(query: ConjunctiveQuery) -> list[str]:
    """The columns of changes as Arrow: the head, then each payload before and after."""
    payloads = list(map(str, query.aggregates)) or ["count"]
    after = [f"{name} {moment}" for moment in ("before", "after") for name in payloads]
    return [*query.outputs, *query.inputs, *after]


class Subscribers:
    """Who wants to know, and the tuples that they could not be told about yet.

    Changes wait in a queue, and one thread at a time calls whoever subscribed, outside of any lock:
    callbacks may update and read, wait for other threads, and hear everything in its order.
    `state_of` reads an output tuple; it raises a RingError where the payload cannot be told, as
    for a min whose deletes have overtaken their inserts.
    """

    def __init__(self, state_of: Callable[[Row], Any], make_batch: MakeBatch | None = None) -> None:
        self._state_of, self._make_batch = state_of, make_batch
        self._callbacks: dict[int, Callback] = {}
        self._batch_callbacks: dict[int, BatchCallback] = {}
        self._tokens = count(1)
        self._untold: dict[Row, Any] = {}
        self._queue: deque[list[Delivery]] = deque()
        self._mutex, self._delivering = Lock(), False

    def __bool__(self) -> bool:
        return bool(self._callbacks or self._batch_callbacks)

    def add(self, callback: Callback) -> int:
        """Tell this one too, from now on; returns the token by which it is removed."""
        token = next(self._tokens)
        self._callbacks[token] = callback
        return token

    def add_for_batches(self, callback: BatchCallback) -> int:
        """Tell this one in Arrow batches."""
        token = next(self._tokens)
        self._batch_callbacks[token] = callback
        return token

    def remove(self, token: int) -> None:
        """Tell the subscriber of a token no more; what waits for it is still delivered."""
        known: list[dict[int, Any]] = [self._callbacks, self._batch_callbacks]
        if not isinstance(token, int) or not any(each.pop(token, None) for each in known):
            raise QueryError(f"{token!r} is no token of a subscriber: subscribe() returns them")
        if not self:
            self._untold.clear()

    def start(self) -> dict[Row, Any]:
        """The states of output tuples before a change, for those not yet delivered."""
        return dict(self._untold)

    def note(self, before: dict[Row, Any], heads: Iterable[Row]) -> None:
        """Keep the state of output tuples as it is before they change for the first time."""
        for head in heads:
            if head not in before:
                try:
                    before[head] = self._state_of(head)
                except RingError:  # it was so already when the first subscriber came
                    before[head] = None

    def tell(self, before: dict[Row, Any]) -> None:
        """Queue a call of every subscriber with the tuples that differ from before (`deliver`)."""
        changed, self._untold = [], {}
        for head, old in before.items():
            try:
                new = self._state_of(head)
            except RingError:
                self._untold[head] = old
            else:
                changed += [OutputChange(head, old, new)] if old != new else []
        self.queue(changed)

    def queue(self, changes: list[OutputChange]) -> None:
        """Queue a call of every subscriber with changes, if there are any."""
        make = self._make_batch
        if changes:
            self.queue_told(Told(lambda: changes, lambda: make(changes) if make else None))

    def queue_told(self, told: Told) -> None:
        """Queue a call of every subscriber, in the form that it wants; values are read now."""
        calls = list[Delivery]()
        if self._callbacks and (rows := told.rows()):
            calls += [partial(callback, rows) for callback in self._callbacks.values()]
        if self._batch_callbacks and (batch := told.batch()) is not None and len(batch):
            calls += [partial(callback, batch) for callback in self._batch_callbacks.values()]
        if calls:
            self._queue.append(calls)

    def deliver(self) -> None:
        """Call everyone with all that waits, unless someone is at it; the first error is raised
        when everyone was called."""
        if not self._queue:
            return
        with self._mutex:
            if self._delivering:
                return
            self._delivering = True
        errors: list[Exception] = []
        try:
            while (calls := self._next()) is not None:
                for call in calls:
                    try:
                        call()
                    except Exception as error:
                        errors.append(error)
        except BaseException:
            self._delivering = False
            raise
        if errors:
            raise errors[0]

    def _next(self) -> list[Delivery] | None:
        """What is to be told next; when nothing is, the delivery ends in the same moment."""
        with self._mutex:
            if self._queue:
                return self._queue.popleft()
            self._delivering = False
            return None
