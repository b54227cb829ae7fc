import dataclasses
import fcntl
import threading

import pytest

from training.environments import RECIPES, build_environment
from training.environments.build import BuildStep, lock_environments, plan_steps, run_step
from training.environments.command import explain_failure, run_logged
from training.environments.install import create_folder, needs_new_folder
from training.environments.registry import choose_registry_variables, parse_pip_config
from training.environments.requirement import check_compiler, check_disk, check_python, require_for
from training.errors import InfrastructureError, LaunchError, PreflightError, SpecError

RECIPE = RECIPES["tensorflow"]


@pytest.fixture
def engines(tmp_path, monkeypatch):
    monkeypatch.setenv("GANGER_ENGINES", str(tmp_path / "engines"))
    return tmp_path / "engines"


def test_without_a_compiler_set_up_ends_in_one_sentence_before_it_makes_anything(engines, monkeypatch):
    monkeypatch.setenv("PATH", str(engines))

    with pytest.raises(PreflightError, match=r"g\+\+ and make is not on PATH\. Install it") as caught:
        build_environment("tensorflow", log=lambda line: None)

    assert "\n" not in str(caught.value)
    assert not RECIPE.path.exists()


def test_a_compiler_named_by_cxx_counts(tmp_path, monkeypatch):
    for name in ("clang++", "make"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "clang++")

    assert check_compiler() == ""


@pytest.mark.parametrize("version", [(3, 10, 12), (3, 12, 1)])
def test_a_wrong_python_is_named_with_the_right_one(version):
    sentence = check_python(version)

    assert "needs Python 3.11" in sentence
    assert ".".join(map(str, version)) in sentence


def test_a_full_disk_is_found_before_the_first_package(engines):
    greedy = dataclasses.replace(RECIPE, disk_gib=1e9)

    with pytest.raises(InfrastructureError, match=r"1000000000\.0 GiB must be free on the disk of .* GiB are\."):
        require_for([greedy])


def test_the_needs_of_environments_on_one_disk_add_up(engines):
    half = dataclasses.replace(RECIPE, disk_gib=5e8)

    with pytest.raises(InfrastructureError, match=r"1000000000\.0 GiB"):
        require_for([half, half])


def test_enough_disk_is_no_problem(tmp_path):
    assert check_disk(tmp_path / "not" / "yet" / "there", 0.0) == ""


def test_an_unknown_environment_is_refused_with_the_known_ones():
    with pytest.raises(SpecError, match="There are: control, "):
        build_environment("caffe")


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("error: failed to copy: No space left on device (os error 28)", "the disk is full"),
        ("error: Failed to fetch: dns error: failed to lookup address", "the package registry does not answer"),
        ("error: Hash mismatch for `numpy`", "a file whose hash is not in the lock"),
        ("x\nerror: no such option\n", "failed with exit code 2: error: no such option (details: log)."),
        ("", "it printed nothing"),
    ],
)
def test_a_failed_command_becomes_one_sentence(output, sentence, tmp_path):
    error = explain_failure(output, doing="installing", log_file="log", exit_code=2)

    assert sentence in str(error)
    assert "\n" not in str(error)


def test_output_goes_to_the_log_and_only_this_commands_output_is_judged(tmp_path):
    log = tmp_path / "log"
    log.write_text("No space left on device\n")

    with pytest.raises(LaunchError, match="exit code 3"):
        run_logged(["sh", "-c", "echo broken; exit 3"], log_file=log, env={"PATH": "/bin:/usr/bin"}, doing="testing")

    assert "broken" in log.read_text()


def test_a_step_says_what_it_does_and_how_long_it_took():
    lines = []

    run_step(BuildStep(title="control environment", act=lambda log: log("    detail")), "[1/4]", lines.append)

    assert lines == ["[1/4] control environment …", "    detail", "[1/4] control environment: 0 s"]


def test_steps_of_an_engine_environment(engines):
    titles = [step.title for step in plan_steps(RECIPE)]

    assert titles == [
        "tensorflow environment: TensorFlow, Keras 3, Horovod",
        "tensorflow environment: Horovod",
        "tensorflow environment: import check",
    ]


def test_a_second_set_up_waits_for_the_first(engines):
    engines.mkdir()
    said, entered = threading.Event(), threading.Event()

    def second():
        with lock_environments([RECIPE], lambda line: said.set()):
            entered.set()

    with (engines / ".tensorflow.lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        thread = threading.Thread(target=second)
        thread.start()
        assert said.wait(10)
        assert not entered.is_set()
    thread.join(10)
    assert entered.is_set()


def test_a_half_built_environment_is_made_anew(engines):
    (RECIPE.path / "lib").mkdir(parents=True)
    (RECIPE.path / "pyvenv.cfg").touch()
    (RECIPE.path / "lib" / "half").touch()

    assert needs_new_folder(RECIPE)
    create_folder(RECIPE)

    assert (RECIPE.path / "bin" / "python").exists()
    assert not (RECIPE.path / "lib" / "half").exists()


def test_a_folder_that_is_no_environment_is_left_alone(engines):
    (RECIPE.path / "thesis").mkdir(parents=True)

    with pytest.raises(LaunchError, match="Move it away"):
        create_folder(RECIPE)

    assert (RECIPE.path / "thesis").exists()


def test_pips_registry_becomes_uvs():
    config = parse_pip_config(
        "global.index-url='https://mirror.test/simple'\n"
        "global.extra-index-url='https://a.test/simple https://b.test/simple'\n"
        "global.find-links='/wheels\\n/more'\n"
        ":env:.index-url='https://nearer.test/simple'\n"
        "global.timeout='5'"
    )

    assert choose_registry_variables(config, {}) == {
        "UV_DEFAULT_INDEX": "https://nearer.test/simple",
        "UV_INDEX": "https://a.test/simple https://b.test/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_what_the_user_told_uv_wins():
    assert choose_registry_variables({"index-url": "https://a.test"}, {"UV_DEFAULT_INDEX": "https://b.test"}) == {}
    assert choose_registry_variables({"cert": "/pip.pem"}, {"SSL_CERT_FILE": "/own.pem"}) == {}
