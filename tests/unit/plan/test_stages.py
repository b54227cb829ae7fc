"""The gang of `pipeline`: a chief whose end is the end, and a server for each stage; and what is said of the stages."""

from pathlib import Path

from test_parameter_servers import make_machine, plan_job

from training.plan.built import find_oversized
from training.plan.machine import HostFacts
from training.plan.partition import LayerFacts
from training.plan.run_plan import plan_run
from training.plan.stage_table import render_other_counts, render_split
from training.plan.tf_config import parse_tf_config
from training.spec.loader import pipeline_from_mapping
from training.spec.stages import StagesSpec


def make_spec(**stages):
    mapping = {
        "name": "small",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.mlp"},
        "train": {
            "engine": "tensorflow",
            "strategy": "pipeline",
            "batch_size": 60,
            "pipeline": {"stages": 3, **stages},
        },
    }
    return pipeline_from_mapping(mapping, Path.cwd()).spec


def chain(*costs):
    return [
        LayerFacts(name="abcdefghij"[i], inputs=(i - 1,), output_numbers=8, cost=cost) for i, cost in enumerate(costs)
    ]


def test_a_chief_leads_and_each_stage_serves_under_its_name():
    job = plan_job(make_spec(), make_machine())

    assert [process.name for process in job.processes] == [
        "rank 0 (chief)",
        "rank 1 (stage 0)",
        "rank 2 (stage 1)",
        "rank 3 (stage 2)",
    ]
    assert [process.service for process in job.processes] == [False, True, True, True]
    assert all(process.ready_on == "event" for process in job.processes)
    assert job.slots == 3
    tasks = [parse_tf_config(process.env["TF_CONFIG"]) for process in job.processes]
    assert [(told.task.type, told.task.index) for told in tasks] == [("chief", 0), *(("worker", i) for i in range(3))]
    assert len({told.model_dump_json(exclude={"task"}) for told in tasks}) == 1


def test_the_plan_tells_of_equal_stages_while_nobody_has_looked_at_the_model():
    told = plan_run(make_spec(schedule="gpipe"), make_machine()).stages

    assert told == (
        "3 stages, gpipe, 8 micro-batches of 7 or 8 rows",
        "if they cost the same, a step takes 0.42 of the time of one process with the threads of one stage, 20% idle; "
        "they hold 8, 8, 8 micro-batches at most",
        "the model is split once its rows are known: when prepare_data has run",
    )


def test_more_stages_than_slots_are_told_in_the_words_of_stages():
    """K13."""
    (problem,) = find_oversized(make_spec(), make_machine(HostFacts(cores=2, slots=2)))

    assert str(problem).startswith("train.pipeline.stages: must be at most the slots of 127.0.0.1, 2. Received: 3. Use")


def test_a_split_is_told_line_by_line():
    head, *stages = render_split(chain(1, 1, 2), (2, 1), StagesSpec(stages=2, micro_batches=4), 16)

    assert head.startswith("2 stages, 1f1b, 4 micro-batches of 4 rows: a step takes 0.63 of the time of one process")
    assert stages == [
        "stage 0  a ... b  2 layers  0 parameters  50% of the cost  512 B of activations  sends 512 B a step",
        "stage 1  c        1 layer   0 parameters  50% of the cost  256 B of activations  sends 512 B a step",
    ]


def test_other_numbers_of_stages_are_those_that_could_be_had():
    counts = [line.split(" ")[0] for line in render_other_counts(chain(*[1] * 9), 3, StagesSpec(micro_batches=5), 16)]

    assert counts == ["2", "4", "5"]  # no more than micro-batches
    assert render_other_counts(chain(1, 1), 2, StagesSpec(), 16) == []
