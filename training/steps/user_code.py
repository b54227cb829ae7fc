"""Reads the user's code, model file or script, without running it, so that mistakes are told before anything starts."""

from __future__ import annotations

from training.errors import Problem
from training.spec.file import PipelineFile
from training.steps.model_source import find_model_problems
from training.steps.script_source import find_script_problems


def find_code_problems(file: PipelineFile) -> tuple[Problem, ...]:
    """Return what is wrong with the user's code as far as its text shows; empty when it looks right."""
    return (*find_model_problems(file), *find_script_problems(file))
