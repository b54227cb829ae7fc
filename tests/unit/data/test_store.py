"""Prepared datasets: made once, whole or not at all, and reused."""

import json
import subprocess
import sys

import numpy as np
import pytest

from training.data.dataset import open_dataset
from training.data.facts import DIGITS_CLASSES, DIGITS_PIXELS, DIGITS_ROWS, read_facts
from training.data.manifest import DatasetManifest, DatasetRef
from training.data.prepare import prepare_data
from training.data.rows import Rows, check_rows, hash_rows
from training.data.sources.digits import DigitsSource
from training.data.store import prepare_dataset, split_rows
from training.errors import InfrastructureError, SpecError
from training.run.rank import RankContext
from training.spec.pipeline import DataSpec

DIGITS = DataSpec(source="digits")


@pytest.fixture
def said():
    return []


def prepare(tmp_path, said, data=DIGITS):
    return prepare_dataset(data, tmp_path, tmp_path / "home", said.append)


def test_second_run_reuses_and_says_so(tmp_path, said):
    first = prepare(tmp_path, said)
    assert not first.reused
    second = prepare(tmp_path, said)
    assert second.reused
    assert second.manifest == first.manifest
    assert any("reusing the prepared dataset" in line for line in said)


def test_split_is_whole_disjoint_and_repeats(tmp_path, said):
    dataset = open_dataset(prepare(tmp_path, said).path)
    assert (len(dataset.x), len(dataset.validation_x)) == (1438, 359)
    both = np.concatenate([dataset.x, dataset.validation_x])
    assert np.array_equal(np.unique(both, axis=0), np.unique(DigitsSource().read().x, axis=0))
    again = prepare_dataset(DIGITS, tmp_path, tmp_path / "elsewhere", said.append)
    assert again.manifest.fingerprint == dataset.manifest.fingerprint
    other = prepare(tmp_path, said, DIGITS.model_copy(update={"seed": 8}))
    assert other.manifest.fingerprint != dataset.manifest.fingerprint


def test_arrays_are_memory_mapped(tmp_path, said):
    dataset = open_dataset(prepare(tmp_path, said).path)
    assert isinstance(dataset.x, np.memmap)
    assert dataset.bytes == 1438 * (64 * 4 + 8)


def test_no_validation_rows_on_request(tmp_path, said):
    prepared = prepare(tmp_path, said, DIGITS.model_copy(update={"validation_fraction": 0.0}))
    dataset = open_dataset(prepared.path)
    assert (len(dataset.x), dataset.validation_x.shape) == (1797, (0, 64))


@pytest.mark.parametrize("damage", ["shorten", "remove", "manifest"])
def test_damaged_dataset_is_made_anew_aloud(tmp_path, said, damage):
    """K28."""
    path = prepare(tmp_path, said).path
    if damage == "manifest":
        (path / "manifest.json").write_text("{")
    elif damage == "remove":
        (path / "train_x.npy").unlink()
    else:
        (path / "train_x.npy").write_bytes((path / "train_x.npy").read_bytes()[:-9])
        with pytest.raises(InfrastructureError, match=r"train_x\.npy has 368247 bytes instead of 368256"):
            open_dataset(path)
    assert not prepare(tmp_path, said).reused
    assert any("is damaged" in line and "made anew" in line for line in said)
    assert len(open_dataset(path).x) == 1438


def test_what_a_killed_writer_left_is_removed(tmp_path, said):
    path = prepare(tmp_path, said).path
    leftover = path.with_name(f".new-{path.name}-abc")
    leftover.mkdir()
    (path / "train_x.npy").unlink()
    prepare(tmp_path, said)
    assert not leftover.exists()


def test_changed_source_is_another_dataset(tmp_path, said):
    data = DataSpec(source="rows.csv", label="y", validation_fraction=0.5)
    (tmp_path / "rows.csv").write_text("a,y\n1,b\n2,a\n")
    first = prepare(tmp_path, said, data)
    assert first.manifest.classes == ("a", "b")
    (tmp_path / "rows.csv").write_text("a,y\n1,b\n3,a\n")
    assert prepare(tmp_path, said, data).path != first.path


FUNCTION = (
    "import pathlib\nimport numpy as np\n"
    "def rows(day=0):\n"
    "    text = (pathlib.Path(__file__).parent / 'table.txt').read_text().split()\n"
    "    return np.array([[float(cell)] for cell in text]), np.array(['a', 'b'] * (len(text) // 2))\n"
)


def test_function_is_called_each_time_and_its_rows_identify_the_dataset(tmp_path, said):
    """A nightly run of a function that reads a growing table trains on the table of that night."""
    (tmp_path / "nightly.py").write_text(FUNCTION)
    (tmp_path / "table.txt").write_text("1 2 3 4")
    data = DataSpec(source="nightly.py:rows", validation_fraction=0.25)
    first = prepare(tmp_path, said, data)
    again = prepare(tmp_path, said, data.model_copy(update={"params": {"day": 1}}))
    assert (again.reused, again.path) == (True, first.path)
    assert "(same rows, same split)" in said[-1]

    (tmp_path / "table.txt").write_text("1 2 3 4 5 6")
    second = prepare(tmp_path, said, data)
    assert not second.reused
    assert (first.manifest.rows, second.manifest.rows) == (3, 4)
    assert len(open_dataset(first.path).x) == 3
    assert not prepare(tmp_path, said, data.model_copy(update={"seed": 8})).reused


@pytest.mark.parametrize(
    "other",
    [
        Rows(x=np.array([[1.0, 2.0], [3.0, 5.0]]), y=np.array([0, 1])),
        Rows(x=np.array([[1.0, 2.0], [3.0, 4.0]]), y=np.array([1, 0])),
        Rows(x=np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), y=np.array([0, 1])),
        Rows(x=np.array([[[1.0], [2.0]], [[3.0], [4.0]]]), y=np.array([0, 1])),
        Rows(x=np.array([[1.0, 2.0], [3.0, 4.0]]), y=np.array([0, 1]), classes=("a", "b")),
    ],
)
def test_hash_of_rows_sees_values_types_shapes_and_classes(other):
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    base = hash_rows(Rows(x=x, y=np.array([0, 1])))
    assert hash_rows(Rows(x=np.asfortranarray(x), y=np.array([0, 1]))) == base
    assert hash_rows(other) != base


def test_only_one_of_several_prepares(tmp_path):
    """K28: each calls the function, one writes, the others wait and reuse."""
    (tmp_path / "slow_rows.py").write_text(
        "import pathlib, time\nimport numpy as np\n"
        "def rows():\n"
        "    with (pathlib.Path(__file__).parent / 'calls').open('a') as f: f.write('x')\n"
        "    time.sleep(0.3)\n"
        "    return np.ones((10, 2)), np.zeros(10)\n"
    )
    program = (
        "import sys; from pathlib import Path; from training.spec.pipeline import DataSpec;"
        "from training.data.store import prepare_dataset; p = Path(sys.argv[1]);"
        "print(prepare_dataset(DataSpec(source='slow_rows.py:rows'), p, p / 'home', lambda line: None).reused)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = sorted(process.communicate(timeout=60)[0].strip() for process in processes)
    assert answers == ["False", "True", "True"]
    assert (tmp_path / "calls").read_text() == "xxx"


def test_full_disk_leaves_nothing(tmp_path):
    """K37: path, needed and free; under a file-size limit, as on a full disk."""
    program = (
        "import resource, signal, sys; from pathlib import Path; from training.spec.pipeline import DataSpec;"
        "from training.data.store import prepare_dataset; from training.errors import InfrastructureError;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "p = Path(sys.argv[1])\n"
        "try: prepare_dataset(DataSpec(source='digits'), p, p / 'home', lambda line: None)\n"
        "except InfrastructureError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert "needs more than" in run.stdout
    assert "bytes free on its disk" in run.stdout
    assert [path.name for path in (tmp_path / "home" / "data").iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            Rows(x=np.array([[1.0], [np.nan]]), y=np.zeros(2)),
            r"x must hold finite numbers. Received: nan in row 1, place \[0\]",
        ),
        (Rows(x=np.ones((2, 1)), y=np.array([1, np.inf])), "y must hold finite numbers. Received: inf in row 1 "),
        (Rows(x=np.ones((3, 1)), y=np.zeros(2)), "equally many rows. Received: 3 and 2"),
        (Rows(x=np.array([["a"], ["b"]]), y=np.zeros(2)), "x must hold numbers. Received: dtype <U1"),
        (Rows(x=np.ones((2, 0)), y=np.zeros(2)), "at least one value a row"),
        (Rows(x=np.float64(3), y=np.zeros(2)), "one entry a row"),
        (Rows(x=np.ones((1, 1)), y=np.zeros(1)), "at least 2 rows. Received: 1"),
    ],
)
def test_rows_that_cannot_be_trained_on(rows, says):
    """K25, K26."""
    with pytest.raises(SpecError, match=says):
        check_rows(rows, "rows.npz")


@pytest.mark.parametrize(("fraction", "says"), [(0.05, "0.05 of 5 rows, which is none"), (0.95, "that is all")])
def test_part_that_would_be_empty(fraction, says):
    """K25."""
    with pytest.raises(SpecError, match=says):
        split_rows(Rows(x=np.ones((5, 1)), y=np.zeros(5)), fraction, 7)


def test_wide_floats_are_narrowed_and_the_rest_stays(tmp_path, said):
    np.savez(tmp_path / "rows.npz", x=np.ones((4, 2)), y=np.arange(4, dtype=np.int32))
    manifest = prepare(tmp_path, said, DataSpec(source="rows.npz", validation_fraction=0.25)).manifest
    assert (manifest.feature_dtype, manifest.label_dtype) == ("float32", "int32")


def test_task_says_where_the_rows_are(tmp_path, capfd):
    payload = {
        "data": DIGITS.model_dump(mode="json"),
        "base_dir": str(tmp_path),
        "home": str(tmp_path / "home"),
        "output": str(tmp_path / "run" / "dataset.json"),
    }
    prepare_data(RankContext(rank=0, world_size=1, payload=payload))
    ref = DatasetRef.read(tmp_path / "run" / "dataset.json")
    assert (ref.rows, ref.validation_rows) == (1438, 359)
    out = capfd.readouterr().out
    assert "1438 training rows and 359 validation rows" in out
    events = [json.loads(line.partition("\x1e")[2]) for line in out.split("\n") if "\x1e" in line]
    assert events[-1]["values"]["fingerprint"] == ref.fingerprint


# --- facts for the plan ---


def test_facts_of_digits_are_true(tmp_path):
    rows = DigitsSource().read()
    assert (len(rows.x), rows.x.shape[1:]) == (DIGITS_ROWS, (DIGITS_PIXELS,))
    assert len(set(rows.y.tolist())) == DIGITS_CLASSES


def test_facts_before_and_after_preparing_agree(tmp_path, said):
    np.savez(tmp_path / "rows.npz", x=np.ones((10, 2, 3), np.float32), y=np.zeros((10, 4)))
    np.savez(tmp_path / "words.npz", x=np.ones((10, 2)), y=np.array(["a", "b"] * 5))
    (tmp_path / "rows.csv").write_text("a,b,y\n" + "\n1,2,0\n" * 10)
    tables = DataSpec(source="rows.csv", label="y")
    for data in (DIGITS, DataSpec(source="rows.npz"), DataSpec(source="words.npz"), tables):
        before = read_facts(data, tmp_path, tmp_path / "home")
        prepare(tmp_path, said, data)
        after = read_facts(data, tmp_path, tmp_path / "home")
        assert after.basis == "the prepared dataset"
        for known in ("rows", "validation_rows", "feature_shape", "label_shape"):
            assert getattr(before, known) == getattr(after, known)
        for at_times_known in ("classes", "label_dtype"):
            assert getattr(before, at_times_known) in (None, getattr(after, at_times_known))


def test_facts_of_a_function_are_unknown_and_it_is_not_called(tmp_path, said):
    (tmp_path / "fact_rows.py").write_text("raise SystemExit('imported')\n")
    prepare(tmp_path, said)  # makes the folder in which prepared rows are looked for
    assert read_facts(DataSpec(source="fact_rows.py:rows"), tmp_path, tmp_path / "home") is None


@pytest.mark.parametrize("missing", ["fail", "drop"])
def test_plan_refuses_a_label_that_is_no_column(tmp_path, missing):
    (tmp_path / "rows.csv").write_text("a,label\n" + "1,0\n" * 10)
    with pytest.raises(SpecError, match=r"data\.label: must be a column of .*'lable'. Did you mean 'label'\?"):
        read_facts(DataSpec(source="rows.csv", label="lable", missing=missing), tmp_path, tmp_path / "home")


def test_facts_need_no_numpy(tmp_path):
    program = (
        "import sys; from pathlib import Path; from training.spec.pipeline import DataSpec;"
        "from training.data.facts import read_facts; p = Path(sys.argv[1]);"
        "assert read_facts(DataSpec(source='digits'), p, p).rows == 1438;"
        "assert not {'numpy', 'sklearn', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)


def test_manifest_round_trip(tmp_path, said):
    prepared = prepare(tmp_path, said)
    assert DatasetManifest.read(prepared.path / "manifest.json") == prepared.manifest
