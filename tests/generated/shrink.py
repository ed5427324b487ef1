"""Makes a failing case small: fewer refreshes, fewer rows, less SQL, and the same failure."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic

import sqlglot
from sqlglot import exp

from tests.generated.cases import Case
from tests.generated.histories import History
from tests.generated.runners import InvalidCaseError, Runner

SECONDS = 90.0
"""After this time the smallest case so far has to do."""


def shrink(case: Case, run: Runner, seconds: float = SECONDS) -> tuple[Case, Exception]:
    """The smallest case found that fails as this one does, and its failure."""
    failure = failure_of(case, run)
    assert failure is not None, "a case that does not fail cannot be made smaller"
    until, wanted = monotonic() + seconds, kind_of(failure)
    progress = True
    while progress and monotonic() < until:
        progress = False
        for smaller in _smaller(case):
            if monotonic() > until:
                break
            found = failure_of(smaller, run)
            if found is not None and kind_of(found) == wanted:
                case, failure, progress = smaller, found, True
                break
    return case, failure


def failure_of(case: Case, run: Runner) -> Exception | None:
    """How a case fails, if it does."""
    try:
        run(case)
    except InvalidCaseError:
        return None
    except Exception as error:
        return error
    return None


def kind_of(failure: Exception) -> str:
    """What makes two failures the same: the type, and how the message starts."""
    words = str(failure).replace(":", " ").replace("\n", " ").split()[:4]
    return f"{type(failure).__name__} {' '.join(w for w in words if w.isalpha())}"


def _smaller(case: Case) -> Iterator[Case]:
    for history in _fewer_states(case.history):
        yield replace(case, history=history)
    for history in _fewer_rows(case.history):
        yield replace(case, history=history)
    for number, (name, sql) in enumerate(case.views):
        before, after = case.views[:number], case.views[number + 1 :]
        if len(case.views) > 1:
            yield replace(case, views=(*before, *after))
        for text in dict.fromkeys(_less_sql(sql)):
            yield replace(case, views=(*before, (name, text), *after))
    for history in _fewer_changes(case.history):
        yield replace(case, history=history)


# --- histories ------------------------------------------------------------------------------------


def _fewer_states(history: History) -> Iterator[History]:
    states = history.states
    if len(states) > 2:
        for number in range(len(states)):
            yield replace(history, states=states[:number] + states[number + 1 :])


def _fewer_rows(history: History) -> Iterator[History]:
    for name in history.tables:
        keys = dict.fromkeys(key for state in history.states for key in state[name])
        if len(keys) > 1:
            yield _without(history, name, lambda _: True)
        for key in keys:
            yield _without(history, name, lambda each, key=key: each == key)


def _without(history: History, name: str, is_gone: Callable[[object], bool]) -> History:
    states = tuple(
        {**state, name: {key: row for key, row in state[name].items() if not is_gone(key)}}
        for state in history.states
    )
    return replace(history, states=states)


def _fewer_changes(history: History) -> Iterator[History]:
    """Histories in which one row stays as it was."""
    for number in range(1, len(history.states)):
        for name, rows in history.states[number].items():
            before = history.states[number - 1][name]
            for key in {**before, **rows}:
                if before.get(key) != rows.get(key):
                    kept = {k: row for k, row in rows.items() if k != key}
                    kept |= {key: before[key]} if key in before else {}
                    state = {**history.states[number], name: kept}
                    states = (*history.states[:number], state, *history.states[number + 1 :])
                    yield replace(history, states=states)


# --- SQL ------------------------------------------------------------------------------------------


def _less_sql(sql: str) -> Iterator[str]:
    """Texts with one part less; some of them mean nothing, which the oracle tells."""
    tree = sqlglot.parse_one(sql, read="spark")
    for number, node in enumerate(tree.walk()):
        for way in _ways(node):
            copy = tree.copy()
            same = next(n for i, n in enumerate(copy.walk()) if i == number)
            result = way(same)
            text = (result if same.parent is None and result is not None else copy).sql("spark")
            if len(text) < len(sql):
                yield text


Way = Callable[[exp.Expr], exp.Expr | None]


def _ways(node: exp.Expr) -> Iterator[Way]:
    """What can be done to a node of the tree."""
    match node:
        case exp.Select():
            yield from (_dropper("expressions", i) for i in _several(node.expressions))
            yield from (_dropper("joins", i) for i in range(len(node.args.get("joins") or ())))
            yield from (_remover(p) for p in ("where", "having", "distinct", "group", "with_"))
        case exp.Group():
            yield from (_dropper("expressions", i) for i in _several(node.expressions))
        case exp.SetOperation() | exp.Binary():
            yield from (_replacer("this"), _replacer("expression"))
        case exp.Where() | exp.Having() | exp.Alias() | exp.Table() | exp.TableAlias():
            return
        case exp.Func() | exp.Paren() | exp.Not() | exp.In() | exp.Between():
            if isinstance(node.this, exp.Expr):
                yield _replacer("this")
        case exp.With():
            yield from (_dropper("expressions", i) for i in _several(node.expressions))
    if isinstance(node, exp.Case):
        yield lambda found: found.replace(found.args["ifs"][0].args["true"])
    if isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From):
        yield _hoisted


def _several(parts: list[exp.Expr]) -> range:
    return range(len(parts) if len(parts) > 1 else 0)


def _dropper(part: str, index: int) -> Way:
    def drop(node: exp.Expr) -> None:
        node.set(part, [each for i, each in enumerate(node.args[part]) if i != index])

    return drop


def _remover(part: str) -> Way:
    return lambda node: node.set(part, None)


def _replacer(part: str) -> Way:
    return lambda node: node.replace(node.args[part])


def _hoisted(node: exp.Expr) -> exp.Expr | None:
    """The query in brackets, in place of the block around it."""
    around = node.find_ancestor(exp.Select)
    return around.replace(node.this) if around is not None else None
