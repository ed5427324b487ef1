"""Runs the cells of the notebooks in examples/ and stores what each shows.

The value of a cell's last expression is shown as Jupyter shows it, in text and in HTML.
`make docs` writes the notebooks; tests/test_examples.py compares them.
"""

import ast
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

NOTEBOOKS = tuple(sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.ipynb")))

Cell = dict[str, Any]


def refreshed_notebook(text: str) -> str:
    """The notebook with what its cells show now, run in order in a fresh namespace."""
    notebook = json.loads(text)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    code_cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code_cells, start=1):
        cell["execution_count"], cell["outputs"] = number, _outputs(cell, number, namespace)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _outputs(cell: Cell, number: int, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """What a cell prints, then the value of its last expression."""
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), namespace)
    outputs = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(text)})
    if value is not None:
        result = {"execution_count": number, "metadata": {}, "output_type": "execute_result"}
        outputs.append({"data": _shown(value), **result})
    return outputs


def _shown(value: Any) -> dict[str, list[str]]:
    html = {"text/html": _lines(value._repr_html_())} if hasattr(value, "_repr_html_") else {}
    return {**html, "text/plain": _lines(repr(value))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        path.write_text(refreshed_notebook(text), encoding="utf-8")
