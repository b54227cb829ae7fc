"""Task `serve`: a worker or a parameter server, which does what the chief asks until it is ended.

https://www.tensorflow.org/api_docs/python/tf/distribute/Server. No code of the user's runs here: graphs come from
the chief.
"""

from __future__ import annotations

import os
import threading

import tensorflow as tf

from training.engines.tensorflow_keras.runtime import list_versions, prepare_runtime
from training.plan.tf_config import parse_tf_config
from training.run.rank import RankContext


def serve(ctx: RankContext) -> None:
    """Be the member of the cluster that TF_CONFIG names; SIGTERM ends it.

    Raises:
        SpecError: TF_CONFIG is absent or malformed.
    """
    config = parse_tf_config(os.environ.get("TF_CONFIG", ""))
    prepare_runtime(ctx, seed=0)
    server = start_server(config.model_dump()["cluster"], config.task.type, config.task.index)
    ctx.ready(versions=list_versions())
    name = ctx.role if ctx.role != config.task.type else f"{ctx.role} {config.task.index}"  # a stage is a worker, too
    print(f"{name} serves at {server.target.removeprefix('grpc://')}", flush=True)
    threading.Event().wait()  # not `server.join`, which no signal handler of Python's gets through


def start_server(cluster: dict[str, list[str]], role: str, index: int) -> tf.distribute.Server:
    """Return the running server of one member. Its pools of threads are made here, whatever the chief's are (K12)."""
    threads = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=tf.config.threading.get_intra_op_parallelism_threads(),
        inter_op_parallelism_threads=tf.config.threading.get_inter_op_parallelism_threads(),
    )
    return tf.distribute.Server(
        tf.train.ClusterSpec(cluster), job_name=role, task_index=index, protocol="grpc", config=threads
    )
