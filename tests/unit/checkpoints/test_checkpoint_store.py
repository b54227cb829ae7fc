"""Checkpoints: whole or not there, damaged ones passed over aloud, the newest complete one wins."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from training.checkpoints.store import (
    CheckpointMeta,
    check_fingerprint,
    clear_checkpoints,
    find_newest,
    find_step,
    iter_complete,
    write_checkpoint,
)
from training.checkpoints.tensors import read_tensors, write_tensors
from training.errors import InfrastructureError, SpecError

FINGERPRINT = {"model.params": {"hidden": [8]}, "data": "abc", "train.batch_size": 8}
#: Writes checkpoints for ever, each larger than a pipe holds, and says so.
WRITER = """
import sys
from pathlib import Path
import numpy as np
from training.checkpoints.store import CheckpointMeta, write_checkpoint
for step in range(1, 10**6):
    meta = CheckpointMeta(step=step, epoch=0, fingerprint={})
    write_checkpoint(Path(sys.argv[1]), meta, {"w": np.full(500_000, step, dtype="float32")}, keep=3)
    print(step, flush=True)
"""


@pytest.fixture
def said():
    return []


def write(folder, step, keep=3, **tensors):
    meta = CheckpointMeta(step=step, epoch=step // 10, fingerprint=FINGERPRINT, metrics={"loss": 0.5})
    return write_checkpoint(folder, meta, tensors or {"w": np.full((3, 2), step, dtype=np.float32)}, keep=keep)


def test_what_is_read_is_what_was_written(tmp_path, said):
    tensors = {
        "model.0000": np.arange(6, dtype=np.float32).reshape(2, 3),
        "transposed": np.arange(6, dtype=np.float64).reshape(2, 3).T,
        "scalar": np.array(7, dtype=np.int64),
        "empty": np.zeros((0, 3), dtype=np.float16),
        "flag": np.array([True, False]),
    }
    write(tmp_path, 12, **tensors)

    found = find_newest(tmp_path, said.append)

    assert (found.meta.step, found.meta.epoch, found.meta.metrics) == (12, 1, {"loss": 0.5})
    read = found.read()
    assert read.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(read[name], array, strict=True)
    assert said == []


def test_newest_of_the_kept_ones_wins(tmp_path, said):
    """K37: keep-last-N is honoured."""
    for step in (2, 30, 4, 100):
        write(tmp_path, step, keep=2)
    assert [found.meta.step for found in iter_complete(tmp_path, said.append)] == [100, 30]
    assert find_step(tmp_path, 30, said.append).meta.step == 30
    assert find_step(tmp_path, 2, said.append) is None


def test_no_folder_is_no_checkpoint(tmp_path, said):
    assert find_newest(tmp_path / "absent", said.append) is None


def truncate(path):
    os.truncate(path / "state.safetensors", 40)


def flip_a_bit(path):
    with (path / "state.safetensors").open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        last = stream.read(1)[0]
        stream.seek(-1, os.SEEK_END)
        stream.write(bytes([last ^ 1]))


def lose_tensors(path):
    (path / "state.safetensors").unlink()


def lose_meta(path):
    (path / "meta.json").unlink()


def garble_meta(path):
    (path / "meta.json").write_text('{"step": ')


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (truncate, "has 40 bytes instead of"),
        (flip_a_bit, "does not have the checksum"),
        (lose_tensors, "state.safetensors is missing"),
        (lose_meta, "meta.json is missing or not readable"),
        (garble_meta, "meta.json is missing or not readable"),
    ],
)
def test_damaged_newest_is_passed_over_aloud(tmp_path, said, damage, says):
    """K37."""
    write(tmp_path, 1)
    damage(write(tmp_path, 2).path)

    assert find_newest(tmp_path, said.append).meta.step == 1
    assert len(said) == 1
    assert "step-00000002 is damaged" in said[0]
    assert says in said[0]
    assert said[0].endswith("it is passed over")


def test_same_step_again_replaces_the_damaged_one(tmp_path, said):
    truncate(write(tmp_path, 2).path)
    write(tmp_path, 2)
    assert find_newest(tmp_path, said.append).meta.step == 2
    assert said == []


def test_full_disk_leaves_the_earlier_ones_whole(tmp_path, said):
    """K37: path, needed and free are named. The limit on the size of a file stands for the full disk."""
    write(tmp_path, 1)
    program = (
        "import resource, sys; from pathlib import Path; import numpy as np\n"
        "from training.checkpoints.store import CheckpointMeta, write_checkpoint\n"
        "from training.errors import InfrastructureError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "meta = CheckpointMeta(step=2, epoch=0, fingerprint={})\n"
        "try: write_checkpoint(Path(sys.argv[1]), meta, {'w': np.ones(200_000)}, keep=1)\n"
        "except InfrastructureError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )

    assert "step-00000002 needs more than 1600000 bytes" in run.stdout
    assert "bytes free on its disk" in run.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    np.testing.assert_array_equal(find_newest(tmp_path, said.append).read()["w"], np.ones((3, 2)))


#: Fills the small disk at argv[1] to the last byte with a checkpoint, then writes one that fits.
FILLS_THE_DISK = """
import shutil, sys
from pathlib import Path
import numpy as np
from training.checkpoints.store import CheckpointMeta, find_newest, iter_complete, write_checkpoint
from training.errors import InfrastructureError
folder = Path(sys.argv[1])
def write(step, size):
    meta = CheckpointMeta(step=step, epoch=0, fingerprint={})
    write_checkpoint(folder, meta, {"w": np.full(size, step, dtype="uint8")}, keep=2)
for step in (1, 2):
    write(step, 300_000)
free = shutil.disk_usage(folder).free
try:
    write(3, free)  # the tensors alone fit; the head of the file does not
except InfrastructureError as error:
    print(error)
print(free, sorted(path.name for path in folder.iterdir()))
print([int(found.read()["w"].min()) for found in iter_complete(folder, print)])
write(4, 300_000)
print(find_newest(folder, print).meta.step)
"""


def test_disk_that_fills_up_in_mid_write_leaves_the_earlier_ones_whole(tmp_path):
    """K37: a real disk of 2 MiB, in a mount namespace that vanishes with the process."""
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    mount = 'mount -t tmpfs -o size=2m tmpfs "$1" && exec "$2" -c "$3" "$1"'
    arguments = [str(tmp_path), sys.executable]
    if subprocess.run([*namespace, "sh", "-c", mount, "sh", *arguments, ""], check=False).returncode != 0:
        pytest.skip("needs the right to mount a tmpfs; the test with the limit on the size of a file stands for it")

    run = subprocess.run(
        [*namespace, "sh", "-c", mount, "sh", *arguments, FILLS_THE_DISK],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    error, left, values, newest = run.stdout.splitlines()
    free = int(left.split()[0])
    assert f"step-00000003 needs more than {free} bytes (No space left on device). Received: " in error
    assert error.endswith("bytes free on its disk. What was there before is whole.")
    assert left.endswith("['step-00000001', 'step-00000002']")
    assert (values, newest) == ("[2, 1]", "4")
    assert list(tmp_path.iterdir()) == [], "the small disk was another one than this"


def test_disk_that_is_too_small_is_told_before_writing(tmp_path):
    """K37."""
    huge = np.broadcast_to(np.float32(0), (2**50,))  # takes four bytes in memory, 4 PiB on the disk
    with pytest.raises(InfrastructureError, match=f"needs more than {4 * 2**50} bytes"):
        write(tmp_path, 1, w=huge)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_a_file(tmp_path):
    (tmp_path / "checkpoints").write_text("")
    with pytest.raises(OSError, match="checkpoints") as caught:
        write(tmp_path / "checkpoints", 1)
    assert caught.value.errno in (errno.EEXIST, errno.ENOTDIR)


def test_writer_that_is_killed_leaves_only_whole_ones(tmp_path, said):
    """K37: SIGKILL in mid-write, at several moments."""
    for delay_s in (0.0, 0.003, 0.011):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for line in writer.stdout:
            if int(line) == 4:
                break
        time.sleep(delay_s)
        writer.send_signal(signal.SIGKILL)
        writer.communicate(timeout=30)

        found = list(iter_complete(tmp_path, said.append))
        assert said == []
        assert found[0].meta.step >= 4
        for checkpoint in found:
            assert set(checkpoint.read()["w"]) == {checkpoint.meta.step}
        assert clear_checkpoints(tmp_path) == len(found)
        assert list(tmp_path.iterdir()) == []


def test_clearing_removes_also_what_a_killed_writer_left(tmp_path):
    write(tmp_path, 1)
    (tmp_path / ".new-step-00000002-x1").mkdir()
    (tmp_path / ".old-step-00000001").mkdir()
    assert clear_checkpoints(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []


def remove_by_writing(folder):
    write(folder, 2, keep=1)


@pytest.mark.parametrize("remove", [remove_by_writing, clear_checkpoints])
def test_kill_in_the_midst_of_a_removal_leaves_no_half_checkpoint(tmp_path, said, monkeypatch, remove):
    """K37: the kill comes when the first file of the old checkpoint is gone; the next removal of it starts afresh."""
    write(tmp_path, 1)
    whole = shutil.rmtree

    def kill_half_way(path, ignore_errors):
        for part in [path / "meta.json"] if path.exists() else []:
            part.unlink()
            raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", kill_half_way)
    with pytest.raises(KeyboardInterrupt):
        remove(tmp_path)
    monkeypatch.setattr(shutil, "rmtree", whole)

    assert (tmp_path / ".old-step-00000001" / "state.safetensors").exists(), "the kill came too late or too early"
    assert [found.meta.step for found in iter_complete(tmp_path, said.append)] in ([], [2])
    assert said == []
    write(tmp_path, 1)
    write(tmp_path, 2, keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000002"]


def test_same_training_has_the_same_fingerprint(tmp_path):
    """K36."""
    check_fingerprint(write(tmp_path, 1), FINGERPRINT)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data": "xyz"}, "data was 'abc' and is now 'xyz'"),
        ({"model.params": {"hidden": [16]}}, r"model.params was \{'hidden': \[8\]\} and is now \{'hidden': \[16\]\}"),
        ({"train.seed": 3}, "train.seed was None and is now 3"),
        ({"data": "xyz", "train.batch_size": 9}, "data was .*; train.batch_size was 8 and is now 9"),
    ],
)
def test_other_training_is_refused_with_what_differs(tmp_path, change, says):
    """K36."""
    with pytest.raises(SpecError, match=says):
        check_fingerprint(write(tmp_path, 1), {**FINGERPRINT, **change})


def test_file_of_something_else_is_told(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"\x80\x04K\x01.")  # a pickle
    with pytest.raises(ValueError, match="is no safetensors file"):
        read_tensors(tmp_path / "x.safetensors")


def test_failed_write_keeps_its_error_number(tmp_path):
    """safetensors tells the number in its text only."""
    with pytest.raises(OSError, match="No such file or directory") as caught:
        write_tensors(tmp_path / "absent" / "x.safetensors", {"w": np.ones(2)})
    assert caught.value.errno == errno.ENOENT
