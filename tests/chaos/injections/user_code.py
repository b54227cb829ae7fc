"""Mistakes that the user's model file makes: see `user_files/slow_mlp.py`."""

from __future__ import annotations

from tests.chaos.fault import Fault, Kind
from tests.chaos.injections.injection import Injection


def _ask(what: str, fault: Fault) -> dict[str, str]:
    return {"CHAOS_MISTAKE": f"{what} {fault.rank} {fault.moment.step}"}


USER_CODE: dict[Kind, Injection] = {
    Kind.RANK_EXITS: Injection(render_env=lambda fault: _ask("exits", fault)),
    Kind.RANK_RAISES: Injection(render_env=lambda fault: _ask("raises", fault)),
    Kind.RANK_OUT_OF_MEMORY: Injection(render_env=lambda fault: _ask("out_of_memory", fault)),
    Kind.LOSS_NAN: Injection(render_env=lambda fault: _ask("nan", fault)),
}
