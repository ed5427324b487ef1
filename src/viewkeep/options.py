"""How a query is maintained: the options of `maintain`, checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeep.engine.switching import ENGINES
from viewkeep.errors import QueryError
from viewkeep.plan.adaptive.thresholds import Thresholds
from viewkeep.plan.choose import DEFAULTS
from viewkeep.rings import Ring

MODES = ("eager", "lazy")


@dataclass(frozen=True)
class Options:
    """See `viewkeep.maintain`.

    >>> Options(mode="idle")
    Traceback (most recent call last):
    viewkeep.errors.QueryError: mode="idle": expected one of eager, lazy
    """

    strategy: str = "auto"
    output: str = "factorized"
    mode: str = "eager"
    ring: Ring[Any] | None = None
    lifts: Mapping[str, Callable[[Any], Any]] | None = field(default=None, hash=False)
    thresholds: Thresholds = DEFAULTS
    check: bool = False
    """Check the invariants of heavy and light parts after every update: for tests, and slow."""
    engine: str = "auto"
    keep_inputs: bool = True

    def __post_init__(self) -> None:
        _check_options("engine", self.engine, ENGINES)
        _check_options("mode", self.mode, MODES)
        for name in ("check", "keep_inputs"):
            if not isinstance(getattr(self, name), bool):
                raise QueryError(f"{name}={getattr(self, name)!r}: expected True or False")
        if self.lifts is not None and not _are_lifts(self.lifts):
            raise QueryError(f"lifts={self.lifts!r}: expected functions by variable")
        if self.ring is not None and not isinstance(self.ring, Ring):
            raise QueryError(f"ring={self.ring!r}: expected a Ring, such as viewkeep.rings.REALS")


def _are_lifts(lifts: object) -> bool:
    return isinstance(lifts, Mapping) and all(map(callable, lifts.values()))


def _check_options(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise QueryError(f'{name}="{value}": expected one of {", ".join(allowed)}')
