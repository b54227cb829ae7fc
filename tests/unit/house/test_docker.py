"""No Docker engine runs where the tests run: what a parser can hold of the images and the compose site is held here."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from training import __version__
from training.environments import RECIPES
from training.serve.commands import AIRFLOW_PARTS

REPOSITORY = Path(__file__).resolve().parents[3]
DOCKER = REPOSITORY / "docker"
DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))
SITE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = SITE["services"]
SECRETS = ("POSTGRES_PASSWORD", "AIRFLOW_FERNET_KEY", "AIRFLOW_SECRET_KEY", "AIRFLOW_JWT_SECRET")


def read_instructions(path):
    text = re.sub(r"\\\n", " ", "\n".join(line for line in path.read_text().splitlines() if not line.startswith("#")))
    return [line.split(None, 1) for line in text.splitlines() if line.strip()]


def find_images(path):
    defaults = dict(rest.split("=", 1) for word, rest in read_instructions(path) if word == "ARG" and "=" in rest)
    images = [rest.split()[0] for word, rest in read_instructions(path) if word == "FROM"]
    return [re.sub(r"\$\{(\w+)\}", lambda found: defaults[found[1]], image) for image in images]


def test_there_are_images_for_control_and_for_each_engine():
    assert [path.name for path in DOCKERFILES] == ["control.Dockerfile", "tensorflow.Dockerfile"]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_images_are_built_on_exact_versions(path):
    for image in find_images(path):
        tag = image.partition(":")[2]
        assert re.match(r"\d+\.\d+", tag), image


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_everything_that_is_copied_exists_and_is_let_through(path):
    let_through = {line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for word, rest in read_instructions(path):
        if word != "COPY" or "--from" in rest:
            continue
        for source in rest.split()[:-1]:
            assert (REPOSITORY / source).exists(), source
            assert source == "." or source.split("/")[0] in let_through, source


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_python_packages_come_from_locks_only(path):
    for word, rest in read_instructions(path):
        if word == "RUN" and "pip install" in rest:
            assert "--require-hashes -r requirements/bootstrap.txt" in rest
        if word == "RUN" and "training.environments build" in rest:
            names = rest.partition("training.environments build")[2].split()
            assert all(name in RECIPES or name == "${ENVIRONMENT}" for name in names)


def test_the_engine_image_can_be_made_for_cpu_and_gpu():
    gpu = yaml.safe_load((DOCKER / "compose.gpu.yaml").read_text())["services"]["airflow-scheduler"]

    assert ["ARG", "ENVIRONMENT=tensorflow"] in read_instructions(DOCKER / "tensorflow.Dockerfile")
    assert gpu["build"]["args"] == {"ENVIRONMENT": "tensorflow-gpu"}
    assert "tensorflow-gpu" in RECIPES["tensorflow"].variants


def test_containers_do_not_run_as_root():
    users = [rest for word, rest in read_instructions(DOCKER / "control.Dockerfile") if word == "USER"]
    later = [rest for word, rest in read_instructions(DOCKER / "tensorflow.Dockerfile") if word == "USER"]

    assert users == ["ganger"]
    assert later == []


def test_all_images_of_the_site_are_named_with_a_version():
    for name, service in SERVICES.items():
        image, _, tag = service["image"].partition(":")
        assert tag == __version__ if image.startswith("ganger-") else re.match(r"\d+\.\d+", tag), name


def test_the_site_has_every_part_of_airflow_with_its_command():
    for name, arguments in AIRFLOW_PARTS.items():
        assert SERVICES[name]["command"][:2] == ["airflow", arguments[0]]
    assert SERVICES["mlflow"]["command"][:2] == ["mlflow", "server"]


def test_everything_that_stays_up_is_checked_for_health():
    assert {name for name, service in SERVICES.items() if "healthcheck" not in service} == {"airflow-migrate"}


def test_the_parts_of_airflow_share_the_home_folder_and_their_secrets():
    parts = [SERVICES[name] for name in AIRFLOW_PARTS]
    for part in parts:
        assert "ganger-home:/var/lib/ganger" in part["volumes"]
        assert part["environment"] == parts[0]["environment"]


def test_files_that_the_site_names_exist():
    for service in SERVICES.values():
        if "build" in service:
            assert (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).exists()
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in SITE["volumes"] or (DOCKER / source).exists(), source


def test_no_secret_is_committed_and_each_missing_one_is_asked_for():
    """K18."""
    text = (DOCKER / "compose.yaml").read_text()
    asked = set(re.findall(r"\$\{(\w+):\?", text))
    plain = set(re.findall(r"\$\{(\w+)\}", text))
    example = dict(
        line.split("=", 1) for line in (DOCKER / ".env.example").read_text().splitlines() if not line.startswith("#")
    )

    assert asked == set(SECRETS) == set(example)
    assert plain == set()
    assert set(example.values()) == {""}
    assert ".env" in (REPOSITORY / ".gitignore").read_text().split()


def test_no_secret_is_on_a_command_line():
    """K18."""
    for service in SERVICES.values():
        assert "$" not in shlex.join(map(str, service.get("command", [])))


def test_addresses_are_open_to_this_host_only_and_ask_for_a_password():
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]

    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert SERVICES["airflow-api-server"]["environment"]["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "False"
