"""The trainings of MXNet that the tests look at: those of one process run one after another in the same one."""

from teams import GLUON_CNN, GLUON_GANGS, GLUON_MLP, GLUON_TEAMS, GLUON_TRANSFORMER, MIDDLE, MOMENTUM, TEAMS

SINGLE = "gluon-single"
#: Model files with a mistake each, and what is said of it.
MISTAKEN_FILES = {
    "returns_nothing": ("def build_model(): pass", "must return a gluon.Block (MXNet 1.9.1). Received: nothing."),
    "returns_symbol": (
        "import mxnet as mx\ndef build_model(): return mx.sym.var('data')",
        "Wrap the symbol: gluon.SymbolBlock(symbol, inputs).",
    ),
    "no_function": (
        "from mxnet.gluon import nn\nbuild_model = nn.Dense(10)",
        "model.entrypoint: build_model of {file} must be a function. Received: a Dense. "
        "Write: def build_model(): return ….",
    ),
    "no_loss_function": (
        "from mxnet import gluon\ndef build_model(): return gluon.nn.Dense(10)\nbuild_loss = gluon.loss.L2Loss()",
        "build_loss of {file} must be a function. Received: a L2Loss.",
    ),
    "wrong_shape": (
        "from mxnet.gluon import nn\ndef build_model(): return nn.Dense(10, in_units=3)",
        "must take rows of shape [64] (float32)",
    ),
    "few_classes": (
        "from mxnet.gluon import nn\ndef build_model(): return nn.Dense(5)",
        "must return a number for each class, and whole-number labels must be classes from 0 on. "
        "Received: 5 outputs for labels 0 to 9.",
    ),
    "mean_of_loss": (
        "from mxnet.gluon import nn\ndef build_model(): return nn.Dense(10)\n"
        "def build_loss(): return lambda outputs, labels: outputs.mean()",
        "must return one number a row, so that gradients can be scaled by the global batch. "
        "Received: shape (1,) for 2 rows. Leave the mean over rows to Ganger.",
    ),
    "on_gpu": (
        "import mxnet as mx\nfrom mxnet.gluon import nn\ndef build_model():\n net = nn.Dense(10, in_units=64)\n"
        " net.initialize(ctx=mx.gpu(0))\n return net",
        "build_model of {file} must not name devices. Received: a GPU, of which MXNet has none here (MXNetError: GPU "
        "is not enabled). Leave out ctx: the strategy chooses devices.",
    ),
    "nothing_to_train": (
        "from mxnet.gluon import nn\ndef build_model(): return nn.Flatten()",
        "the block of {file} must have parameters to be trained. Received: a block without any.",
    ),
    "all_frozen": (
        "from mxnet.gluon import nn\ndef build_model():\n net = nn.Dense(10)\n"
        " net.collect_params().setattr('grad_req', 'null')\n return net",
        "the block of {file} must have parameters to be trained. Received: 2, all with grad_req null.",
    ),
    "sparse_parameter": (
        "from mxnet import gluon\nclass Rows(gluon.HybridBlock):\n def __init__(self):\n  super().__init__()\n"
        "  self.weight = self.params.get('weight', shape=(64, 10), stype='row_sparse')\n"
        "def build_model(): return Rows()",
        "the block of {file} must have dense parameters. Received: sparse weight.",
    ),
    "trained_loss": (
        "from mxnet import gluon\nfrom mxnet.gluon import nn\ndef build_model(): return nn.Dense(10)\n"
        "class Learned(gluon.loss.L2Loss):\n def __init__(self):\n  super().__init__()\n  self.scale = nn.Dense(1)\n"
        "def build_loss(): return Learned()",
        "build_loss of {file} must return a loss without parameters to be trained: a trainer has those of the block "
        "alone. Received: scale.weight, scale.bias. Make them part of the block,",
    ),
    "no_trainer": (
        "from mxnet.gluon import nn\ndef build_model(): return nn.Dense(10)\ndef build_trainer(params): return 'sgd'",
        "build_trainer of {file} must return a gluon.Trainer or an mxnet.optimizer.Optimizer. Received: a str.",
    ),
    "no_metric": (
        "from mxnet.gluon import nn\ndef build_model(): return nn.Dense(10)\ndef build_metrics(): return ['accuracy']",
        "build_metrics of {file} must return one mxnet.metric.EvalMetric or a list of them. Received: a str.",
    ),
    "same_metrics": (
        "import mxnet as mx\nfrom mxnet.gluon import nn\ndef build_model(): return nn.Dense(10)\n"
        "def build_metrics(): return [mx.metric.Accuracy(), mx.metric.Accuracy()]",
        "metrics with different names, none of them `loss`",
    ),
    "gathering_optimizer": (
        "import mxnet as mx\nfrom mxnet.gluon import nn\ndef build_model(): return nn.Dense(10)\n"
        "def build_trainer(params): return mx.optimizer.LBSGD(batch_scale=4)",
        "LBSGD must have a batch_scale of 1: MXNet loses gradients that it gathers over batches. Received: 4.",
    ),
    "odd_optimizer": (
        "import mxnet as mx\nfrom mxnet.gluon import nn\ndef build_model(): return nn.Dense(10)\n"
        "class Odd(mx.optimizer.SGD):\n def create_state(self, index, weight): return {'a': weight}\n"
        "def build_trainer(params): return Odd(learning_rate=0.1)",
        "Odd.create_state must return arrays and numbers, None, or lists and tuples of them, so that they can be "
        "saved. Received: a dict.",  # K38
    ),
}

#: Model files whose metrics are computed by hand, and their rows: five steps an epoch, and more held out than a batch.
MEASURED = {"measured_classes": "binary", "measured_numbers": "numbered"}
KEEPING = {"every_steps": 5, "keep": 20}
LAYERS = {"hidden": [64, 32]}
TUNED = {"params": LAYERS, "epochs": 1, "freeze": ["hidden*"]}


def list_common(site, team):
    """Return the trainings that every synchronous team does, for the law."""
    yield site.payload(team, "momentum", GLUON_MLP, params=LAYERS | MOMENTUM, checkpoint=KEEPING)
    yield site.payload(team, "adam", GLUON_MLP, params=LAYERS)
    # Not with Adam: the gradient of a key's bias is zero, and it makes whole steps of what rounding leaves of it.
    yield site.payload(team, "transformer", GLUON_TRANSFORMER, params={**MOMENTUM, "learning_rate": 0.01}, epochs=1)
    yield site.payload(team, "user", "gluon/own_net.py", dataset="binary", params={"smoothing": 0.1, "rate": 0.2})
    yield resumed(site, team, "resumed", MIDDLE, "momentum", GLUON_MLP, params=LAYERS | MOMENTUM)
    yield site.payload(team, "tuned", GLUON_MLP, initial_model=str(site.model(SINGLE, "momentum")), **TUNED)
    yield site.payload(team, "sparse", "gluon/embedded.py", epochs=1)
    how = TEAMS_OF_ALL[team]
    if how.strategy != "model_parallel":
        yield site.payload(team, "rows", "gluon/rows.py", dataset="numbered", checkpoint={"every_steps": 3, "keep": 9})
        yield from list_measured(site, team)
        yield from list_remembering(site, team)
    outlier = {"batch_size": 9 if how.workers == 3 else 8, "epochs": 1, "checkpoint": {"every_steps": 2}}
    yield site.payload(team, "outlier", "gluon/line.py", dataset="outlier", **outlier)


def list_measured(site, team):
    """Return the trainings that are looked at for their metrics alone."""
    for kind, dataset in MEASURED.items():
        payload = {"entrypoint": f"gluon/{kind}.py", "dataset": dataset, "checkpoint": {"every_steps": 4, "keep": 9}}
        yield site.payload(team, kind, **payload)
        yield resumed(site, team, f"{kind}_resumed", 8, kind, **payload)


def list_remembering(site, team):
    """Return trainings with an optimizer that remembers all that can be saved, undisturbed and resumed."""
    payload = {"entrypoint": "gluon/own_optimizer.py", "dataset": "binary", "checkpoint": {"every_steps": 4, "keep": 9}}
    yield site.payload(team, "remembering", **payload)
    yield resumed(site, team, "remembering_resumed", 8, "remembering", **payload)


def resumed(site, team, name, step, of, *args, **more):
    """Return a payload that goes on from what one process had at `step` of the training `of`."""
    begin_from = str(site.checkpoints(SINGLE, of) / f"step-{step:08d}")
    return site.payload(team, name, *args, **{"resume": True, "begin_from": begin_from, **more})


def list_of_one_process(site):
    """Return all trainings of one process, in the order in which they need one another."""
    for team in GLUON_TEAMS:
        yield from list_common(site, team)
    more = GLUON_MLP, {"dropout": 0.3}
    yield site.payload(SINGLE, "dropout", *more, checkpoint=KEEPING)
    yield resumed(site, SINGLE, "dropout_resumed", MIDDLE, "dropout", *more)
    yield resumed(site, SINGLE, "rows_resumed", 9, "rows", "gluon/rows.py", dataset="numbered")
    yield site.payload("gluon-data_parallel-2", "cnn", GLUON_CNN)
    warm = {"params": MOMENTUM, "epochs": 1, "learning_rate_scaling": "linear", "warmup_steps": 10}
    yield site.payload("gluon-data_parallel-2", "linear", GLUON_MLP, **warm)
    yield from list_placed(site)
    yield from list_tuned(site)
    yield site.payload(SINGLE, "received", task="receive")
    yield site.payload(SINGLE, "optimizers", task="optimizers")
    for memory in ("text", "beside"):
        yield site.payload(SINGLE, memory, "gluon/own_optimizer.py", dataset="binary", params={"memory": memory})
    yield site.payload(SINGLE, "numbers", "gluon/bare.py", dataset="numbered", epochs=1)
    yield site.payload(SINGLE, "classes", "gluon/bare.py", dataset="binary", params={"units": 2}, epochs=1)
    yield site.payload(SINGLE, "plain", "gluon/plain.py", dataset="binary", epochs=1)
    yield site.payload(SINGLE, "dense", "gluon/embedded.py", params={"sparse": False}, epochs=1)
    yield site.payload(SINGLE, "elsewhere", "gluon/elsewhere.py", dataset="binary", epochs=1)
    yield site.payload(SINGLE, "symbol", "gluon/symbol.py", dataset="binary", epochs=1)
    yield site.payload(SINGLE, "debugged", GLUON_MLP, params=LAYERS, hybridize=False)
    held_out = {"dataset": "held_out_outlier", "batch_size": 8, "epochs": 1}
    yield site.payload(SINGLE, "held_out_outlier", "gluon/line.py", **held_out)
    yield resumed(site, SINGLE, "other_params", MIDDLE, "momentum", GLUON_MLP)
    of_user = {"task": "evaluate", "dataset": "binary", "model_dir": str(site.model(SINGLE, "user"))}
    of_user["params"] = {"smoothing": 0.1, "rate": 0.2}
    yield site.payload(SINGLE, "reached", "gluon/own_net.py", require={"f1": 0.1, "loss": {"max": 9}}, **of_user)
    yield site.payload(SINGLE, "not_reached", "gluon/own_net.py", require={"f1": 0.9999}, **of_user)
    for name, file in write_mistaken_files(site.root / "gluon_files").items():
        yield site.payload(SINGLE, name, str(file))
    yield site.payload(SINGLE, "unknown_parameter", GLUON_MLP, params={"learnin_rate": 0.1})


def list_of_gang(site, team):
    """Return the trainings of a gang of several processes."""
    yield from list_common(site, team)
    yield site.payload(team, "seeded", "gluon/seeded.py", dataset="binary", epochs=1)
    yield site.payload(team, "uneven", "gluon/uneven.py", dataset="numbered", epochs=1)
    if "horovod" in team:
        yield site.payload(team, "fp16", GLUON_MLP, params=LAYERS | MOMENTUM, compression="fp16")


def list_asynchronous(site, team):
    """Return the trainings of ranks that do not wait for each other."""
    params = {"params": {"rate": 0.2, "smoothing": 0.1}, "dataset": "binary"}
    yield site.payload(team, "user", "gluon/own_net.py", **params, checkpoint={"every_steps": 5, "keep": 20})
    yield site.payload(team, "adam", GLUON_MLP, params=LAYERS)
    yield site.payload(team, "sparse", "gluon/embedded.py", epochs=1)
    yield resumed(site, team, "resumed", MIDDLE, "momentum", GLUON_MLP, params=LAYERS | MOMENTUM)
    outlier = {"batch_size": 8, "epochs": 1, "checkpoint": {"every_steps": 2}}
    yield site.payload(team, "rows", "gluon/rows.py", dataset="numbered")
    yield from list_measured(site, team)
    yield from list_remembering(site, team)
    if TEAMS_OF_ALL[team].workers == 1:
        yield site.payload(team, "outlier", "gluon/line.py", dataset="outlier", **outlier)


def list_placed(site):
    """Return trainings whose blocks are placed by a map, most of which cannot be (K33)."""
    team = "gluon-model_parallel-2"
    maps = {
        "mapped": {"hidden": 1, "output": 0},
        "unplaced": {"hidden.0": 0, "output": 1},
        "inside": {"hidden": 0, "hidden.1": 1, "output": 1},
        "unknown_block": {"hiden": 0, "output": 1},
    }
    for name, placement in maps.items():
        yield site.payload(team, name, GLUON_MLP, params=LAYERS, placement=placement, micro_batches=7)
    yield site.payload(team, "one_block", "gluon/rows.py", dataset="numbered")
    for memory in ("nadam", "updates"):
        yield site.payload(team, memory, "gluon/own_optimizer.py", dataset="binary", params={"memory": memory})
    yield site.payload(team, "one_graph", "gluon/symbol.py", dataset="binary")
    yield site.payload(team, "tied", "gluon/tied.py", placement={"0": 0, "1": 1, "2": 1})


def list_tuned(site):
    """Return trainings that start from the model of `momentum`."""
    other = {"initial_model": str(site.model(SINGLE, "momentum")), "epochs": 1}
    yield site.payload(SINGLE, "other_head", GLUON_MLP, params={**LAYERS, "classes": 12}, **other)
    yield site.payload(SINGLE, "other_model", "gluon/own_net.py", dataset="binary", **other)
    of_cnn = {"initial_model": str(site.model("gluon-data_parallel-2", "cnn")), "freeze": ["features"]}
    yield site.payload("gluon-data_parallel-2", "tuned_cnn", GLUON_CNN, epochs=1, **of_cnn)
    yield site.payload(SINGLE, "freeze_unknown", GLUON_MLP, freeze=["hiden"], **other)
    yield site.payload(SINGLE, "freeze_all", GLUON_MLP, params=LAYERS, freeze=["hidden", "output"], **other)


def write_mistaken_files(folder):
    folder.mkdir()
    for name, (text, _) in MISTAKEN_FILES.items():
        (folder / f"{name}.py").write_text(f"{text}\n")
    return {name: folder / f"{name}.py" for name in MISTAKEN_FILES}


TEAMS_OF_ALL = TEAMS | GLUON_TEAMS | GLUON_GANGS
