"""Whether a strategy has as many replicas as were declared."""

from __future__ import annotations

import tensorflow as tf

from training.errors import LaunchError


def check_replicas(replicas: int, declared: int) -> None:
    """Refuse a strategy that fell back to fewer replicas: it trains, but not what was asked (K03).

    Raises:
        LaunchError: It has another number of them.
    """
    if replicas != declared:
        raise LaunchError(
            f"the strategy must have {declared} replicas, as was planned. Received: {replicas}; "
            f"devices of this rank: {[device.name for device in tf.config.list_logical_devices()]}."
        )
