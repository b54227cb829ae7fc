"""Who may import what, as far as a running interpreter shows it (import-linter holds the rest)."""

import subprocess
import sys

import pytest

HEAVY = ("tensorflow", "keras", "horovod", "mxnet", "mlflow", "numpy", "pandas", "sklearn", "airflow")


def modules_after(statement):
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in answer.stdout.split()}


@pytest.mark.parametrize(
    "module",
    [
        "training.errors",
        "training.spec.loader",
        "training.plan.run_plan",
        "training.plan.jobs",
        "training.policy.restart",
        "training.run.event",
        "training.run.folder",
        "training.run.rank",
        "training.steps",
        "training.cli",
        "training.commands.plan",
        "training.worker",
        "training.run.supervisor",
    ],
)
def test_light_modules_import_no_framework(module):
    """Planning, following and supervising must start in a fraction of a second (K54)."""
    assert not modules_after(f"import {module}") & set(HEAVY)


@pytest.mark.parametrize("package", ["spec", "plan", "policy"])
def test_asking_planning_and_deciding_need_pydantic_and_yaml_alone(package):
    allowed = (
        modules_after("import pydantic, annotated_types, yaml, typing_extensions")
        | set(sys.stdlib_module_names)
        | {"training"}
    )

    loaded = modules_after(
        f"import importlib, pkgutil, training.{package}\n"
        f"for module in pkgutil.walk_packages(training.{package}.__path__, 'training.{package}.'):\n"
        "    importlib.import_module(module.name)"
    )

    assert {name for name in loaded - allowed if not name.startswith("_")} == set()
