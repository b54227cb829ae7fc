"""`python -m training.environments build NAME…`: for the first set-up, when there is no `ganger` command yet."""

from __future__ import annotations

import sys

from training.environments.build import build_environments
from training.environments.recipe import RECIPES
from training.errors import GangerError

USAGE = f"usage: python -m training.environments build {{{','.join(RECIPES)}}}…"


def main(arguments: list[str]) -> int:
    """Build the environments that the command line names and return the exit code."""
    if len(arguments) < 2 or arguments[0] != "build":
        print(USAGE, file=sys.stderr)
        return 2
    try:
        build_environments(arguments[1:], log=lambda line: print(line, flush=True))
    except GangerError as error:
        print(f"Set-up stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Set-up interrupted. Run the same command again to go on.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
