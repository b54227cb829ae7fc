"""Adasum: adds gradients of several ranks such that what they agree in is not counted twice.

S. Maleki et al., "Scaling Distributed Training with Adaptive Summation", 2020, https://arxiv.org/abs/2006.02924.
Horovod's own (https://horovod.readthedocs.io/en/stable/adasum_user_guide_include.html) needs MPI on CPUs; here Gloo
gathers the gradients, and every rank combines them.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def combine_adasum(gradients: Any, ranks: int) -> Any:
    """Return the combination of one variable's gradients.

    Two are combined as `(1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b` (equation 3 of the paper), more pairwise in a
    tree; orthogonal gradients are added, parallel ones averaged.

    Args:
        gradients: Shape (ranks, ...).
        ranks: Their number, a power of 2.
    """
    rows = tf.unstack(gradients, num=ranks)
    while len(rows) > 1:
        rows = [_combine(a, b) for a, b in zip(rows[::2], rows[1::2], strict=True)]
    return rows[0]


def _combine(a: Any, b: Any) -> Any:
    common = tf.reduce_sum(a * b)
    share_a = tf.math.divide_no_nan(common, 2 * tf.reduce_sum(a * a))
    share_b = tf.math.divide_no_nan(common, 2 * tf.reduce_sum(b * b))
    return (1 - share_a) * a + (1 - share_b) * b
