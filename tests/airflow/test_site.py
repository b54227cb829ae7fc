"""Our airflow.cfg and our plugin, against the installed Airflow."""

from __future__ import annotations

import configparser
import importlib
import sys

import pytest
from airflow import plugins_manager
from airflow.configuration import conf

from training.settings import REPOSITORY


@pytest.fixture
def ours() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(REPOSITORY / "airflow.cfg")
    return parser


def test_every_key_of_our_configuration_exists_in_airflow(ours: configparser.ConfigParser) -> None:
    known = conf.configuration_description
    keys = [(section, key) for section in ours.sections() for key in ours[section]]
    assert keys
    assert [(section, key) for section, key in keys if key not in known.get(section, {}).get("options", {})] == []


def test_our_configuration_is_the_one_in_force_and_differs_from_the_defaults(ours: configparser.ConfigParser) -> None:
    for section in ours.sections():
        for key, value in ours[section].items():
            assert conf.get(section, key) == value
            is_default = str(conf.get_default_value(section, key)) == value
            assert key == "executor" or not is_default, f"[{section}] {key} is the default: leave it out"


def test_our_configuration_names_no_path(ours: configparser.ConfigParser) -> None:
    assert [value for section in ours.sections() for value in ours[section].values() if "/" in value] == []


def test_everybody_is_an_administrator_only_on_the_loopback_interface() -> None:
    assert conf.getboolean("core", "simple_auth_manager_all_admins")
    assert conf.get("api", "host") == "127.0.0.1"


def test_the_plugin_loads_and_replaces_no_package() -> None:
    before = {name: sys.modules.get(name) for name in ("training", "ganger", "errors", "form", "operators")}
    plugins, errors = plugins_manager._get_plugins()
    assert errors == {}
    assert "ganger" in [plugin.name for plugin in plugins]
    assert {name: sys.modules.get(name) for name in before} == before
    assert [link.name for link in plugins_manager.get_operator_extra_links()] == ["MLflow run"]


def test_all_operators_are_where_they_are_promised() -> None:
    operators = importlib.import_module("ganger.operators")
    for name in (
        "PrepareDataOperator",
        "ProvisionClusterOperator",
        "TeardownClusterOperator",
        "TensorFlowTrainingOperator",
        "HorovodTrainingOperator",
        "MXNetTrainingOperator",
        "EvaluateModelOperator",
        "RegisterModelOperator",
    ):
        assert hasattr(operators, name)
