"""`ganger env`: the engine environments."""

from __future__ import annotations

import click

from training.environments import build_environment


@click.group()
def env() -> None:
    """Make the Python environments that ranks run in."""


@env.command()
@click.argument("name")
def build(name: str) -> None:
    """Make the environment NAME, such as tensorflow, from its lock, Horovod included."""
    build_environment(name, log=click.echo)
