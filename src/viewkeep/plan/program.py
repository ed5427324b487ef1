"""The trigger language: what is materialized, and what an update does to it.

A program declares *maps* (relations over the payload ring, or counts of what is live) and has one
*trigger* per atom. A trigger is a list of blocks. A block starts with one binding of variables and
a payload: those of the update, or of each entry of a local delta that an earlier block collected.
Its steps then run one after another:

    Join    look maps up and multiply their payloads; open variables make it a loop
    Update  add the payload to an entry of a map; if `live`, go on only where the entry appeared
            or vanished, with payload 1 or -1
    Collect add the payload to an entry of a local delta

Relations may be told apart in *parts*: a *split* sets the values of some variables in levels, by
their degree against powers of the database size, and each part has a trigger of its own. Which
part an update goes to, and when tuples move, is up to the engine
(`engine/interpreter/partitions.py`).

The payload of an update is its multiplicity times the lifting functions of the variables that are
assigned to the atom: lifting at the atom gives the same sums as lifting just before a variable is
summed away, since multiplication distributes over them.

Every planner emits such a program and every engine runs one; `print` shows all there is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from viewkeep.analysis.exponents import Exponent

UPDATE = "update"
"""The source of a block that starts with the update itself."""

NOTHING = "nothing"
"""The source of a block that starts from scratch, with no variable bound and payload one."""


INPUT = "input"
"""The definition of maps that hold the tuples of an atom, or a part of them."""

LEVELS = ("l", "m", "h")
"""Letters for two or three levels: light, medium and heavy values."""


@dataclass(frozen=True, slots=True)
class Split:
    """Values of some variables told apart by their degree in one or more atoms.

    The thresholds are exponents of the threshold base N, rising: a value is at level i if i of
    the N^threshold are at most its largest degree (with slack, so that moves can be paid for).
    """

    variables: tuple[str, ...]
    atoms: tuple[int, ...]
    thresholds: tuple[float, ...]
    fixed: bool = False
    """Whether the plan needs these thresholds, whatever epsilon is asked for."""

    @property
    def default(self) -> int:
        """The level of values that are not there: light, unless a threshold is N^0."""
        return sum(threshold == 0 for threshold in self.thresholds)

    def letter(self, level: int) -> str:
        """How parts of a level are called."""
        return LEVELS[level] if len(self.thresholds) > 1 else LEVELS[2 * level]


@dataclass(frozen=True, slots=True)
class Part:
    """The map with those tuples of an atom whose values have these levels, split by split."""

    atom: int
    map: str
    levels: tuple[tuple[int, int], ...] = ()
    letters: str = ""
    """Its levels as they stand in names."""
    leaf: str = ""
    """The name of the whole atom, without letters; empty if it is not split."""


@dataclass(frozen=True, slots=True)
class Map:
    """A materialized relation: its key, what it means, and the atoms it depends on.

    `live` maps hold integers: how many values below an entry are live, or how many rows of another
    map have its values. `indexes` lists the sets
    of key variables by which entries are found. `parts` names the parts that the map depends on;
    none if it does not matter how relations are split.
    """

    name: str
    key: tuple[str, ...]
    definition: str
    atoms: frozenset[int]
    live: bool = False
    indexes: tuple[tuple[str, ...], ...] = ()
    parts: frozenset[str] = frozenset()
    size: Exponent | None = None
    """How large the map can be, where the planner knows."""

    def depends_on(self, trigger: "Trigger") -> bool:
        """Whether what the trigger is for changes this map."""
        concerned = not self.parts or not trigger.part or trigger.part in self.parts
        return trigger.atom in self.atoms and concerned

    def __str__(self) -> str:
        kind = "live " if self.live else ""
        by = "".join(f", index ({', '.join(columns)})" for columns in self.indexes)
        return f"{kind}{self.name}({', '.join(self.key)}) = {self.definition}{by}"


@dataclass(frozen=True, slots=True)
class Access:
    """An entry of a map, found by variables; `weigh` multiplies its payload, else it must exist."""

    map: str
    arguments: tuple[str, ...]
    weigh: bool = True

    def __str__(self) -> str:
        text = f"{self.map}[{', '.join(self.arguments)}]"
        return text if self.weigh else f"live {text}"


@dataclass(frozen=True, slots=True)
class Join:
    """Entries of maps that all open the same variables; the smallest group is iterated."""

    accesses: tuple[Access, ...]
    opens: tuple[str, ...] = ()

    def __str__(self) -> str:
        factors = " * ".join(map(str, self.accesses))
        return f"for {', '.join(self.opens)} in {factors}" if self.opens else f"with {factors}"


@dataclass(frozen=True, slots=True)
class Update:
    """`target[key] += payload`."""

    target: str
    key: tuple[str, ...]
    live: bool = False

    def __str__(self) -> str:
        consequence = ", then only if it appeared or vanished" if self.live else ""
        return f"{self.target}[{', '.join(self.key)}] += payload{consequence}"


@dataclass(frozen=True, slots=True)
class Collect:
    """`local[key] += payload`, for a later block of the same trigger."""

    local: str
    key: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.local}[{', '.join(self.key)}] += payload"


@dataclass(frozen=True, slots=True)
class Branch:
    """One family of sets in a union: a set of output tuples for each binding of `over`."""

    over: tuple[Join, ...]
    steps: tuple["Step", ...]


@dataclass(frozen=True, slots=True)
class Union:
    """Distinct values of `opens` from all sets of all branches, their payloads summed.

    No value is waited for longer than it takes to ask every set once (the union algorithm of
    ivm_lecture, part 3). Sets that are `disjoint` are read one after another.
    """

    branches: tuple[Branch, ...]
    opens: tuple[str, ...]
    disjoint: bool = False


Step: TypeAlias = Join | Update | Collect | Union


@dataclass(frozen=True, slots=True)
class Block:
    """Steps run for each binding of the source: the update, nothing, a map or a local delta."""

    source: str
    variables: tuple[str, ...]
    steps: tuple[Step, ...]
    weigh: bool = True
    cost: Exponent | None = None
    """How many steps it can take for each binding, where the planner knows."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """What an update to one atom, or to one part of it, does.

    Each of `outputs` leads from the update to output tuples that it changes.
    """

    atom: int
    relation: str
    parameters: tuple[str, ...]
    blocks: tuple[Block, ...]
    outputs: tuple[tuple[Step, ...], ...]
    part: str = ""

    @property
    def label(self) -> str:
        """What people call it: the relation, or the part of it."""
        return self.part or self.relation


@dataclass(frozen=True, slots=True)
class Enumerator:
    """How output tuples come from maps: joins that bind the head, and what weighs the payload.

    With `distinct`, every binding is another output tuple; otherwise payloads are summed first.
    """

    head: tuple[str, ...]
    steps: tuple[Step, ...]
    distinct: bool = True


@dataclass(frozen=True, slots=True)
class Program:
    """Maps, triggers, how to load them in one pass, and how to enumerate the output."""

    strategy: str
    maps: tuple[Map, ...]
    triggers: tuple[Trigger, ...]
    loading: tuple[Block, ...]
    enumerator: Enumerator
    inputs: tuple[tuple[str, str], ...] = ()
    listed: str | None = None
    notes: tuple[str, ...] = ()
    splits: tuple[Split, ...] = ()
    parts: tuple[Part, ...] = ()
    """Where the tuples of each atom are; an atom that is not split has one part."""

    def __post_init__(self) -> None:
        from viewkeep.plan.validate import validate

        validate(self)

    def map(self, name: str) -> Map:
        """The map of this name."""
        return next(each for each in self.maps if each.name == name)

    def __str__(self) -> str:
        from viewkeep.plan.show import program_text

        return program_text(self)


def fresh(name: str, others: Iterable[str]) -> str:
    """The name, with as many primes as make it a new one."""
    names = set(others)
    while name in names:
        name += "'"
    return name


def opened(bound: Iterable[str], arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments that are not bound yet, each once."""
    variables = set(bound)
    return tuple(dict.fromkeys(v for v in arguments if v not in variables))
