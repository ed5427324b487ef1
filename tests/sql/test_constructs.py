"""The page of constructs is what the planner answers, and nothing that has an answer is refused."""

from bench.constructs import CONSTRUCTS, PAGE, lines, page


def test_the_page_is_made_from_the_code() -> None:
    assert PAGE.read_text() == page(), "run python -m bench.constructs --docs"


def test_only_what_has_no_stable_answer_is_refused() -> None:
    for part in CONSTRUCTS:
        for line in lines(part):
            assert line.kept.startswith("refused") == (part == "Never"), line
