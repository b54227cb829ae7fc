"""What the gangs of these tests are told to do, one training after another."""

from teams import ASYNCHRONOUS, CNN, DECIDING, MIDDLE, MOMENTUM, PER_EPOCH

OUTLIER_BATCH, OUTLIER_STEP = 8, 5
BUILD = "m = keras.Sequential([keras.layers.Dense(10)]); m.compile('sgd', 'mse'); return m"
#: Model files with a mistake each: text, and `model.params`.
MISTAKEN_FILES = {
    "no_function": ("def make_model(): pass", {}),
    "nearly_function": ("def build_modle(): pass", {}),
    "returns_nothing": ("def build_model(): pass", {}),
    "not_compiled": ("import keras\ndef build_model(): return keras.Sequential([keras.layers.Dense(1)])", {}),
    "legacy": (
        "class Model: pass\nModel.__module__ = 'tf_keras.src.models'\ndef build_model(): return Model()",
        {},
    ),
    "wrong_shape": (
        "import keras\ndef build_model():\n m = keras.Sequential([keras.Input((3,)), keras.layers.Dense(10)])\n"
        " m.compile('sgd', 'mse')\n return m",
        {},
    ),
    "unregistered": (
        "import keras\nclass Own(keras.layers.Layer):\n def call(self, x): return x\ndef build_model():\n"
        " m = keras.Sequential([keras.Input((64,)), Own(), keras.layers.Dense(10)])\n"
        " m.compile('sgd', 'sparse_categorical_crossentropy')\n"
        " return m",
        {},
    ),
    "raises": ("def build_model(): raise KeyError('width')", {}),
    "sets_devices": (
        f"import keras, tensorflow as tf\ntf.config.set_visible_devices([], 'CPU')\ndef build_model(): {BUILD}",
        {},
    ),
    "unknown_parameter": (f"import keras\ndef build_model(units=3, *, rate=1): {BUILD}", {"unit": 4}),
}
KEEPING = {"every_steps": 5, "keep": 20}


def list_tasks_of_law(site, team):
    """Return the trainings whose weights are compared to one process's."""
    keeping = {"checkpoint": KEEPING} if team == 2 else {}
    early = site.payload(team, "early", "early.py", dataset="binary", params={"patience": 1}, epochs=30)
    return [
        site.payload(team, "momentum", params=MOMENTUM, **keeping),
        site.payload(team, "adam"),
        site.payload(team, "cnn", CNN, epochs=1),
        site.payload(team, "user", "user_net.py", dataset="binary"),
        *([early] if team in DECIDING else []),
        site.resumed(team, "resumed", MIDDLE),
    ]


def list_tasks_of_users(site, team):
    """Return what else users ask of a synchronous strategy."""
    normalized = {"entrypoint": "normalized.py", "dataset": "binary", "epochs": 1}
    return [
        site.payload(team, "linear", epochs=1, learning_rate_scaling="linear", warmup_steps=10, params=MOMENTUM),
        site.payload(team, "normalized", **normalized),
        site.payload(team, "synchronized", params={"synchronized": True}, **normalized),
    ]


def list_tasks_that_fail(site, team):
    """Return what must end alike, with the same words, under every strategy."""
    outlier = {"entrypoint": "line.py", "epochs": 1, "batch_size": OUTLIER_BATCH, "checkpoint": {"every_steps": 2}}
    return [
        site.payload(team, "outlier", dataset="outlier", **outlier),
        site.payload(team, "held_out_outlier", dataset="held_out_outlier", **outlier),
        site.resumed(team, "other_params", MIDDLE, params={**MOMENTUM, "hidden": [16]}),
        *(site.payload(team, name, f"{name}.py") for name in ("legacy", "sets_devices")),
    ]


def list_tasks_of_two(site):
    return [
        *list_tasks_of_law(site, 2),
        site.payload(2, "sqrt", "user_net.py", dataset="binary", epochs=1, learning_rate_scaling="sqrt"),
        site.payload(2, "tuned", initial_model=str(site.model(2, "adam")), freeze=["dense"], epochs=1),
        site.payload(2, "dropout", params={"dropout": 0.2}, epochs=1),
        site.payload(2, "accumulating", "accumulating.py", dataset="binary", epochs=1),
        site.resumed(2, "resumed_at_epoch", PER_EPOCH),
    ]


def list_tasks_with_servers(site):
    team = ASYNCHRONOUS
    linear = {"learning_rate_scaling": "linear", "warmup_steps": 10}
    return [
        site.payload(team, "momentum", params=MOMENTUM, checkpoint=KEEPING, cluster={"parameter_servers": 2}),
        site.payload(team, "user", "user_net.py", dataset="binary"),
        site.payload(team, "early", "early.py", dataset="binary", epochs=3),
        site.payload(team, "rows", "rows.py", dataset="numbered", checkpoint=KEEPING),
        site.payload(team, "dropout", params={"dropout": 0.2}, epochs=1),
        site.payload(team, "accumulating", "accumulating.py", dataset="binary", epochs=1),
        site.payload(team, "cnn", CNN, epochs=1),
        site.payload(team, "linear", epochs=1, params=MOMENTUM, **linear),
        site.resumed(team, "resumed", MIDDLE),
    ]


def list_tasks_of_one(site):
    user = {"entrypoint": "user_net.py", "dataset": "binary"}
    of_user = {**user, "task": "evaluate", "model_dir": str(site.model(2, "user"))}
    alike = [task["name"] for task in list_tasks_that_fail(site, 1)]
    return [
        *list_tasks_of_law(site, 1),
        site.payload(1, "tuned", initial_model=str(site.model(2, "adam")), freeze=["dense"], epochs=1),
        site.payload(1, "other_head", initial_model=str(site.model(2, "adam")), params={"classes": 12}, epochs=1),
        site.payload(1, "other_model", initial_model=str(site.model(2, "user")), epochs=1),
        site.payload(1, "freeze_unknown", freeze=["dense_7"], epochs=1),
        site.payload(1, "freeze_all", freeze=["dense*"], epochs=1),
        *list_tasks_of_users(site, 1),
        site.payload(1, "accumulating", "accumulating.py", dataset="binary", epochs=1),
        site.resumed(1, "other_data", MIDDLE, dataset="binary"),
        site.payload(1, "reached", require={"auc": 0.5, "loss": {"max": 9}}, **of_user),
        site.payload(1, "not_reached", require={"auc": 0.9999, "loss": {"max": 0.01}}, **of_user),
        site.payload(1, "none_held_out", "line.py", dataset="outlier", task="evaluate"),
        site.payload(1, "unknown_metric", require={"acu": 0.5}, **of_user),
        *(
            site.payload(1, name, f"{name}.py", params=params)
            for name, (_, params) in MISTAKEN_FILES.items()
            if name not in alike
        ),
        site.payload(1, "no_file", "returns_nothin.py"),
    ]


def write_mistaken_files(folder):
    """Write the model files with a mistake."""
    for name, (text, _) in MISTAKEN_FILES.items():
        (folder / f"{name}.py").write_text(f"{text}\n")
