"""Names of functions picked at random: can a reader of the layout (docs/architecture.md and
docs/files.md) tell their files?

python scripts/pick_functions.py 7            ten names, those of methods with their class
python scripts/pick_functions.py 7 --answers  the same with their files
"""

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path
from random import Random

PACKAGE = Path(__file__).parent.parent / "src" / "viewkeep"


def functions(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """The functions of a module, and the methods of its classes but those that Python names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            yield f"{prefix}{node.name}"


def main() -> None:
    """Print the picked functions."""
    parser = argparse.ArgumentParser(description="Pick functions of Viewkeep at random.")
    parser.add_argument("seed", type=int, help="the same seed picks the same functions")
    parser.add_argument("--count", type=int, default=10, metavar="N")
    parser.add_argument("--answers", action="store_true", help="print their files too")
    options = parser.parse_args()
    pairs = [
        (name, str(file.relative_to(PACKAGE)))
        for file in sorted(PACKAGE.rglob("*.py"))
        for name in functions(ast.parse(file.read_text(encoding="utf-8")))
    ]
    for name, file in Random(options.seed).sample(pairs, options.count):
        print(f"{name}  {file}" if options.answers else name)


if __name__ == "__main__":
    main()
