"""docs/known-failures.md and the tests that it names stay in step."""

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
