"""The perceptron that ships, trained by a chief whose servers are killed: parameter servers and workers, or a stage."""

import os
import signal
from pathlib import Path

import keras

from training.models.mlp import build_model

__all__ = ["build_callbacks", "build_model"]

#: Attempt to the updates after which, and the rank that is killed: a worker, then the parameter server (K14); or, of a
#: gang without parameter servers, the second stage.
KILLS = {"1": (65, "1"), "2": (83, "3")} if '"ps"' in os.environ["TF_CONFIG"] else {"1": (34, "2")}


def build_callbacks():
    """Return one that kills."""
    return [Killer()]


class Killer(keras.callbacks.Callback):
    """Watches the number of updates."""

    def on_train_batch_end(self, batch, logs=None):
        """Kill, if the time is there."""
        updates, rank = KILLS.get(os.environ["GANGER_ATTEMPT"], (None, None))
        if updates is not None and self.model.optimizer.iterations.numpy() >= updates:
            os.kill(find_member(rank), signal.SIGKILL)


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
