"""What follows an import, and that nothing is imported for it."""

import importlib
import importlib.util
import sys

import pytest

from training.script.after_import import AfterImport


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Return the list of what was done: `seen` after the module `late`, `inner` after `late.deep`."""
    package = tmp_path / "late"
    package.mkdir()
    (package / "__init__.py").write_text("value = 1\n")
    (package / "deep.py").write_text("import late\nvalue = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    done = []
    finder = AfterImport(
        {name: lambda module: done.append((module.__name__, getattr(module, "value", None))) for name in NAMES}
    )
    finder.install()
    yield done
    sys.meta_path.remove(finder)
    for name in NAMES:
        if name != "json":
            sys.modules.pop(name, None)


NAMES = ("late", "late.deep", "json")


def test_a_module_that_is_there_already_gets_its_action_at_once(watched):
    assert watched == [("json", None)]


def test_the_action_follows_the_module_once(watched):
    watched.clear()
    import late.deep

    assert watched == [("late", 1), ("late.deep", 2)]
    importlib.import_module("late.deep")
    assert watched == [("late", 1), ("late.deep", 2)]
    assert late.__spec__.name == "late"


def test_looking_for_a_module_is_no_import(watched):
    """Libraries probe for one another by `find_spec`."""
    watched.clear()
    assert importlib.util.find_spec("late") is not None
    assert watched == []
    importlib.import_module("late")
    assert watched == [("late", 1)]
