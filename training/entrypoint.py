"""The user's own Python: `module` or `path.py`, optionally with `:function` behind it. Found, then imported.

Finding imports nothing, so that a plan and a preflight can ask whether a file is there.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from training.errors import SpecError, spec_error
from training.names import say_nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrypoint:
    """Where a user's code is.

    Attributes:
        text: As it was written in the spec.
        field: Field of the spec that it was written in, for errors.
        module: Dotted name of the module, or None for a file.
        path: The file, or None for a module.
        function: Name behind the colon, or None.
        base_dir: Folder that a relative path counts from, and in which modules are looked for first after the
            environment's.
    """

    text: str
    field: str
    module: str | None = None
    path: Path | None = None
    function: str | None = None
    base_dir: Path


def parse_entrypoint(text: str, base_dir: Path, field: str) -> Entrypoint:
    """Return where `text` points to; nothing is looked up.

    >>> parse_entrypoint("models/net.py:rows", Path("/job"), "data.source").path
    PosixPath('/job/models/net.py')
    """
    place, colon, function = text.partition(":")
    wanted = function if colon else None
    if place.endswith(".py"):
        path = base_dir / Path(place).expanduser()
        return Entrypoint(text=text, field=field, path=path, function=wanted, base_dir=base_dir)
    return Entrypoint(text=text, field=field, module=place, function=wanted, base_dir=base_dir)


def find_file(entrypoint: Entrypoint) -> Path | None:
    """Return the file of the code without importing anything; None where a module is not found or has no file.

    Raises:
        SpecError: The path names no file.
    """
    if entrypoint.path is not None:
        return _require_file(entrypoint, entrypoint.path)
    search: list[str] | None = [*sys.path, str(entrypoint.base_dir)]
    origin: str | None = None
    name = entrypoint.module or ""
    for depth in range(1, name.count(".") + 2):
        found = PathFinder.find_spec(".".join(name.split(".")[:depth]), search)
        if found is None:
            return None
        origin, search = found.origin, list(found.submodule_search_locations or ())
    return Path(origin) if origin else None


def import_entrypoint(entrypoint: Entrypoint) -> ModuleType:
    """Import the user's code and return its module.

    A file is imported under its own stem where that is free, so that modules beside it can import one another.

    Raises:
        SpecError: There is no such file or module, or it raised while being imported.
    """
    folder = entrypoint.path.parent if entrypoint.path else entrypoint.base_dir
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # at the end: a user's file must not replace a package
    try:
        if entrypoint.path is not None:
            return _import_file(_require_file(entrypoint, entrypoint.path))
        return importlib.import_module(entrypoint.module or "")
    except SpecError:
        raise
    except ModuleNotFoundError as error:
        raise _not_found(entrypoint, error, folder) from error
    except Exception as error:  # whatever a user's module raises when imported
        raise spec_error(
            entrypoint.field,
            f"must be importable. Received: {entrypoint.text}, which raised "
            f"{type(error).__name__}: {error}{_place(error, folder)}.",
        ) from error


def get_function(module: ModuleType, name: str, entrypoint: Entrypoint) -> object:
    """Return the attribute `name` of the user's module.

    Raises:
        SpecError: The module has nothing of that name.
    """
    if hasattr(module, name):
        return getattr(module, name)
    callables = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    raise spec_error(
        entrypoint.field,
        f"must define {name}. Received: {module.__file__ or entrypoint.text}, which does not.",
        say_nearest(name, callables),
    )


def _require_file(entrypoint: Entrypoint, path: Path) -> Path:
    if path.is_file():
        return path
    siblings = [file.name for file in path.parent.glob("*.py")] if path.parent.is_dir() else []
    raise spec_error(
        entrypoint.field,
        f"must be an existing file. Received: {entrypoint.text}, looked for as {path}.",
        say_nearest(path.name, siblings),
    )


def _import_file(path: Path) -> ModuleType:
    name = path.stem
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    if loaded is not None or PathFinder.find_spec(name, [entry for entry in sys.path if entry != str(path.parent)]):
        name = f"ganger_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{path} is no Python file", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _not_found(entrypoint: Entrypoint, error: ModuleNotFoundError, folder: Path) -> SpecError:
    wanted = entrypoint.module or ""
    if error.name and (wanted == error.name or wanted.startswith(f"{error.name}.")):
        return spec_error(
            entrypoint.field,
            f"must be an importable module or a path that ends in .py. Received: {entrypoint.text}; "
            f"there is no module {error.name} in {sys.prefix} nor in {entrypoint.base_dir}.",
        )
    return spec_error(
        entrypoint.field,
        f"must be importable. Received: {entrypoint.text}, which needs the module {error.name}{_place(error, folder)}; "
        f"{sys.prefix} does not have it.",
    )


def _place(error: Exception, folder: Path) -> str:
    """Return where the user's code was when it raised: its last line below `folder`, else the last line of all."""
    if isinstance(error, SyntaxError):
        return f" (line {error.lineno} of {error.filename})"
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename and f.filename != __file__
    ]
    own = [f for f in frames if Path(f.filename).is_relative_to(folder) and "site-packages" not in f.filename]
    last = (own or frames)[-1:]
    return f" (line {last[0].lineno} of {last[0].filename})" if last else ""
