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
#: Columns of the page's tables.
STRATEGIES = {
    "Keras": (
        *("single", "mirrored", "central_storage", "multi_worker_mirrored", "parameter_server", "horovod"),
        "pipeline",
    ),
    "Gluon": ("single", "data_parallel", "model_parallel"),
    "Gluon in several processes": ("dist_sync", "dist_async", "horovod"),
}
#: How the ids of tests call a strategy: those of MXNet by the engine or by what is trained.
IN_IDS = {
    "Keras": r"(?<![a-z_])(?<!gluon-)(?<!mxnet-){}(?![a-z_])",
    "Gluon": r"(?:(?<=gluon-)|(?<=mxnet-)){}(?![a-z_])",
    "Gluon in several processes": r"(?:(?<=gluon-)|(?<=mxnet-)){}(?![a-z_])",
}
#: Word to the name of a test and its file: two files may have a test of one name.
WORDS = {
    word: place
    for word, *place in re.findall(
        r"^\| ([\w ]+) \| \[(\w+)\]\(\.\./tests/([^)]+)\) \|$", BY_STRATEGY, flags=re.MULTILINE
    )
}


def read_table(models):
    """Return the header and the cells of the table for `models`, as row and texts."""
    section = BY_STRATEGY.split(f"\n## {models}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (K\d\d) [^|]+\| (.+) \|$", section, flags=re.MULTILINE)
    return section, [(row, cells.split(" | ")) for row, cells in rows]


CELLS = [
    pytest.param(models, row, strategy, cell, id=f"{models}-{row}-{strategy}")
    for models, strategies in STRATEGIES.items()
    for row, cells in read_table(models)[1]
    for strategy, cell in zip(strategies, cells, strict=True)
]


def test_the_page_has_a_column_for_each_strategy_and_uses_every_word():
    for models, strategies in STRATEGIES.items():
        assert f"| | {' | '.join(strategies)} |" in read_table(models)[0]
    cells = [cell.values[3] for cell in CELLS]
    assert {word for cell in cells if "cannot hit" not in cell for word in cell.split(", ")} == WORDS.keys()


@pytest.mark.parametrize(("models", "row", "strategy", "cell"), CELLS)
def test_each_failure_has_a_test_under_each_strategy_or_a_reason(models, row, strategy, cell, request):
    if cell.startswith("cannot hit: "):
        return
    for name, place in (WORDS[word] for word in cell.split(", ")):
        path = REPOSITORY / "tests" / place
        tree = ast.parse(path.read_text())
        function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
        said = f"{ast.get_docstring(tree)} {ast.get_docstring(function)}"
        assert re.search(rf"\b{row}\b", said), f"{path}: {name} does not name {row}"
        ids = list_ids(request.session, path, name)
        if any(find_strategies(models, each) for each in ids):
            assert strategy in {found for each in ids for found in find_strategies(models, each)}, f"{name}: {ids}"


def find_strategies(models, test_id):
    """Return the strategies for `models` that the id of a test names."""
    return {name for name in STRATEGIES[models] if re.search(IN_IDS[models].format(name), test_id)}


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
