"""Notes of C++ code are left out of what a person reads, and stay in the log of their rank."""

from __future__ import annotations

from pathlib import Path

from training.run.chatter import Chatter
from training.run.folder import JobFolder
from training.run.journal import Journal
from training.run.redact import Redactor
from training.run.streams import Line

#: As TensorFlow 2.18.1 prints them in a server that a chief connects to.
NOTES = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1796252811.825394   25463 grpc_server_lib.cc:464] Started server with target: grpc://127.0.0.1:25402
I0000 00:00:1796252826.807240   25477 eager_service_impl.cc:356] SessionOptions: device_count {
  key: "CPU"
  value: 1
}
intra_op_parallelism_threads: 1
gpu_options {
  experimental {
  }
}
allow_soft_placement: true

""".splitlines()


def test_notes_are_recognised_and_nothing_behind_them() -> None:
    chatter = Chatter()
    assert all(chatter.has(line) for line in NOTES)
    assert not any(chatter.has(line) for line in ("value: 1", "}", "", "stage 0 serves at 127.0.0.1:25402"))


def test_what_interrupts_a_note_is_read() -> None:
    chatter = Chatter()
    lines = [*NOTES[:4], "F0000 00:00:1796252826.9   25477 tensor.cc:1] Check failed: rank", "  value: 1"]
    assert [chatter.has(line) for line in lines] == [True] * 4 + [False] * 2


def test_errors_and_warnings_are_read() -> None:
    assert not Chatter().has("W0000 00:00:1796252826.807240   25477 rpc_client.cc:1] unreachable")
    assert not Chatter().has("E0000 00:00:1796252826.807240   25477 rpc_client.cc:1] unreachable")


def test_the_log_of_a_rank_keeps_them(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    journal = Journal(folder, Redactor({}))
    shown = [journal.line(1, Line(data=line.encode())) for line in [*NOTES, "stage 0 serves"]]
    journal.close()

    assert shown == [None] * len(NOTES) + ["stage 0 serves"]
    assert folder.merged_log.read_text() == "[rank 1] stage 0 serves\n"
    assert folder.rank_log(1).read_text().splitlines() == [*NOTES, "stage 0 serves"]
