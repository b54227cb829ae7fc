"""Horovod's wheel: compiled once for a framework, kept in the cache folder, checked whenever it is taken from there.

Horovod 0.28.1 is published as source only. It is compiled against the framework's headers, so the framework is
installed first and the build is not isolated. The cache saves minutes and is never relied on: what is damaged is
compiled again, and a cache folder that cannot be written is done without.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

from training import settings
from training.environments.command import run_logged
from training.environments.lock import digest_files, read_pins, read_versions
from training.environments.recipe import HOROVOD, REQUIREMENTS, EnvironmentRecipe
from training.environments.requirement import find_compiler
from training.errors import LaunchError

#: Flags of every build: Gloo only, since it needs nothing installed; the frameworks' own flags are in the recipe.
COMMON_FLAGS = {
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    # Its bundled third-party projects ask for a CMake older than CMake 4 still takes.
    "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
}
_SUM = "sha256"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelOrigin:
    """Everything that decides what the compiled wheel is; its digest is the key in the cache."""

    horovod: str
    framework: str
    python: str
    machine: str
    libc: str
    compiler: str
    lock: str
    flags: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """Name of its folder in the cache: readable in front, exact at the end."""
        digest = hashlib.sha256(repr(astuple(self)).encode()).hexdigest()[:12]
        return f"horovod-{self.horovod}-{self.framework}-{self.python}-{digest}"


def read_origin(recipe: EnvironmentRecipe) -> WheelOrigin:
    """Return the origin that a wheel compiled now for the environment of `recipe` would have."""
    compiler = subprocess.run([find_compiler() or "g++", "--version"], capture_output=True, text=True, check=False)
    framework = read_versions(recipe.path).get(recipe.horovod, "none")
    return WheelOrigin(
        horovod=read_pins([REQUIREMENTS / HOROVOD])["horovod"],
        framework=f"{recipe.horovod}-{framework}",
        python=f"cp{sys.version_info[0]}{sys.version_info[1]}",
        machine=platform.machine(),
        libc="-".join(platform.libc_ver()),
        compiler=compiler.stdout.partition("\n")[0],
        lock=digest_files([REQUIREMENTS / HOROVOD]),
        flags=recipe.horovod_flags,
    )


def find_cached(folder: Path) -> Path | None:
    """Return the wheel in a folder of the cache, if it is there and whole."""
    wheel = next(iter(sorted(folder.glob("*.whl"))), None)
    if wheel is None or not (folder / _SUM).exists():
        return None
    intact = (folder / _SUM).read_text(encoding="utf-8").strip() == hashlib.sha256(wheel.read_bytes()).hexdigest()
    return wheel if intact and zipfile.is_zipfile(wheel) else None


def obtain_wheel(recipe: EnvironmentRecipe, *, log_file: Path, log: Callable[[str], None], scratch: Path) -> Path:
    """Return a Horovod wheel for the environment of `recipe`, from the cache or compiled now.

    Args:
        recipe: Recipe of an environment that holds the framework already.
        log_file: File that the compiler's output goes to.
        log: Takes a line for the person who waits.
        scratch: Folder to compile in; the wheel stays there when the cache cannot be written.

    Raises:
        LaunchError: It does not compile.
        InfrastructureError: The disk is full.
    """
    folder = settings.read_cache_dir() / "wheels" / read_origin(recipe).key
    cached = find_cached(folder)
    if cached is not None:
        log(f"    Horovod's wheel is in the cache: {cached}")
        return cached
    if folder.exists():
        log(f"    the wheel in {folder} is damaged; it is compiled again")
    log("    Horovod is compiled now; this takes about 3 minutes on 2 cores, and only the first time")
    wheel = compile_wheel(recipe, scratch, log_file=log_file)
    return keep_wheel(wheel, folder, log)


def compile_wheel(recipe: EnvironmentRecipe, scratch: Path, *, log_file: Path) -> Path:
    """Compile Horovod into `scratch` with the tools of the environment of `recipe`.

    Raises:
        LaunchError: It does not compile.
        InfrastructureError: The disk is full.
    """
    python = recipe.path / "bin" / "python"
    out = scratch / "wheel"
    command = [str(python), "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--require-hashes"]
    # pip's own wheel cache does not know which framework a wheel was compiled against.
    command += ["--no-cache-dir", "--wheel-dir", str(out), "-r", str(REQUIREMENTS / HOROVOD)]
    env = compiler_environment(recipe, os.environ, scratch)
    run_logged(command, log_file=log_file, env=env, doing=f"compiling Horovod for {recipe.name}")
    wheel = next(iter(out.glob("horovod-*.whl")), None)
    if wheel is None:
        raise LaunchError(f"compiling Horovod for {recipe.name} left no wheel in {out} (details: {log_file}).")
    return wheel


def compiler_environment(recipe: EnvironmentRecipe, environ: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return the environment that Horovod is compiled in: cmake of the environment first, as many jobs as cores."""
    return {
        **{name: value for name, value in environ.items() if not name.startswith("HOROVOD_")},
        **COMMON_FLAGS,
        **dict(recipe.horovod_flags),
        "PATH": f"{recipe.path / 'bin'}{os.pathsep}{environ.get('PATH', os.defpath)}",
        # Not the job server of a `make` that runs us, and not Horovod's eight jobs whatever the machine.
        "MAKEFLAGS": f"-j{len(os.sched_getaffinity(0))}",
        "TMPDIR": str(scratch),
    }


def keep_wheel(wheel: Path, folder: Path, log: Callable[[str], None]) -> Path:
    """Put `wheel` into `folder` of the cache, whole or not at all, and return where it can be installed from."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            shutil.copy2(wheel, staging / wheel.name)
            (staging / _SUM).write_text(hashlib.sha256(wheel.read_bytes()).hexdigest() + "\n", encoding="utf-8")
            if folder.exists():
                folder.rename(staging / "damaged")
            staging.rename(folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(folder / "damaged", ignore_errors=True)
    except OSError as error:
        log(f"    the wheel could not be kept for the next time: {error}")
        return wheel
    return folder / wheel.name
