"""Saved and restored in the middle of a stream, a maintainer goes on as if nothing had happened."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.streams import WAYS, Database, assert_equals_recomputation, given_values, streams
from tests.strategies import queries
from viewkeep.rings import MatrixRing


@given(query=queries(max_atoms=4), way=st.sampled_from(WAYS), data=st.data())
@settings(max_examples=40)
def test_saving_and_restoring_in_the_middle_changes_nothing(query, way, data, tmp_path_factory):
    stream, inputs = data.draw(streams(query)), data.draw(given_values(query))
    path = tmp_path_factory.mktemp("state") / "state"
    live, database = vk.maintain(query, **way), Database()
    for position, update in enumerate(stream):
        live.update(*update)
        database.apply([update])
        if position == len(stream) // 2:
            live.save(path)
            live = vk.Maintainer.restore(path)
        assert_equals_recomputation(live, query, database, inputs)


def test_what_was_put_off_is_saved_too(tmp_path):
    live = vk.maintain("Q(a) = R(a)", mode="lazy")
    live.update("R", (1,))
    live.save(tmp_path / "state")
    assert list(vk.Maintainer.restore(tmp_path / "state").enumerate()) == [((1,), 1)]


def test_steps_options_and_constraints_are_restored_and_subscribers_are_not(tmp_path):
    ring, told = MatrixRing(("b",)), []
    live = vk.maintain("Q(a) = R(a, b)", ring=ring, output="list", insert_only=True)
    live.subscribe(told.append)
    live.update("R", (1, 2))
    live.save(str(tmp_path / "state"))
    told.clear()
    restored = vk.Maintainer.restore(str(tmp_path / "state"))
    assert (restored.steps, restored.options) == (live.steps, live.options)
    restored.update("R", (1, 3))
    assert told == []
    assert ring.sum_of(restored.lookup((1,)), "b") == 5
    with pytest.raises(vk.SchemaError, match="inserts only"):
        restored.update("R", (1, 3), -1)


def test_another_process_restores_the_same_program(tmp_path):
    """Set iteration order differs between processes; a plan made anew might not fit the maps."""
    text = "Q(a, d) = R(a, b) * S(b, c) * T(c, d) * U(d, a) * V(b, d)"
    live = vk.maintain(text, strategy="viewtree")
    live.load({r: [(i, i % 2) for i in range(4)] for r in "RSTUV"})
    live.save(tmp_path / "state")
    script = (
        "import sys, viewkeep as vk\n"
        "live = vk.Maintainer.restore(sys.argv[1])\n"
        "live.update('U', (0, 1))\n"
        "print(sorted(live.enumerate()), sep='')\n"
        "print(live.program)"
    )
    live.update("U", (0, 1))
    for seed in ("1", "2"):
        shown = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "state")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert shown == f"{sorted(live.enumerate())}\n{live.program}\n"


def test_nothing_is_planned_anew(tmp_path, monkeypatch):
    """Another version might plan otherwise, and the saved maps would not fit."""
    path = saved(tmp_path)
    monkeypatch.setattr("viewkeep.maintainer.plan", None)
    assert list(vk.Maintainer.restore(path).enumerate()) == [((1,), 1)]


def saved(tmp_path: Path) -> Path:
    live = vk.maintain("Q(a) = R(a)")
    live.update("R", (1,))
    live.save(tmp_path / "state")
    return tmp_path / "state"


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-20],
        lambda content: content[: len(content) // 2],
        lambda content: b"PK" + content,
        lambda content: b"",
        lambda content: content.split(b"\n", 1)[0] + b"\n",
        lambda content: content.split(b"\n", 1)[0] + b"\n" + pickle.dumps({"query": 1}),
        lambda content: content.split(b"\n", 1)[0] + b"\n" + pickle.dumps([1, 2]),
    ],
)
def test_a_file_that_is_not_a_whole_state_is_refused(tmp_path, damage):
    path = saved(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(vk.ViewkeepError, match="cannot restore"):
        vk.Maintainer.restore(path)


def test_a_file_of_another_version_is_refused_by_name(tmp_path):
    path = saved(tmp_path)
    path.write_bytes(b"viewkeep state 1\n" + path.read_bytes().split(b"\n", 1)[1])
    with pytest.raises(vk.ViewkeepError, match="another version of Viewkeep"):
        vk.Maintainer.restore(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(vk.ViewkeepError, match="cannot restore"):
            vk.Maintainer.restore(path)


def test_saving_where_nothing_can_be_written_is_a_clear_error(tmp_path):
    live = vk.maintain("Q(a) = R(a)")
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "no" / "folder", tmp_path / "file" / "below", tmp_path, "", "a\0b"):
        with pytest.raises(vk.ViewkeepError, match="cannot save"):
            live.save(path)


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = saved(tmp_path)
    old = path.read_bytes()
    unpicklable = vk.maintain("Q(a) = R(a)", ring=MatrixRing(("a",)), lifts={"a": lambda x: x})
    with pytest.raises(vk.ViewkeepError, match="cannot save"):
        unpicklable.save(path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(vk.ViewkeepError, match="No space left"):
        vk.maintain("Q(a) = R(a)").save(path)
    assert path.read_bytes() == old
    assert [each.name for each in tmp_path.iterdir()] == ["state"]
