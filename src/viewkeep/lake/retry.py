"""When something that failed is tried again."""

import time
from dataclasses import dataclass, field

FIRST_SECONDS, MOST_SECONDS = 0.5, 60.0
"""Seconds before the next try; each time twice as many."""


@dataclass
class RetryPause:
    """The time before the next try of something that failed; none at first."""

    seconds: float = field(default_factory=lambda: FIRST_SECONDS)
    until: float = 0.0

    def extend(self) -> None:
        """Wait after another failure, twice as long as after the one before."""
        self.until = time.monotonic() + self.seconds
        self.seconds = min(2 * self.seconds, MOST_SECONDS)

    @property
    def left(self) -> float:
        """The seconds that are left of it."""
        return max(0.0, self.until - time.monotonic())
