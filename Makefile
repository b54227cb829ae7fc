# Everything a person or CI does with this checkout. `make` alone lists it.
#
# The recipes call the code that `ganger` calls; nothing is decided here. Set-up is done when the stamps in the environments
# fit the locks in requirements/ (training/environments/status.py), so every target can ask for it and pay milliseconds.

PYTHON ?= python3.11
PYTEST_ARGS ?=
BIN := .venv/bin

# `make` hands its own options down by MAKEFLAGS; the compiler's make sets its own.
unexport MAKEFLAGS
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev setup-demo demo stop test check lint format bench bench-pipeline laws dags chaos lock clean distclean python

help: ## List the targets
	@echo "Ganger: declarative distributed training on Airflow. Needed beforehand: Python 3.11, make, g++."
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "Set-up stopped: $(PYTHON) is not on PATH. Install Python 3.11, or give its path: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { \
	  echo "Set-up stopped: Ganger needs Python 3.11, and $(PYTHON) is $$($(PYTHON) -V 2>&1). Give the right one: make PYTHON=/path/to/python3.11" >&2; exit 1; }

setup: python ## Make the environments: .venv (control), .engines/tensorflow and .engines/mxnet
	@$(PYTHON) -m training.environments build control tensorflow mxnet

setup-dev: python
	@$(PYTHON) -m training.environments build control dev tensorflow mxnet

# The demo trains with TensorFlow alone: nobody waits for MXNet's Horovod to be compiled before seeing something.
setup-demo: python
	@$(PYTHON) -m training.environments build control tensorflow

demo: setup-demo ## Set up, start Airflow and MLflow, train the digits pipeline on two workers, show what came of it
	@$(BIN)/python -m tools.demo $(if $(AIRFLOW_PORT),--airflow-port $(AIRFLOW_PORT)) $(if $(MLFLOW_PORT),--mlflow-port $(MLFLOW_PORT))

stop: ## Stop the Airflow and MLflow that `make demo` or `ganger serve` started
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m training.serve stop; else echo "Nothing was started from this checkout."; fi

test: setup-dev ## Set up, then run all tests, real trainings included (PYTEST_ARGS="-k unit" for some)
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

check: lint test ## What CI runs: lint, then all tests

lint: setup-dev ## Formatting, lint rules, types, import contracts
	@failed=0; for rule in "ruff format --check" "ruff check" "mypy" "lint-imports"; do \
	  echo "== $$rule"; $(BIN)/$$rule || failed=1; done; exit $$failed

format: setup-dev ## Format the code and mend what ruff can mend
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: setup-dev ## Run the benchmarks
	@$(BIN)/python -m tests.benchmarks.step_time
	@$(BIN)/python -m tests.benchmarks.block_step

bench-pipeline: setup-dev ## Time a model in two stages against the unsplit one, both schedules (some 5 minutes)
	@$(BIN)/python -m tests.benchmarks.pipeline_step

SEED ?= 7
COUNT ?= 40
ONLY ?=
laws: setup-dev ## Train by every synchronous strategy and print how far the weights are from one process's
	@$(BIN)/python -m pytest -q tests/engine/test_laws.py tests/engine/test_gluon.py tests/engine/test_gluon_gangs.py -k "weights"

dags: setup-dev ## Run the pipeline of every strategy as a DAG
	@$(BIN)/python -m pytest -q tests/airflow/test_shipped.py tests/airflow/test_digits.py

chaos: setup-dev ## Do 40 random things to real trainings, check what comes of them (SEED=7 COUNT=40 ONLY=3,8-12)
	@$(BIN)/python -m tests.chaos --seed $(SEED) --count $(COUNT) $(if $(ONLY),--only $(ONLY))

# Hashes, no index addresses: a lock installs from whatever registry the machine uses. Upgrade with make lock UPGRADE=--upgrade
UPGRADE ?=
COMPILE := $(abspath $(BIN))/uv pip compile --quiet --generate-hashes --no-header --python-version 3.11 \
  --python-platform x86_64-manylinux_2_28 $(UPGRADE)
lock: setup ## Make the locks in requirements/ from the .in files
	@cd requirements && for name in control dev postgres bootstrap tensorflow tensorflow-gpu mxnet; do \
	  echo "requirements/$$name.txt"; $(COMPILE) $$name.in --output-file $$name.txt || exit 1; done
	@cd requirements && echo "requirements/horovod.txt" && $(COMPILE) --no-deps horovod.in --output-file horovod.txt

clean: ## Remove caches and test leftovers
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.venv/*' -not -path './.engines/*' -prune -exec rm -rf {} +

distclean: stop clean ## Remove the environments and all runs, too
	@rm -rf .venv .engines .ganger
