"""Does random things to real trainings and checks what comes of them.

    python -m tests.chaos [--seed N] [--count N] [--only N,M-O] [--kinds NAME,NAME] [--out FILE]

Each fault is a function of the seed and its number, so `--only 17` repeats one of a drawing. A run takes minutes; see
docs/chaos.md. What is written: the table (`--out`) and one JSON object a fault beside it; the folder of a run whose
checks failed is kept, and said.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.drawing import CARDS, draw_faults
from tests.chaos.expectation import expect
from tests.chaos.fault import Fault, Kind
from tests.chaos.injections.storage import DISKS, can_mount
from tests.chaos.play import Outcome, play, play_undisturbed
from tests.chaos.site import Site
from tests.chaos.table import find_broken_limits, render_summary, render_table
from training.run.orphans import become_subreaper


def main(arguments: Sequence[str]) -> int:
    """Play the faults that are asked for, print and write the table, and return 1 if anything did not hold."""
    options = read_options(arguments)
    faults = choose_faults(options)
    become_subreaper()  # what loses its parent comes here, and is counted
    # A shell's background job is started with SIGINT ignored, and so would be its children, whom Ctrl-C is done to.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    root = Path(tempfile.mkdtemp(prefix="ganger-chaos-"))
    print(f"{len(faults)} faults, seed {options.seed}, in {root}", flush=True)
    site = Site(root)
    try:
        site.undisturbed = play_undisturbed(site)
        outcomes = [_play_one(site, fault, options) for fault in faults]
    finally:
        site.close()
    return _report(outcomes, options.out, root)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=7, help="of the drawing")
    parser.add_argument("--count", type=int, default=sum(CARDS.values()), help="faults that are drawn")
    parser.add_argument("--only", type=parse_numbers, help="numbers of the drawing to play, such as 3,8-12")
    parser.add_argument("--kinds", type=parse_kinds, help="play the first drawn fault of each, such as RANK_KILLED")
    parser.add_argument("--out", type=Path, default=Path(".chaos") / "chaos.md", help="file for the table")
    return parser.parse_args(arguments)


def parse_numbers(text: str) -> set[int]:
    """Return the numbers of a list with ranges.

    >>> sorted(parse_numbers("3,8-10"))
    [3, 8, 9, 10]
    """
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def parse_kinds(text: str) -> list[Kind]:
    """Return the kinds of a list of their names in `Kind`."""
    return [Kind[name.strip().upper()] for name in text.split(",")]


def choose_faults(options: argparse.Namespace) -> list[Fault]:
    """Return the faults to play, in the order of the drawing."""
    drawn = draw_faults(options.seed, options.count)
    if options.kinds:
        firsts = {kind: next(fault for fault in drawn if fault.kind is kind) for kind in options.kinds}
        return sorted(firsts.values(), key=lambda fault: fault.number)
    return [fault for fault in drawn if options.only is None or fault.number in options.only]


def _play_one(site: Site, fault: Fault, options: argparse.Namespace) -> Outcome:
    print(f"{fault.number}: {fault.kind}, rank {fault.rank}, {fault.moment}", flush=True)
    if fault.kind in DISKS and not can_mount():
        why = "left out: a tmpfs cannot be mounted here; be root"
        return Outcome(fault=fault, expectation=expect(fault), left_out=why)
    outcome = play(site, fault)
    for problem in outcome.problems:
        print(f"  DOES NOT HOLD: {problem}", flush=True)
    if outcome.problems:
        print(f"  again: make chaos SEED={options.seed} COUNT={options.count} ONLY={fault.number}", flush=True)
    else:
        print(f"  holds, {outcome.seconds:.0f} s", flush=True)
        shutil.rmtree(site.home / "runs" / outcome.run_id)
    return outcome


def _report(outcomes: list[Outcome], out: Path, root: Path) -> int:
    broken = find_broken_limits(outcomes)
    report = f"{render_table(outcomes)}\n\n{render_summary(outcomes)}\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(report)
    rows = [json.dumps({"name": o.fault.kind.name.lower(), **dataclasses.asdict(o)}) for o in outcomes]
    out.with_suffix(".jsonl").write_text("\n".join(rows) + "\n")
    print(f"\n{report}\n{out.absolute()}")
    for line in broken:
        print(f"DOES NOT HOLD: {line}")
    failed = bool(broken) or any(outcome.problems for outcome in outcomes)
    if failed:
        print(f"The folders of the runs that did not hold are in {root}")
    else:
        shutil.rmtree(root, ignore_errors=True)
    return int(failed)


def _reexecute_as_root_of_a_namespace() -> None:
    """Become root of a user namespace, if that is what it takes to mount a tmpfs."""
    if can_mount() or shutil.which("unshare") is None or os.environ.get("GANGER_CHAOS_UNSHARED"):
        return
    command = ["unshare", "-rm", sys.executable, "-m", "tests.chaos", *sys.argv[1:]]
    if os.spawnvp(os.P_WAIT, "unshare", ["unshare", "-rm", "true"]) == 0:
        os.execvpe("unshare", command, {**os.environ, "GANGER_CHAOS_UNSHARED": "1"})


if __name__ == "__main__":
    _reexecute_as_root_of_a_namespace()
    sys.exit(main(sys.argv[1:]))
