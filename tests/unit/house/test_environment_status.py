import dataclasses
import json

import pytest

from training.environments import RECIPES, EnvironmentState, read_environment
from training.environments.build import plan_steps
from training.environments.lock import read_pins
from training.environments.status import digest_project, make_stamp, write_stamp

RECIPE = RECIPES["tensorflow"]


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A folder that looks like a complete environment: an interpreter, metadata of every pinned package, a stamp."""
    monkeypatch.setenv("GANGER_ENGINES", str(tmp_path))
    return pretend(RECIPE)


def pretend(recipe):
    (recipe.path / "bin").mkdir(parents=True)
    (recipe.path / "bin" / "python").touch()
    for name, version in read_pins(recipe.lock_files).items():
        install(recipe.path, name, version)
    write_stamp(recipe)
    return recipe.path


def install(path, name, version):
    site = path / "lib" / "python3.11" / "site-packages"
    for old in site.glob(f"{name.replace('-', '_')}-*.dist-info"):
        old.rmdir()
    (site / f"{name.replace('-', '_')}-{version}.dist-info").mkdir(parents=True)


def change_stamp(environment, **fields):
    stamp = environment / "ganger-environment.json"
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | fields))


def test_a_complete_environment_is_present_and_tells_its_versions(environment):
    status = read_environment("tensorflow")

    assert status.state is EnvironmentState.PRESENT
    assert status.problem == ""
    assert status.python == environment / "bin" / "python"
    assert status.versions["tensorflow-cpu"] == "2.18.1"


def test_an_absent_environment_says_what_to_run(tmp_path, monkeypatch):
    """K07."""
    monkeypatch.setenv("GANGER_ENGINES", str(tmp_path))

    status = read_environment("tensorflow")

    assert status.state is EnvironmentState.ABSENT
    assert status.problem.endswith("is absent (" + str(tmp_path / "tensorflow") + "). Run: ganger env build tensorflow")


def test_an_unknown_environment_is_absent_and_names_the_known_ones():
    status = read_environment("caffe")

    assert status.state is EnvironmentState.ABSENT
    assert "there are: control, " in status.problem


def test_without_a_stamp_it_is_half_built(environment):
    (environment / "ganger-environment.json").unlink()

    status = read_environment("tensorflow")

    assert status.state is EnvironmentState.BROKEN
    assert "half-built" in status.problem


def test_half_a_stamp_is_none(environment):
    (environment / "ganger-environment.json").write_text('{"recipe": "tens')

    assert read_environment("tensorflow").state is EnvironmentState.BROKEN


def test_a_package_changed_by_hand_is_named_with_what_was_found_and_wanted(environment):
    """K07, K08."""
    install(environment, "numpy", "2.4.0")

    status = read_environment("tensorflow")

    assert status.state is EnvironmentState.BROKEN
    assert "numpy: found 2.4.0, wanted 2.0.2" in status.problem


def test_a_numpy_that_mxnet_breaks_on_is_named_with_the_pin(environment):
    """K08."""
    path = pretend(RECIPES["mxnet"])
    assert read_environment("mxnet").problem == ""

    install(path, "numpy", "1.24.4")

    assert read_environment("mxnet").state is EnvironmentState.BROKEN
    assert "numpy: found 1.24.4, wanted 1.23.5" in read_environment("mxnet").problem
    assert read_environment("tensorflow").problem == ""


def test_mxnets_numpy_is_held_back_in_its_own_environment_alone():
    """K08."""
    held = {name: read_pins(recipe.lock_files).get("numpy") for name, recipe in RECIPES.items()}

    assert [name for name, version in held.items() if version == "1.23.5"] == ["mxnet"]


def test_a_missing_horovod_is_named(environment):
    """K07."""
    (environment / "lib/python3.11/site-packages/horovod-0.28.1.dist-info").rmdir()

    assert "horovod: found none, wanted 0.28.1" in read_environment("tensorflow").problem


def test_another_lock_makes_it_stale(environment):
    change_stamp(environment, lock="0" * 64)

    status = read_environment("tensorflow")

    assert status.state is EnvironmentState.STALE
    assert "another lock" in status.problem


def test_a_link_to_another_checkout_makes_it_stale(environment):
    change_stamp(environment, repository="/somewhere/else")

    status = read_environment("tensorflow")

    assert status.state is EnvironmentState.STALE
    assert "/somewhere/else" in status.problem


@pytest.mark.parametrize("how", ["moved", "python gone"])
def test_what_cannot_start_any_more_is_broken(environment, how):
    if how == "moved":
        change_stamp(environment, path="/somewhere/else")
    else:
        (environment / "bin" / "python").unlink()

    assert read_environment("tensorflow").state is EnvironmentState.BROKEN


def test_the_gpu_variant_serves_as_the_environment_but_not_the_other_way_round(environment):
    change_stamp(environment, recipe="tensorflow-gpu", lock=make_stamp(RECIPES["tensorflow-gpu"]).lock)
    for name, version in read_pins(RECIPES["tensorflow-gpu"].lock_files).items():
        install(environment, name, version)

    assert read_environment("tensorflow").problem == ""
    assert plan_steps(RECIPE) == []

    write_stamp(RECIPE)
    assert "was made as tensorflow." in read_environment("tensorflow-gpu").problem


def test_lint_rules_do_not_age_an_environment_but_a_new_command_does(tmp_path):
    base = '[project]\nname = "ganger"\n'
    texts = {"base": base, "lint": base + "[tool.ruff]\nline-length = 90\n", "script": base + 'scripts = {x = "y:z"}\n'}
    digests = {}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        digests[name] = digest_project(tmp_path / name)

    assert digests["base"] == digests["lint"] != digests["script"]


def test_every_recipe_has_its_locks_and_every_pin_a_hash():
    for recipe in RECIPES.values():
        for file in recipe.lock_files:
            text = file.read_text()
            pins = [line for line in text.splitlines() if line[:1].isalnum()]
            assert pins, file
            assert all(line.endswith("\\") for line in pins), file
            assert "index-url" not in text
            assert "://" not in "".join(line for line in text.splitlines() if not line.lstrip().startswith("#")), file


def test_the_bootstrap_installs_the_uv_of_the_control_environment():
    folder = RECIPES["control"].lock_files[0].parent

    assert read_pins([folder / "bootstrap.txt"])["uv"] == read_pins([folder / "control.txt"])["uv"]


def test_recipes_are_values():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RECIPE.name = "other"
