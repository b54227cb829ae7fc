"""Which tests must run in one process, when several run them at once (`make test`)."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# Their tests share what is started once: servers, a database, gangs that train many models. The longest stand first.
TOGETHER = ("engine", "live", "airflow", "tracking", "browser")


def pytest_collection_modifyitems(items):
    """Put the tests that share something into one group each, and begin with the groups that take longest.

    A module that shares nothing with its folder has its own group: `pytestmark = pytest.mark.xdist_group("...")`.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(name_group(item.path.relative_to(TESTS))))
    items.sort(key=lambda item: rank_folder(item.path.relative_to(TESTS).parts[0]))


def name_group(path):
    return path.parts[0] if path.parts[0] in TOGETHER else path.as_posix()


def rank_folder(folder):
    return TOGETHER.index(folder) if folder in TOGETHER else len(TOGETHER)
