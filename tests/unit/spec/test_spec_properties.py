"""Properties: whatever goes in, a spec or a `SpecError` comes out; a spec survives being written and read."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.errors import SpecError
from training.spec.document import parse_document
from training.spec.loader import load_pipeline, parse_overrides, pipeline_from_mapping
from training.spec.rules import check_batch_size
from training.spec.text import decode_spec
from training.spec.train import HorovodTrain, MXNetTrain, TensorFlowTrain

TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=20)
NAMES = st.text("abcXYZ019_-.", min_size=1, max_size=20)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
PARAMS = st.dictionaries(TEXTS, VALUES, max_size=3)
SECONDS = st.floats(0.001, 1e6)
FILLED = TEXTS.filter(bool)


def optional(**fields):
    return st.fixed_dictionaries({}, optional=fields)


@st.composite
def trains(draw, workers):
    engine, model = draw(
        st.sampled_from([("tensorflow", TensorFlowTrain), ("horovod", HorovodTrain), ("mxnet", MXNetTrain)])
    )
    strategy = draw(st.sampled_from(get_args(model.model_fields["strategy"].annotation)))
    more = optional(
        epochs=st.integers(1, 99),
        seed=st.integers(0, 2**32 - 1),
        checkpoint=optional(every_steps=st.none() | st.integers(1, 99), keep=st.integers(1, 9)),
        restarts=st.integers(0, 9),
        user_restarts=st.integers(0, 9),
        failure_patterns=st.lists(
            st.fixed_dictionaries(
                {"pattern": FILLED.map(re.escape), "treat_as": st.sampled_from(["spec", "temporary"])}
            ),
            max_size=3,
        ),
        start_timeout_s=SECONDS,
        timeout_s=st.none() | SECONDS,
    )
    batch_size = workers * draw(st.integers(1, 64))
    if workers == 1 and strategy == "pipeline":
        strategy = "single"
    cut = {"pipeline": draw(cuts(workers, batch_size))} if strategy == "pipeline" else {}
    return {"engine": engine, "strategy": strategy, "batch_size": batch_size, **cut, **draw(more)}


@st.composite
def cuts(draw, stages, batch_size):
    partition = st.just("auto") | st.lists(st.integers(1, 9), min_size=stages, max_size=stages)
    more = optional(stages=st.just(stages), schedule=st.sampled_from(["1f1b", "gpipe"]), partition=partition)
    return {"micro_batches": draw(st.integers(stages, batch_size)), **draw(more)}


@st.composite
def pipelines(draw):
    workers = draw(st.integers(1, 8))
    bounds = st.floats(0, 1) | st.fixed_dictionaries({"min": st.floats(0, 1)}, optional={"max": st.floats(1, 2)})
    more = optional(
        description=TEXTS,
        schedule=st.none() | st.sampled_from(["@daily", "0 2 * * mon-fri"]) | st.just({"assets": ["s3://a"]}),
        experiment=st.none() | FILLED,
        evaluate=optional(require=st.dictionaries(TEXTS, bounds, max_size=3)),
        register=st.fixed_dictionaries({"model": NAMES}, optional={"approval": st.booleans()}),
    )
    data = {"source": draw(FILLED), "label": draw(FILLED), "params": draw(PARAMS)}
    model = {"entrypoint": draw(FILLED), "params": draw(PARAMS), "freeze": draw(st.lists(FILLED, max_size=3))}
    train = draw(trains(workers))
    return {"name": draw(NAMES), "data": data, "model": model, "train": train, "cluster": {"workers": workers}} | draw(
        more
    )


def write(text, path):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("spec") / "p.yaml"


@given(pipelines())
def test_a_spec_survives_being_written_and_read(path, mapping):
    spec = pipeline_from_mapping(mapping, Path.cwd()).spec
    text = json.dumps(spec.model_dump(mode="json", by_alias=True), ensure_ascii=False)

    assert load_pipeline(write(text, path)).spec == spec
    assert spec.model_validate_json(spec.model_dump_json(by_alias=True)) == spec


@given(pipelines())
def test_each_key_of_a_spec_can_be_an_override(path, mapping):
    overrides = {key: value for key, value in mapping.items() if key != "name"}

    found = load_pipeline(write(f"name: {json.dumps(mapping['name'])}\n", path), overrides).spec

    assert found == pipeline_from_mapping(mapping, Path.cwd()).spec


@given(st.binary(max_size=200) | TEXTS.map(str.encode))
def test_no_bytes_cause_anything_but_a_spec_or_a_spec_error(path, data):
    path.write_bytes(data)

    check(lambda: load_pipeline(path))


FRAGMENTS = r"""
name: a|data:|  source: digits|model:|  entrypoint: m|train:|  engine: tensorflow|  epochs: 1|- a|: |? [a]|a: *b
a: &b c|{{ x }}|!!set {a}|---|...|%YAML 1.2|	x|'|"|[|]|{|}|# c|a: |+|a: >-|  - - -|<<: *x|~: ~|1: 010
"""
LINES = st.sampled_from([piece for line in FRAGMENTS.strip().splitlines() for piece in line.split("|")])


@settings(max_examples=300)
@given(st.lists(LINES, max_size=12).map("\n".join))
def test_no_lines_cause_anything_but_a_spec_or_a_spec_error(path, text):
    check(lambda: load_pipeline(write(text, path)))


@st.composite
def damaged(draw):
    """A valid mapping with one value or key anywhere replaced by anything."""
    mapping = json.loads(json.dumps(draw(pipelines())))
    block = mapping
    while True:
        key = draw(st.sampled_from(sorted(block)))
        if isinstance(block[key], dict) and block[key] and draw(st.booleans()):
            block = block[key]
            continue
        if draw(st.booleans()):
            block[draw(TEXTS)] = block.pop(key)
        else:
            block[key] = draw(VALUES)
        return mapping


@settings(max_examples=200)
@given(damaged())
def test_no_mapping_causes_anything_but_a_spec_or_a_spec_error(mapping):
    check(lambda: pipeline_from_mapping(mapping, Path.cwd()))


@given(st.dictionaries(TEXTS, VALUES | st.binary() | st.floats() | st.sets(st.integers()), max_size=4))
def test_no_overrides_cause_anything_but_a_spec_or_a_spec_error(overrides):
    check(lambda: pipeline_from_mapping({"name": "a", "train": {"engine": "mxnet"}}, Path.cwd(), overrides))


@given(st.lists(st.text(max_size=30), max_size=3))
def test_no_arguments_cause_anything_but_overrides_or_a_spec_error(arguments):
    problems = list_problems(lambda: parse_overrides(arguments))

    assert all(str(problem).startswith("--set ") for problem in problems)


@given(st.text(max_size=80))
def test_documents_are_plain_json(text):
    try:
        document = parse_document(decode_spec(text.encode(errors="surrogatepass"), "f"))
    except SpecError:
        return
    json.dumps(document.value, allow_nan=False)


@given(st.integers(1, 10_000), st.integers(1, 512))
def test_advised_batch_sizes_are_valid_and_nearest(batch_size, workers):
    """K22."""
    mistake = check_batch_size("dist_sync", batch_size, workers)
    if mistake is None:
        assert batch_size % workers == 0
        return
    advised = [int(word) for word in mistake.remedy.removeprefix("Nearest: ").rstrip(".").split(" or ")]
    assert all(check_batch_size("dist_sync", size, workers) is None for size in advised)
    assert all(abs(size - batch_size) < workers for size in advised)


def check(load):
    """Call `load`; it may only return a pipeline or raise a `SpecError` whose problems read as single lines."""
    for problem in list_problems(load):
        assert "\n" not in str(problem)
        assert problem.message.endswith(".")
        assert len(str(problem)) < 1000


def list_problems(load):
    try:
        load()
    except SpecError as error:
        return [*error.problems] or pytest.fail("a SpecError without a problem")
    return []
