"""What `ganger doctor` says of the slots of this machine (K50: who holds them)."""

import time

import pytest

from training import settings
from training.doctor import check_machine
from training.run.folder import RunFolder
from training.run.lock import this_supervisor
from training.run.slot_table import SlotTable
from training.run.slots import SlotSeeker


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(settings.HOME, str(tmp_path))
    monkeypatch.delenv(settings.TRACKING_URI, raising=False)
    monkeypatch.setenv(settings.SLOTS, "3")
    return tmp_path


def look(home, run_id, wanted):
    folder = RunFolder.of(run_id, home).job("train")
    folder.path.mkdir(parents=True)
    SlotSeeker(folder, this_supervisor(), wanted=wanted, total=3).look()


def check_slots():
    [check] = [check for check in check_machine() if check.name == "slots"]
    return check


def test_it_shows_who_holds_and_who_waits(home):
    assert check_slots().detail == "3 slots for ranks; held by nobody; waiting: nobody"
    look(home, "one", 2)
    look(home, "two", 3)
    since = time.strftime("%H:%M")

    assert check_slots().detail == f"3 slots for ranks; held by one/train (2 slots, since {since}); " + (
        "waiting: two/train (for 3)"
    )


def test_a_damaged_table_is_told_and_left_as_it_is(home):
    look(home, "one", 2)
    path = SlotTable.here(home).path
    path.write_text("{")

    assert "held by one/train (2 slots" in check_slots().detail
    assert f"{path} is damaged" in check_slots().detail
    assert path.read_text() == "{"


def test_a_wrong_number_of_slots_is_told(home, monkeypatch):
    monkeypatch.setenv(settings.SLOTS, "many")

    assert not check_slots().ok
    assert check_slots().detail == "GANGER_SLOTS must be a whole number of at least 1. Received: 'many'."


def test_the_environment_of_mxnet_may_be_absent(home, monkeypatch):
    monkeypatch.setenv("GANGER_ENGINES", str(home / "engines"))
    checks = {check.name: check for check in check_machine()}

    assert checks["mxnet environment"].ok
    assert checks["mxnet environment"].detail == "absent; only for engine mxnet: ganger env build mxnet"
    assert not checks["tensorflow environment"].ok
