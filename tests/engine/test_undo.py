"""A refused change gives back the layout of heavy and light parts, and noting that is cheap."""

import random

import pytest

import viewkeep as vk
from tests.engine.test_adaptive_interface import TRIANGLE, Fussy
from viewkeep.engine.interpreter.partitions import LevelNote, PartitionRebalancer


def layout(live):
    partitions = live.engine.partitions
    return partitions.base, [dict(levels) for levels in partitions.levels]


def test_an_update_notes_what_it_changes_and_not_what_is_heavy(monkeypatch):
    """Wall time must follow the steps: nothing is copied that an update does not touch."""
    live = vk.maintain(
        "Q(a; sum(c)) = R(a, b) * S(b, c)", strategy="epsilon", engine="reference", epsilon=0.1
    )
    live.load(
        {
            "R": [(a, b) for b in range(200) for a in range(8)],
            "S": [(b, c) for b in range(200) for c in range(4)],
        }
    )
    assert sum(map(len, live.engine.partitions.levels)) >= 200
    notes, begin = [], PartitionRebalancer.begin_note

    def begun(self):
        notes.append(begin(self))
        return notes[-1]

    def copied(self):
        raise AssertionError("the layout is copied")

    monkeypatch.setattr(PartitionRebalancer, "begin_note", begun)
    monkeypatch.setattr(PartitionRebalancer, "layout", copied)
    for c in range(100):
        live.update("S", (c % 7, 100 + c))
        live.update("R", (100 + c, 1000 + c))  # a value that was not there
    live.update_batch("S", [(b, 500) for b in range(1000, 1020)])
    assert len(notes) == 201
    assert max(map(len, notes)) <= 20
    assert live.engine.partitions.note is None


@pytest.mark.parametrize("seed", range(4))
def test_a_refused_batch_gives_back_thresholds_and_levels(seed):
    """Batches that move values and double the base, some of which the ring refuses halfway."""
    chosen = random.Random(seed)
    live = vk.maintain(TRIANGLE, strategy="epsilon", engine="reference", ring=Fussy(), check=True)
    refused = moved = 0
    for _ in range(120):
        relation, batch = chosen.choice("RST"), chosen.choice((1, 3, 20))
        rows = [
            (min(chosen.randrange(6), chosen.randrange(6)), chosen.randrange(6))
            for _ in range(batch)
        ]
        before, inputs = layout(live), sorted(live.engine.inputs())
        present = {row for atom, row, _ in inputs if live.query.atoms[atom].relation == relation}
        # Nothing below zero: loading what was there then adds up to no more than it did before.
        signs = [
            chosen.choice((1, 1, -1)) if rows.count(r) == 1 and r in present else 1 for r in rows
        ]
        try:
            live.update_batch(relation, rows, signs)
        except OverflowError:
            refused += 1
            assert layout(live) == before
            assert sorted(live.engine.inputs()) == inputs
        else:
            moved += layout(live) != before
    assert refused
    assert moved


def test_a_note_gives_back_levels_that_were_changed_and_then_replaced():
    note = LevelNote(base=9, splits=1)
    levels = {("kept",): 1, ("raised",): 1, ("gone",): 2}
    before = dict(levels)
    note.change(0, ("raised",), 1)
    levels["raised",] = 2
    note.change(0, ("gone",), 2)
    del levels["gone",]
    note.change(0, ("new",), None)
    levels["new",] = 1
    note.replace(0, levels)
    note.change(0, ("later",), None)  # a change of what has come in its place
    assert note.layout([{("later",): 1}]).levels == (before,)
    assert note.layout([{}]).base == 9
