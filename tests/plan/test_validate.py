"""A program that contradicts itself is refused before it can run."""

from dataclasses import replace

import pytest

import viewkeep as vk
from viewkeep.plan.choose import plan
from viewkeep.plan.program import (
    UPDATE,
    Access,
    Block,
    Collect,
    Enumerator,
    Join,
    Map,
    Program,
    Trigger,
    Update,
)
from viewkeep.plan.validate import ProgramError

ONE, TWO = frozenset({0}), frozenset({0, 1})


def program(**changes):
    """Q(a) = sum_b R(a, b) * S(b), kept as a list, by hand; keywords replace parts of it."""
    over_r = (Join((Access("S", ("b",)),)),)
    over_s = (Join((Access("R", ("a", "b")),), ("a",)),)
    store = Update("Q", ("a",))
    parts = {
        "strategy": "by hand",
        "maps": (
            Map("R", ("a", "b"), "input", ONE, indexes=(("b",),)),
            Map("S", ("b",), "input", frozenset({1})),
            Map("Q", ("a",), "sum_b R(a, b) * S(b)", TWO),
        ),
        "triggers": (
            Trigger(
                0,
                "R",
                ("a", "b"),
                (
                    Block(UPDATE, ("a", "b"), (Update("R", ("a", "b")),)),
                    Block(UPDATE, ("a", "b"), (*over_r, store)),
                ),
                (over_r,),
            ),
            Trigger(
                1,
                "S",
                ("b",),
                (
                    Block(UPDATE, ("b",), (Update("S", ("b",)),)),
                    Block(UPDATE, ("b",), (*over_s, Collect("dQ", ("a",)))),
                    Block("dQ", ("a",), (store,)),
                ),
                (over_s,),
            ),
        ),
        "loading": (Block("R", ("a", "b"), (*over_r, store)),),
        "enumerator": Enumerator(("a",), (Join((Access("Q", ("a",)),), ("a",)),)),
        "listed": "Q",
    }
    return Program(**(parts | changes))


def with_map(index, **changes):
    maps = program().maps
    return (*maps[:index], replace(maps[index], **changes), *maps[index + 1 :])


def on_s(*blocks):
    """The trigger of S with other blocks."""
    first, second = program().triggers
    return (first, replace(second, blocks=blocks))


def joining(*steps):
    """The trigger of S with other steps between the update and what is collected."""
    own, _, store = program().triggers[1].blocks
    return on_s(own, Block(UPDATE, ("b",), (*steps, Collect("dQ", ("a",)))), store)


def test_the_program_by_hand_is_right():
    assert program().map("Q").key == ("a",)


R_TRIGGER, S_TRIGGER = program().triggers
OWN, COLLECT, STORE = S_TRIGGER.blocks
INTO_Q = (Update("Q", ("a",)),)
WRONG = {
    "reads an unbound variable": {"triggers": joining(Join((Access("Q", ("a",)),)))},
    "writes an unbound variable": {"triggers": joining()},
    "no index on (b)": {"maps": with_map(0, indexes=())},
    "no columns (c) to index": {"maps": with_map(0, indexes=(("b",), ("c",)))},
    "Q and the update of S disagree": {"maps": with_map(2, atoms=ONE)},
    "S and the update of S disagree": {"triggers": on_s(COLLECT, STORE)},
    "starts from unknown dQ": {"triggers": on_s(OWN, STORE)},
    "starts from unknown dX": {"triggers": on_s(OWN, COLLECT, STORE, Block("dX", ("a",), INTO_Q))},
    "starts from unknown T": {"loading": (Block("T", ("a",), INTO_Q),)},
    "a block over R wants (a, b)": {"loading": (Block("R", ("b", "a"), INTO_Q),)},
    "a block over dQ wants (a)": {
        "triggers": on_s(COLLECT, Block("dQ", ("b",), OWN.steps)),
        "maps": with_map(2, atoms=ONE),
    },
    "R[a] does not fit R(a, b)": {"triggers": joining(Join((Access("R", ("a",)),), ("a",)))},
    "R[b, a] does not fit R(a, b)": {"triggers": joining(Join((Access("R", ("b", "a")),), ("a",)))},
    "Q[a, b] += payload does not fit Q(a)": {
        "loading": (Block("R", ("a", "b"), (Update("Q", ("a", "b")),)),)
    },
    "there is no map T": {"triggers": joining(Join((Access("T", ("b",)),)), COLLECT.steps[0])},
    "does not bind all of a": {
        "triggers": joining(Join((Access("R", ("a", "b")), Access("S", ("b",))), ("a",)))
    },
    "a join of no maps": {"triggers": joining(Join((), ("a",)))},
    "two maps have the same name": {"maps": (*program().maps, program().maps[2])},
    "two triggers are for the same atom": {"triggers": (R_TRIGGER, S_TRIGGER, R_TRIGGER)},
    "the head is not bound": {
        "enumerator": Enumerator(("a",), (Join((Access("S", ("b",)),), ("b",)),))
    },
    "where output is only read": {
        "enumerator": Enumerator(("a",), (Join((Access("Q", ("a",)),), ("a",)), *INTO_Q))
    },
}


@pytest.mark.parametrize("problem", WRONG)
def test_a_wrong_program_is_refused_with_what_is_wrong(problem):
    with pytest.raises(ProgramError) as caught:
        program(**WRONG[problem])
    assert problem in str(caught.value)


@pytest.mark.parametrize("strategy", ["viewtree", "delta", "recursive", "recompute"])
def test_any_index_that_is_taken_from_a_planned_program_is_missed(strategy):
    planned = plan(vk.parse("Q(a, c) = R(a, b) * S(b, c) * T(c, d)"), strategy)
    for each in planned.maps:
        for index in each.indexes:
            fewer = tuple(i for i in each.indexes if i != index)
            maps = tuple(replace(m, indexes=fewer) if m is each else m for m in planned.maps)
            with pytest.raises(ProgramError, match="no index"):
                replace(planned, maps=maps)


@pytest.mark.parametrize("strategy", ["viewtree", "delta", "recursive", "recompute"])
def test_any_update_that_is_taken_from_a_planned_program_is_missed(strategy):
    planned = plan(vk.parse("Q(a, c) = R(a, b) * S(b, c) * T(c, d)"), strategy)
    for trigger in planned.triggers:
        for name in {m.name for m in planned.maps if trigger.atom in m.atoms}:
            blocks = tuple(
                replace(block, steps=tuple(s for s in block.steps if not _updates(s, name)))
                for block in trigger.blocks
            )
            others = tuple(t for t in planned.triggers if t is not trigger)
            with pytest.raises(ProgramError, match="disagree"):
                replace(planned, triggers=(*others, replace(trigger, blocks=blocks)))


def _updates(step, name):
    return isinstance(step, Update) and step.target == name
