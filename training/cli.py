"""The `ganger` command. Subcommands live in `training.commands` and are imported only when they are called."""

from __future__ import annotations

import importlib
import sys

import click

from training import __version__
from training.errors import GangerError, PreflightError, SpecError

#: Command to its module; the attribute is the command's name.
COMMANDS = {
    "validate": "training.commands.validate",
    "plan": "training.commands.plan",
    "run": "training.commands.run",
    "runs": "training.commands.runs",
    "logs": "training.commands.logs",
    "stop": "training.commands.stop",
    "serve": "training.commands.serve",
    "env": "training.commands.env",
    "doctor": "training.commands.doctor",
}
EXIT_USER = 2
EXIT_FAILED = 1


class LazyGroup(click.Group):
    """A group that imports the module of a command when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order that a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command, or None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ganger")
def ganger() -> None:
    """Train models with gangs of processes, from short YAML files.

    Exit codes: 0 done, 1 the run failed, 2 the input is wrong, 130 interrupted.
    """


def main() -> None:
    """Run the command; a mistake of the user ends in a sentence on stderr, not in a traceback."""
    try:
        sys.exit(ganger(standalone_mode=False))  # click returns what a command's Exit carries
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_USER)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except (SpecError, PreflightError) as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_USER)
    except GangerError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_FAILED)
    except BrokenPipeError:
        sys.exit(EXIT_FAILED)
