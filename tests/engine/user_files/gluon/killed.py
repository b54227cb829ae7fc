"""The perceptron that ships, in a gang of which a member is killed in mid-epoch, another one at each attempt (K14)."""

import os
import signal
from pathlib import Path

from mxnet import autograd

from training.models.gluon_mlp import build_model as build_mlp
from training.models.gluon_mlp import build_trainer

__all__ = ["build_model", "build_trainer"]


def build_model(kills, hidden):
    """Return the block; `kills` says for each attempt at which of its steps, and the rank that is killed then."""
    net = build_mlp(hidden)
    attempt = int(os.environ["GANGER_ATTEMPT"])
    if os.environ["GANGER_RANK"] == "0" and attempt <= len(kills):
        net.register_forward_pre_hook(Killer(*kills[attempt - 1]))
    return net


class Killer:
    """Counts the steps of this process, which goes no further than to the death of a service.

    Workers do not need the scheduler while they train: how many more steps they take until they are ended is chance.
    """

    def __init__(self, step, rank):
        self.step, self.rank, self.steps = step, str(rank), 0

    def __call__(self, block, inputs):
        """Kill, if the time is there."""
        self.steps += autograd.is_training()
        if self.steps == self.step:
            os.kill(find_member(self.rank), signal.SIGKILL)
            if int(self.rank) >= WORKERS:
                signal.pause()


def find_member(rank):
    """Return the process of this gang that has this rank."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            environ = path.read_bytes().split(b"\0")
        except OSError:
            continue
        wanted = [f"{name}={value}".encode() for name, value in (("GANGER_RANK", rank), ("GANGER_MARK", MARK))]
        if all(entry in environ for entry in wanted):
            return int(path.parent.name)
    raise LookupError(rank)


MARK = os.environ["GANGER_MARK"]
WORKERS = int(os.environ["GANGER_WORLD_SIZE"])
