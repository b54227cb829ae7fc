"""What the gangs of these tests are told to train on rows of the model file's own `build_dataset`."""

from teams import ASYNCHRONOUS, STRATEGIES, TEAMS

HEADS, STREAMS, MIXED = "two_heads.py", "streams.py", "mixed.py"
#: 103 rows in batches of 12: what is over fills no step.
BATCH, PER_EPOCH, MIDDLE = 12, 8, 11
#: Of `mixed.py`, whose loss scale is halved in step 6.
HALF_STEPS, HALF_MIDDLE = 10, 8
LIMIT_S = 1.0
SEVERAL_RANKS = (2, "horovod-2")


def list_tasks_of_own_rows(site, team):
    """Return what a gang trains on own rows: all of it for the teams that stand for a strategy."""
    if team not in STRATEGIES.values():
        return []
    kept = {"checkpoint": {"every_steps": MIDDLE, "keep": 9}, "batch_size": BATCH}
    if team == ASYNCHRONOUS:  # does not count, so that its dataset must not end
        return [own_rows(site, team, "cut", HEADS, params={"repeats": True}, **kept), *list_short_tasks(site, team)]
    if TEAMS[team].strategy == "pipeline":  # which refuses two inputs
        return [own_rows(site, team, "cut", HEADS, **kept), *list_short_tasks(site, team)]
    begin_from = str(site.checkpoints(2, "cut") / f"step-{MIDDLE:08d}")
    return [
        own_rows(site, team, "cut", HEADS, **kept),
        own_rows(site, team, "sharded", HEADS, data={"sharding": "own"}, **kept),
        own_rows(site, team, "resumed_cut", HEADS, resume=True, begin_from=begin_from, **kept),
        *list_short_tasks(site, team),
        *(list_tasks_of_ranks(site, team) if team in SEVERAL_RANKS else []),
    ]


def list_short_tasks(site, team):
    """Return trainings that must end before the first step, or at a known one, with the same words everywhere (K23)."""
    asked = {"steps_per_epoch": 12, "batch_size": BATCH}  # 120 rows are 10 batches
    return [
        own_rows(site, team, "too_few", STREAMS, params={"rows": 120}, **asked),
        own_rows(site, team, "tiny", STREAMS, params={"rows": 5}, batch_size=BATCH),
        own_rows(site, team, "ends_early", STREAMS, params={"rows": 120, "kind": "generator"}, **asked),
    ]


def list_tasks_of_ranks(site, team):
    """Return what only several ranks can have: shards of two lengths, and rows that differ though they must not."""
    uneven = {"rows": 95, "kind": "uneven"}
    return [
        own_rows(site, team, "uneven", STREAMS, data={"sharding": "own"}, params=uneven, batch_size=BATCH, epochs=1),
        own_rows(site, team, "differing", STREAMS, params={"kind": "differing"}, batch_size=BATCH),
    ]


def list_own_rows_of_one(site):
    """Return what is refused whatever the strategy, and the evaluation of what two ranks trained."""
    refused = {
        "endless": {"kind": "endless"},
        "endless_generator": {"kind": "endless_generator"},
        "unbatched": {"kind": "unbatched"},
        "no_dataset": {"kind": "no_dataset"},
        "no_such_parameter": {"row": 5},
    }
    return [
        *list_tasks_of_own_rows(site, 1),
        *(
            own_rows(site, 1, name, STREAMS, params=params, batch_size=BATCH, start_timeout_s=LIMIT_S)
            for name, params in refused.items()
        ),
        own_rows(site, 1, "nothing_held_out", STREAMS, batch_size=BATCH, require={"loss": {"max": 9}}),
        own_rows(site, 1, "evaluated_cut", HEADS, task="evaluate", model_dir=str(site.model(2, "cut")), batch_size=5),
        own_rows(site, 1, "without_function", "line.py"),
    ]


def own_rows(site, team, name, entrypoint, *, data=None, params=None, model=None, **train):
    """Return a payload whose rows the model file gives; parameter servers are always told the number of steps."""
    if TEAMS[team].strategy == "parameter_server":
        train.setdefault("steps_per_epoch", PER_EPOCH)
    payload = site.payload(team, name, entrypoint, params=model, **train)
    payload["spec"]["data"] = {"source": "build_dataset", "params": params or {}, **(data or {})}
    return {**payload, "dataset": None}


def list_mixed_tasks(site, team):
    """Return trainings of a subclass of `keras.Model` in half precision, whose optimizer clips and scales."""
    if team not in STRATEGIES.values() or TEAMS[team].strategy == "pipeline":
        return []
    kept = {"epochs": 1, "batch_size": BATCH, "checkpoint": {"every_steps": HALF_MIDDLE, "keep": 9}}
    float16 = {"model": {"policy": "mixed_float16", "clipnorm": 0.1}, **kept}
    if team == ASYNCHRONOUS:
        return [own_rows(site, team, "mixed_float16", MIXED, steps_per_epoch=HALF_STEPS, **float16)]
    bfloat16 = {"model": {"policy": "mixed_bfloat16", "global_clipnorm": 0.1}, **kept}
    begin_from = str(site.checkpoints(2, "mixed_float16") / f"step-{HALF_MIDDLE:08d}")
    return [
        own_rows(site, team, "mixed_float16", MIXED, **float16),
        own_rows(site, team, "resumed_float16", MIXED, resume=True, begin_from=begin_from, **float16),
        own_rows(site, team, "mixed_bfloat16", MIXED, **bfloat16),
    ]
