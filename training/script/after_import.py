"""Does something right after a module was imported, by whomever. Nothing is imported for it: scripts choose what."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Action = Callable[[ModuleType], None]


class AfterImport(MetaPathFinder):
    """Finds the modules of some actions, and has the action follow when such a module is executed."""

    def __init__(self, actions: Mapping[str, Action]) -> None:
        self._actions = dict(actions)
        self._searched: set[str] = set()

    def install(self) -> None:
        """Begin to watch what is imported; a module that is there already gets its action now."""
        sys.meta_path.insert(0, self)
        for name, action in self._actions.items():
            if name in sys.modules:
                action(sys.modules[name])

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import a module that has an action; None leaves it to the other finders."""
        action = self._actions.get(fullname)
        if action is None or fullname in self._searched:
            return None
        self._searched.add(fullname)  # so that the search below passes by us
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searched.discard(fullname)
        if spec is not None and spec.loader is not None:
            _follow(spec, action)
        return spec


def _follow(spec: ModuleSpec, action: Action) -> None:
    loader = spec.loader
    assert loader is not None
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        action(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]
