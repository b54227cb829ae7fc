import dataclasses
import hashlib
import zipfile

import pytest

from training.environments import RECIPES
from training.environments.wheel import (
    WheelOrigin,
    compiler_environment,
    find_cached,
    keep_wheel,
    obtain_wheel,
    read_origin,
)

NAME = "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
ORIGIN = WheelOrigin(
    horovod="0.28.1",
    framework="tensorflow-cpu-2.18.1",
    python="cp311",
    machine="x86_64",
    libc="glibc-2.36",
    compiler="g++ 12.2.0",
    lock="ab",
    flags=(("HOROVOD_WITH_TENSORFLOW", "1"),),
)


def make_wheel(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / NAME, "w") as archive:
        archive.writestr("horovod/__init__.py", "")
    return folder / NAME


def test_a_kept_wheel_is_found_again(tmp_path):
    kept = keep_wheel(make_wheel(tmp_path / "scratch"), tmp_path / "cache" / "key", log=print)

    assert kept == tmp_path / "cache" / "key" / NAME
    assert find_cached(tmp_path / "cache" / "key") == kept
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["key"]


@pytest.mark.parametrize("damage", ["truncated", "no sum", "no wheel"])
def test_a_damaged_wheel_is_not_taken_from_the_cache(tmp_path, damage):
    folder = tmp_path / "cache" / "key"
    kept = keep_wheel(make_wheel(tmp_path / "scratch"), folder, log=print)
    if damage == "truncated":
        kept.write_bytes(kept.read_bytes()[:-10])
    else:
        (kept if damage == "no wheel" else folder / "sha256").unlink()

    assert find_cached(folder) is None


def test_what_is_no_wheel_is_not_taken_even_if_its_sum_fits(tmp_path):
    (tmp_path / NAME).write_bytes(b"not a zip file")
    (tmp_path / "sha256").write_text(hashlib.sha256(b"not a zip file").hexdigest())

    assert find_cached(tmp_path) is None


def test_a_damaged_wheel_is_replaced_by_a_good_one(tmp_path):
    folder = tmp_path / "cache" / "key"
    keep_wheel(make_wheel(tmp_path / "scratch"), folder, log=print).write_bytes(b"")

    kept = keep_wheel(tmp_path / "scratch" / NAME, folder, log=print)

    assert find_cached(folder) == kept
    assert sorted(path.name for path in folder.iterdir()) == [NAME, "sha256"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "cache").touch()
    lines = []

    wheel = keep_wheel(make_wheel(tmp_path / "scratch"), tmp_path / "cache" / "key", log=lines.append)

    assert wheel == tmp_path / "scratch" / NAME
    assert "could not be kept" in lines[0]


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(WheelOrigin)])
def test_everything_that_decides_about_the_wheel_is_in_its_key(field):
    other = (("HOROVOD_GPU_OPERATIONS", "NCCL"),) if field == "flags" else "other"

    assert dataclasses.replace(ORIGIN, **{field: other}).key != ORIGIN.key


def test_a_wheel_in_the_cache_is_used_without_compiling(tmp_path, monkeypatch):
    monkeypatch.setenv("GANGER_CACHE", str(tmp_path / "cache"))
    recipe = RECIPES["tensorflow"]
    kept = keep_wheel(
        make_wheel(tmp_path / "scratch"), tmp_path / "cache" / "wheels" / read_origin(recipe).key, log=print
    )

    assert obtain_wheel(recipe, log_file=tmp_path / "log", log=print, scratch=tmp_path) == kept
    assert not (tmp_path / "log").exists()


def test_the_compiler_gets_our_flags_and_none_of_the_users_or_of_make(tmp_path):
    recipe = RECIPES["tensorflow"]
    environ = {"PATH": "/usr/bin", "MAKEFLAGS": "w -- jobserver", "HOROVOD_WITH_MPI": "1", "CXX": "clang++"}

    env = compiler_environment(recipe, environ, tmp_path)

    assert env["PATH"] == f"{recipe.path / 'bin'}:/usr/bin"
    assert env["MAKEFLAGS"].startswith("-j")
    assert env["HOROVOD_WITHOUT_MPI"] == "1"
    assert "HOROVOD_WITH_MPI" not in env
    assert env["CXX"] == "clang++"
