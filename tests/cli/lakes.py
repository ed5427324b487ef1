"""Commands on lakes, in this process, so that they use the Spark session of the tests."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from viewkeep.cli.main import run


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def viewkeep(*arguments: str | Path) -> Answer:
    """What a command answers."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as exit_:
        run([str(each) for each in arguments])
    return Answer(int(exit_.value.code or 0), out.getvalue(), err.getvalue())


def done(*arguments: str | Path) -> Answer:
    """What a command answers that must succeed."""
    answer = viewkeep(*arguments)
    assert answer.code == 0, answer
    return answer


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
