"""What a person reads who wrote a pipeline file wrong: file, line, field, what must hold, what came, what to do.

`BASE` has seven lines; what a case adds begins on line 8. A case says what stands in the file, then every line printed.
"""

import pytest

from training.errors import SpecError
from training.spec.loader import load_pipeline

BASE = """\
name: digits
data:
  source: digits
model:
  entrypoint: training.models.mlp
train:
  engine: tensorflow
"""
TRAIN_KEYS = (
    "epochs, batch_size, seed, steps_per_epoch, learning_rate_scaling, warmup_steps, checkpoint, restarts, "
    "user_restarts, failure_patterns, start_timeout_s, stall_timeout_s, stop_grace_s, timeout_s, script, args, "
    "engine, strategy, pipeline"
)
TENSORFLOW = "single, mirrored, multi_worker_mirrored, parameter_server, central_storage, tpu or pipeline"

WRONG_VALUES = {
    BASE + '  batch_size: "32"\n': [
        "p.yaml:8: train.batch_size: must be a whole number. Received: the text '32'. Write it without quotes."
    ],
    BASE + "  batch_size: 0\n": ["p.yaml:8: train.batch_size: must be at least 1. Received: 0."],
    BASE + "  batch_size: true\n": ["p.yaml:8: train.batch_size: must be a whole number. Received: true."],
    BASE + "  epochs: 2.0\n": ["p.yaml:8: train.epochs: must be a whole number. Received: the number 2.0. Write 2."],
    BASE + "  epochs:\n": [
        "p.yaml:8: train.epochs: must be a whole number. Received: nothing (null). Give it a value, or remove the key."
    ],
    BASE + "  stall_timeout_s: 5m\n": ["p.yaml:8: train.stall_timeout_s: must be a number. Received: the text '5m'."],
    BASE + "  stall_timeout_s: 0\n": ["p.yaml:8: train.stall_timeout_s: must be more than 0. Received: 0."],
    BASE + "  seed: 4294967296\n": ["p.yaml:8: train.seed: must be less than 4294967296. Received: 4294967296."],
    BASE + "  failure_patterns: [{pattern: '[', treat_as: temporary}]\n": [
        "p.yaml:8: train.failure_patterns[0].pattern: must be a regular expression, and this has unterminated "
        "character set at character 1. Received: the text '['."
    ],
    BASE + "  failure_patterns:\n  - pattern: quota\n    treat_as: temporary\n  - {pattern: 'a**', treat_as: spec}\n": [
        "p.yaml:11: train.failure_patterns[1].pattern: must be a regular expression, and this has multiple repeat "
        "at character 3. Received: the text 'a**'."
    ],
    BASE + "  failure_patterns:\n  - {pattern: '(?P<n>x', treat_as: temporary}\n": [
        "p.yaml:9: train.failure_patterns[0].pattern: must be a regular expression, and this has a mistake (missing ), "
        "unterminated subpattern) at character 1. Received: the text '(?P<n>x'."
    ],
    BASE + "  failure_patterns: [{pattern: '[[a]', treat_as: spec}]\n": [
        "p.yaml:8: train.failure_patterns[0].pattern: must be a regular expression of one meaning (possible nested set "
        "at position 1). Received: the text '[[a]'."
    ],
    BASE + "  failure_patterns: [{pattern: '(quota)?', treat_as: temporary}]\n": [
        "p.yaml:8: train.failure_patterns[0].pattern: must not match the empty text, which is found in what every "
        "failure says. Received: the text '(quota)?'."
    ],
    BASE + "  failure_patterns: [{pattern: '(\\w+\\s?)+:', treat_as: temporary}]\n": [
        "p.yaml:8: train.failure_patterns[0].pattern: must not repeat what has a repeat in it, as `(a+)+` does: "
        "looking for it may take for ever; the words alone are enough. Received: the text '(\\w+\\s?)+:'."
    ],
    BASE + "  failure_patterns: [{pattern: quota, treat_as: tempory}]\n": [
        "p.yaml:8: train.failure_patterns[0].treat_as: must be user_code, out_of_memory, diverged, lost_peer, "
        "port_taken, temporary or spec. Received: the text 'tempory'. Did you mean `temporary`?"
    ],
    BASE + "  failure_patterns: [{pattern: quota}]\n": [
        "p.yaml:8: train.failure_patterns[0].treat_as: is missing. Add `treat_as:` (class of the failure, which "
        "decides about restarts (docs/guides/failures.md))."
    ],
    BASE + "  script: t.py\n  args: --fast\n": [
        "p.yaml:4: model: must not be given together with `train.script`. Remove one of them.",
        "p.yaml:9: train.args: must be a list. Received: the text '--fast'. Write [--fast].",
    ],
    BASE + "  checkpoint: 3\n": [
        "p.yaml:8: train.checkpoint: must be a block with keys such as every_steps, keep. "
        "Received: the whole number 3. Write its keys below it, indented."
    ],
    BASE + "cluster:\n": [
        "p.yaml:8: cluster: must be a block with keys such as backend, workers, threads_per_worker, queue_timeout_s. "
        "Received: nothing (null). Write its keys below it, indented, or remove it."
    ],
    BASE + "cluster: {backend: slrum}\n": [
        "p.yaml:8: cluster.backend: must be local, ssh, slurm or kubernetes. Received: the text 'slrum'. "
        "Did you mean `slurm`?"
    ],
    BASE + "register: {model: my model, alias: v1, approval: yes}\n": [
        "p.yaml:8: register.model: may hold letters, digits, '_', '-' and '.' only. Received: the text 'my model'.",
        "p.yaml:8: register.alias: may not be `latest` or look like a version (`v1`): MLflow reserves those. "
        "Received: the text 'v1'.",
        "p.yaml:8: register.approval: must be true or false. Received: the text 'yes'. Write true.",
    ],
    BASE + "register:\n  alias: champion\n": [
        "p.yaml:8: register.model: is missing. Add `model:` (name of the registered model)."
    ],
    BASE + "experiment: ''\n": ["p.yaml:8: experiment: must not be empty. Received: an empty text. Give it a value."],
    BASE.replace("digits", "d" * 201, 1): [
        "p.yaml:1: name: must be at most 200 characters long. Received: 201 characters. Shorten it."
    ],
    BASE.replace("name: digits", "name: 2024"): [
        "p.yaml:1: name: must be text. Received: the whole number 2024. Put it in quotes."
    ],
    BASE.replace("source: digits", "source: digits\n  validation_fraction: 1"): [
        "p.yaml:4: data.validation_fraction: must be less than 1. Received: 1."
    ],
    BASE.replace("entrypoint: training.models.mlp", "params: [1]\n  freeze: 3"): [
        "p.yaml:4: model.entrypoint: is missing. "
        "Add `entrypoint:` (a module (`training.models.mlp`) or `path.py` with `build_model(**params)`).",
        "p.yaml:5: model.params: must be a block of names and values. Received: a list. "
        "Write `name: value` below it, indented.",
        "p.yaml:6: model.freeze: must be a list. Received: the whole number 3. Write [3].",
    ],
    BASE.replace("entrypoint: training.models.mlp", "entrypoint: a.py\n  freeze: [a, 1]"): [
        "p.yaml:6: model.freeze[1]: must be text. Received: the whole number 1. Put it in quotes."
    ],
}

WRONG_CHOICES = {
    BASE.replace("  engine: tensorflow", "  epochs: 3"): [
        "p.yaml:6: train.engine: is missing; it must be tensorflow, horovod or mxnet. Add `engine:`."
    ],
    BASE.replace("engine: tensorflow", "strategy: dist_sync\n  epochs: x"): [
        "p.yaml:6: train.engine: is missing; it must be tensorflow, horovod or mxnet. "
        "Add `engine: mxnet`, which has the strategy dist_sync.",
        "p.yaml:8: train.epochs: must be a whole number. Received: the text 'x'.",
    ],
    BASE.replace("tensorflow", "tensorflwo\n  strategy: distsync\n  epoch: 1"): [
        "p.yaml:7: train.engine: must be tensorflow, horovod or mxnet. Received: the text 'tensorflwo'. "
        "Did you mean `tensorflow`?",
        "p.yaml:8: train.strategy: must be single, mirrored, multi_worker_mirrored, parameter_server, central_storage, "
        "tpu, pipeline, horovod, data_parallel, dist_sync, dist_async or model_parallel. "
        "Received: the text 'distsync'. Did you mean `dist_sync`?",
        "p.yaml:9: train.epoch: is not a known key. Did you mean `epochs`?",
    ],
    BASE.replace("engine: tensorflow", "engine:"): [
        "p.yaml:7: train.engine: must be tensorflow, horovod or mxnet. Received: nothing (null)."
    ],
    BASE + "  strategy: miror\n": [
        f"p.yaml:8: train.strategy: must be {TENSORFLOW} (the choices for engine: tensorflow). "
        "Received: the text 'miror'. Did you mean `mirrored`?"
    ],
    BASE + "  strategy: dist_sync\n": [
        f"p.yaml:8: train.strategy: must be {TENSORFLOW} (the choices for engine: tensorflow). "
        "Received: the text 'dist_sync', which is for mxnet. Set train.engine to mxnet, or choose another strategy."
    ],
    BASE.replace("train:\n  engine: tensorflow", "train: tensorflow"): [
        "p.yaml:6: train: must be a block with keys such as engine, epochs, batch_size, seed. "
        "Received: the text 'tensorflow'. Write its keys below it, indented."
    ],
    BASE + "schedule: 5\n": [
        "p.yaml:8: schedule: must be a cron expression, a block `assets: [uri, …]`, or null. "
        "Received: the whole number 5."
    ],
    BASE + "schedule: {assets: []}\n": [
        "p.yaml:8: schedule.assets: must hold at least 1 item. Received: an empty list."
    ],
    BASE + "schedule: 61 * * * *\n": [
        "p.yaml:8: schedule: must be a cron expression; its minute takes 0 to 59, not '61'. "
        "Received: the text '61 * * * *'."
    ],
    BASE + "evaluate:\n  require:\n    accuracy: high\n    loss: {mxa: 1}\n    f1: {}\n": [
        "p.yaml:10: evaluate.require.accuracy: must be a number (the least acceptable value) or a block with `min`, "
        "`max` or both. Received: the text 'high'.",
        "p.yaml:11: evaluate.require.loss.mxa: is not a known key. Did you mean `max`?",
        "p.yaml:12: evaluate.require.f1: must hold `min`, `max` or both. Received: an empty block.",
    ],
}

WRONG_KEYS = {
    BASE + "  epoch: 3\n": ["p.yaml:8: train.epoch: is not a known key. Did you mean `epochs`?"],
    BASE + "  x: 3\n": [f"p.yaml:8: train.x: is not a known key. Known keys here: {TRAIN_KEYS}."],
    BASE + "epochs: 3\n": ["p.yaml:8: epochs: is not a known key here. Move it to the block `train`."],
    BASE + "seed: 3\n": ["p.yaml:8: seed: is not a known key here. Move it to the block `data` or the block `train`."],
    BASE + "  cluster: {workers: 2}\n": ["p.yaml:8: train.cluster: is not a known key here. Move it to the top level."],
    BASE + "registration: {model: digits}\n": ["p.yaml:8: registration: is not a known key. Did you mean `register`?"],
    BASE + "Schedule: null\n": ["p.yaml:8: Schedule: is not a known key. Did you mean `schedule`?"],
}

BETWEEN_BLOCKS = {
    BASE.replace("model:\n  entrypoint: training.models.mlp\n", ""): [
        "p.yaml:1: model: is missing, and so is `train.script`; one of them must be given. "
        "Add `model:` with an `entrypoint:` below it."
    ],
    BASE + "  args: [--fast]\n": [
        "p.yaml:8: train.args: must not be given without `train.script`, which would get them. "
        "Use `model.params` for a model file."
    ],
    "name: a\ntrain: {engine: tensorflow, script: t.py}\ndata: null\nmodel: {entrypoint: m}\n": [
        "p.yaml:4: model: must not be given together with `train.script`. Remove one of them."
    ],
    BASE.replace("  source: digits\n", "").replace("data:", "data: null"): [
        "p.yaml:2: data: is missing; only a pipeline with `train.script` may do without. "
        "Add `data:` with a `source:` below it."
    ],
    "name: a\ntrain: {engine: tensorflow, script: t.py}\nevaluate: {require: {accuracy: 0.9}}\n": [
        "p.yaml:3: evaluate.require: must not be given without `data`: it is held-out rows that show it. "
        "Add `data:`, or leave it out."
    ],
    "name: a\ntrain:\n  engine: horovod\n  script: t.py\n  epochs: 3\n  batch_size: 7\n  checkpoint: {keep: 1}\n"
    "  compression: fp16\ncluster: {workers: 2}\n": [
        f"p.yaml:{line}: train.{key}: must not be given with `train.script`, which decides that itself. "
        "Hand it to the script in `train.args`."
        for line, key in ((5, "epochs"), (6, "batch_size"), (7, "checkpoint"), (8, "compression"))
    ],
    BASE.replace("source: digits", "source: data/iris.CSV"): [
        "p.yaml:2: data.label: is missing; a table (data/iris.CSV) must say which column holds the label. "
        "Add `label: <column>` under `data`."
    ],
    BASE + "cluster: {devices: 2}\n": [
        "p.yaml:8: cluster.devices: must not be given with strategy `single`, whose processes use one device each. "
        "Received: 2. Leave it out, or set train.strategy to mirrored or central_storage."
    ],
    BASE + "  strategy: mirrored\n  batch_size: 10\ncluster: {devices: 4}\n": [
        "p.yaml:9: train.batch_size: must be a multiple of the 4 devices, each of which takes an equal share of the "
        "global batch. Received: 10. Nearest: 8 or 12."
    ],
    BASE + "cluster: {parameter_servers: 2}\n": [
        "p.yaml:8: cluster.parameter_servers: must not be given with strategy `single`. Received: 2. Leave it out, or "
        "set train.strategy to parameter_server."
    ],
    BASE.replace("tensorflow", "horovod") + "cluster: {parameter_servers: 2}\n": [
        "p.yaml:8: cluster.parameter_servers: must not be given with strategy `horovod`. Received: 2. Leave it out."
    ],
    BASE + "  strategy: multi_worker_mirrored\ncluster: {workers: 2, min_workers: 3}\n": [
        "p.yaml:9: cluster.min_workers: must be at most `workers`, 2. Received: 3."
    ],
    BASE + "  strategy: multi_worker_mirrored\n  batch_size: 9\ncluster: {workers: 3, min_workers: 2}\n": [
        "p.yaml:10: cluster.min_workers: must allow a number of ranks below 3 that divides train.batch_size, 9. "
        "Received: 2. Lower it, or change train.batch_size."
    ],
    BASE + "cluster: {workers: 2, min_workers: 1}\n": [
        "p.yaml:8: cluster.min_workers: must not be given with strategy `single`, which cannot go on with fewer ranks. "
        "Leave it out, or set train.strategy to multi_worker_mirrored."
    ],
    BASE.replace("tensorflow", "horovod\n  batch_size: 36\n  reduction: adasum") + "cluster: {workers: 3}\n": [
        "p.yaml:9: train.reduction: must be `average` unless the number of workers is a power of 2. Received: adasum "
        "with 3 workers. Set cluster.workers to 2 or 4."
    ],
    BASE + "  strategy: multi_worker_mirrored\n  batch_size: 10\ncluster: {workers: 4}\n": [
        "p.yaml:9: train.batch_size: must be a multiple of the 4 workers, each of which takes an equal share of the "
        "global batch. Received: 10. Nearest: 8 or 12."
    ],
    BASE.replace("tensorflow", "horovod\n  batch_size: 2") + "cluster: {workers: 4}\n": [
        "p.yaml:8: train.batch_size: must be a multiple of the 4 workers, each of which takes an equal share of the "
        "global batch. Received: 2. Nearest: 4."
    ],
    BASE.replace("tensorflow", "mxnet\n  strategy: dist_sync") + "cluster: {workers: 5}\n": [
        "p.yaml:6: train.batch_size: must be a multiple of the 5 workers, each of which takes an equal share of the "
        "global batch. Received: 32 (the default). Nearest: 30 or 35."
    ],
    BASE + "  strategy: multi_worker_mirrored\n  batch_size: 3\n  epochs: no\ncluster: {workers: 2, bakend: ssh}\n": [
        "p.yaml:9: train.batch_size: must be a multiple of the 2 workers, each of which takes an equal share of the "
        "global batch. Received: 3. Nearest: 2 or 4.",
        "p.yaml:10: train.epochs: must be a whole number. Received: the text 'no'.",
        "p.yaml:11: cluster.bakend: is not a known key. Did you mean `backend`?",
    ],
}

ROOT = "Begin with `name:`, `data:`, `model:` and `train:`."
NOT_A_SPEC = {
    "": [f"p.yaml: must describe a pipeline. Received: nothing. {ROOT}"],
    "# later\n---\n": [f"p.yaml:3: must describe a pipeline. Received: nothing. {ROOT}"],
    "- digits\n": [f"p.yaml:1: must be a block of keys. Received: a list. {ROOT}"],
    "digits\n": [f"p.yaml:1: must be a block of keys. Received: the text 'digits'. {ROOT}"],
    "name: digits\n": [
        "p.yaml:1: train: is missing. Add `train:` (how to train).",
        "p.yaml:1: data: is missing; only a pipeline with `train.script` may do without. "
        "Add `data:` with a `source:` below it.",
        "p.yaml:1: model: is missing, and so is `train.script`; one of them must be given. "
        "Add `model:` with an `entrypoint:` below it.",
    ],
    BASE + "---\nname: other\n": [
        "p.yaml:8: a second document begins here (after `---`); a file holds one. Move it to a file of its own."
    ],
    BASE + "name: other\n": ["p.yaml:8: name: is given twice, first on line 1. Remove one of the two."],
    BASE + "  seed: 1\n  seed: 2\n": ["p.yaml:9: train.seed: is given twice, first on line 8. Remove one of the two."],
    BASE + "description: !!python/object/apply:os.system [ls]\n": [
        "p.yaml:8: description: must not have a tag. Received: `!!python/object/apply:os.system`. "
        "Remove it, or put a text that begins with `!` in quotes."
    ],
    BASE + "description: &text a\nexperiment: *text\n": [
        "p.yaml:8: description: must not have an anchor. Received: `&text`. "
        "Remove it, or put a text that begins with `&` in quotes.",
        "p.yaml:9: experiment: must be written out. Received: the alias `*text`. "
        "Repeat the value, or put a text that begins with `*` in quotes.",
    ],
    BASE + "description: {{ what }}\n": [
        "p.yaml:8: description: a key must be text. Received: a list, a block or an alias as a key. "
        "Put a text that begins with `{`, `[` or `*` in quotes."
    ],
    BASE + "  stall_timeout_s: .inf\n": [
        "p.yaml:8: train.stall_timeout_s: must be a finite number. Received: .inf. "
        "Write a finite number, or null for none."
    ],
    BASE + "  seed: 010\n  epochs: 1_0\n": [
        "p.yaml:8: train.seed: must be a number without leading zeros, `_` or `0b`. Received: 010. "
        "Write 10, or put it in quotes for a text.",
        "p.yaml:9: train.epochs: must be a number without leading zeros, `_` or `0b`. Received: 1_0. "
        "Write 10, or put it in quotes for a text.",
    ],
}

SYNTAX = {
    BASE + "\tseed: 1\n": ["p.yaml:8: the line is indented with a tab; YAML takes spaces only. Indent it with spaces."],
    BASE + "description: digits: the sequel\n": [
        "p.yaml:8: the line holds a second `: `, or is indented deeper than the lines of its block. "
        "Put a text that holds `: ` in quotes, or mend the indentation."
    ],
    BASE + "description: 'digits\nschedule: null\n": ["p.yaml:8: a quote is opened here and never closed. Close it."],
    BASE + 'description: "\\d"\n': [
        "p.yaml:8: a text in double quotes holds a `\\` that begins no known escape. Write the text in single quotes."
    ],
    BASE + "evaluate: {require: {a: 1}\nschedule: null\n": [
        "p.yaml:8: a block is opened with `{` here and not closed with `}`, or a `,` is missing in it. "
        "Close it, or put a `,` between its keys."
    ],
    BASE + "  args: [a\nschedule: null\n": [
        "p.yaml:8: a list is opened with `[` here and not closed with `]`, or a `,` is missing in it. "
        "Close it, or put a `,` between its items."
    ],
    BASE + "schedule\n": ["p.yaml:8: the line is not of the form `key: value`. Write a `:` and a space after the key."],
    BASE + "  args:\n  - a\n  b: 1\n c: 2\n": [
        "p.yaml:11: the indentation does not fit the lines above. Indent all keys of a block alike."
    ],
    BASE + "description: @daily\n": ["p.yaml:8: a value cannot begin with `@`. Put the value in quotes."],
    BASE + "  args: [*]\n": [
        "p.yaml:8: a value cannot begin with `*` (in YAML, that refers to an anchor). Put the value in quotes."
    ],
    BASE + "description: a\x07\n": ["p.yaml:8: the text holds the control character '\\x07'. Remove it."],
    "a: " + "[" * 40: ["p.yaml:1: a[0][0][0]: is nested deeper than 32 levels."],
}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(text, lines, id=lines[0].removeprefix("p.yaml:")[:70])
        for group in (WRONG_VALUES, WRONG_CHOICES, WRONG_KEYS, BETWEEN_BLOCKS, NOT_A_SPEC, SYNTAX)
        for text, lines in group.items()
    ],
)
def test_a_wrong_file_is_answered_in_its_own_words(text, lines, tmp_path):
    """K22 and K53 among others."""
    path = tmp_path / "p.yaml"
    path.write_text(text)

    with pytest.raises(SpecError) as caught:
        load_pipeline(path)

    assert [str(problem).replace(str(path), "p.yaml") for problem in caught.value.problems] == lines


def test_no_message_speaks_pydantic():
    """Every wrong file above, with a look at what must never reach a user."""
    said = " ".join(
        line
        for group in (WRONG_VALUES, WRONG_CHOICES, WRONG_KEYS, BETWEEN_BLOCKS)
        for lines in group.values()
        for line in lines
    )

    for jargon in ("Input should", "function-after", "tagged-union", "train.tensorflow", "dict_type", "[key]"):
        assert jargon not in said


def test_the_base_of_all_cases_is_right(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(BASE)

    assert load_pipeline(path).spec.name == "digits"
