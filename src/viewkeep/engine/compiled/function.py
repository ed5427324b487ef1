"""Functions of the generated text, and what is known of them when they become machine code."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Heat(Enum):
    """How often a function runs: what runs rarely is better small than fast."""

    COLD = "cold"
    HOT = "hot"
    """With every update: its look-ups are merged into it, unless the program is large."""
    LOOK_UP = "look-up"
    """It is a look-up itself."""


@dataclass(frozen=True)
class Function:
    """A function over 64-bit numbers, in Python's syntax.

    >>> print(Function("twice", "n", ["    return n + n"]).text)
    def twice(n):
        return n + n
    """

    name: str
    parameters: str
    body: Sequence[str]
    """Lines, indented as they stand in the function."""
    inline: bool = False
    """It is merged into its callers; others never are."""
    public: bool = False
    """It is called from outside."""
    heat: Heat = Heat.COLD
    outlined: str = ""
    """For a look-up that is merged: the function that does the same by a call."""

    @property
    def text(self) -> str:
        """The definition."""
        return "\n".join([f"def {self.name}({self.parameters}):", *self.body])


@dataclass(frozen=True)
class Module:
    """Functions that are compiled together."""

    functions: tuple[Function, ...]
    is_large: bool = False
    """Then look-ups are calls everywhere, equal blocks are shared, and it is optimized less: merged
    in and written out, large programs take too long to compile."""

    def is_whole(self, function: Function) -> bool:
        """Whether a function stays as it is: with look-ups merged in, and no block shared."""
        return function.heat is Heat.LOOK_UP or (function.heat is Heat.HOT and not self.is_large)
