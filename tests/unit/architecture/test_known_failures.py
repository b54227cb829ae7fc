"""docs/known-failures.md and the tests that it names stay in step."""

import ast
import re

import pytest

from training.settings import REPOSITORY

TEXT = (REPOSITORY / "docs" / "known-failures.md").read_text()
ROWS = re.findall(r"^\| (K\d\d) \| .+? \| (.+) \|$", TEXT, flags=re.MULTILINE)


@pytest.mark.parametrize(("row", "cell"), ROWS, ids=[row for row, _ in ROWS])
def test_each_named_test_exists_and_names_its_row(row, cell):
    paths = re.findall(r"\(\.\./(tests/[^)]+)\)", cell)

    assert paths
    for path in paths:
        assert re.search(rf"\b{row}\b", (REPOSITORY / path).read_text()), path


def test_each_row_that_a_test_names_is_in_the_table():
    named = {
        row
        for path in (REPOSITORY / "tests").rglob("test_*.py")
        for row in re.findall(r"\bK\d\d\b", path.read_text())
        if path.name != "test_known_failures.py"
    }

    assert named - {row for row, _ in ROWS} == set()


BY_STRATEGY = (REPOSITORY / "docs" / "known-failures-by-strategy.md").read_text()
STRATEGIES = ("single", "mirrored", "central_storage", "multi_worker_mirrored", "parameter_server", "horovod")
WORDS = dict(re.findall(r"^\| ([\w ]+) \| \[(\w+)\]\(", BY_STRATEGY, flags=re.MULTILINE))
PLACES = dict(re.findall(r"^\| [\w ]+ \| \[(\w+)\]\(\.\./tests/([^)]+)\) \|$", BY_STRATEGY, flags=re.MULTILINE))
CELLS = [
    (row, strategy, cell)
    for row, cells in re.findall(r"^\| (K\d\d) [^|]+\| (.+) \|$", BY_STRATEGY, flags=re.MULTILINE)
    for strategy, cell in zip(STRATEGIES, cells.split(" | "), strict=True)
]


def test_the_page_has_a_column_for_each_strategy_and_uses_every_word():
    assert f"| | {' | '.join(STRATEGIES)} |" in BY_STRATEGY
    assert {word for _, _, cell in CELLS if "cannot hit" not in cell for word in cell.split(", ")} == WORDS.keys()


@pytest.mark.parametrize(("row", "strategy", "cell"), CELLS, ids=[f"{row}-{name}" for row, name, _ in CELLS])
def test_each_failure_has_a_test_under_each_strategy_or_a_reason(row, strategy, cell, request):
    if cell.startswith("cannot hit: "):
        return
    for name in (WORDS[word] for word in cell.split(", ")):
        path = REPOSITORY / "tests" / PLACES[name]
        tree = ast.parse(path.read_text())
        function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
        said = f"{ast.get_docstring(tree)} {ast.get_docstring(function)}"
        assert re.search(rf"\b{row}\b", said), f"{path}: {name} does not name {row}"
        ids = list_ids(request.session, path, name)
        if any(find_strategies(each) for each in ids):
            assert strategy in {found for each in ids for found in find_strategies(each)}, f"{name}: {ids}"


def find_strategies(test_id):
    """Return the strategies that the id of a test names."""
    return {name for name in STRATEGIES if re.search(rf"(?<![a-z_]){name}(?![a-z_])", test_id)}


def list_ids(session, path, name):
    """Return what a test is called with, as far as this session has all tests of its file."""
    options = session.config.option
    if options.keyword or options.markexpr or any("::" in argument for argument in session.config.args):
        return []
    return [
        item.callspec.id
        for item in session.items
        if item.path == path and getattr(item, "originalname", "") == name and hasattr(item, "callspec")
    ]
