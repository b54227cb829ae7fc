"""How user code on the first rank reaches the MLflow run of its training; no other rank does (ADR 6)."""

from __future__ import annotations

from urllib.parse import urlsplit

from training import settings
from training.plan.job import GangPlan, ProcessPlan, TrackingPlan
from training.plan.machine import MachineFacts

#: Name of the port of the server that stands between user code and a database of MLflow, as `JobPlan.ports` lists it.
RELAY_PORT = "mlflow"
_RELAY_HOST = "127.0.0.1"


def is_relayed(tracking: TrackingPlan) -> bool:
    """Whether a server must be started for user code, since MLflow is none."""
    return urlsplit(tracking.tracking_uri).scheme not in ("http", "https")


def open_mlflow(gang: GangPlan, machine: MachineFacts, tracking: TrackingPlan) -> GangPlan:
    """Return `gang` with a first rank that is told where its MLflow run is, and can reach it."""
    first, *others = gang.processes
    told = {settings.EXPERIMENT_NAME: tracking.experiment}
    if not is_relayed(tracking):
        return gang.model_copy(update={"processes": (_tell(first, told), *others)})
    told[settings.TRACKING_URI] = f"http://{_RELAY_HOST}:{{port:{RELAY_PORT}}}"
    relay = _plan_relay(len(gang.processes), machine.environments["control"].python)
    return GangPlan(processes=(_tell(first, told), *others, relay), ports=(*gang.ports, RELAY_PORT))


def _tell(first: ProcessPlan, told: dict[str, str]) -> ProcessPlan:
    return first.model_copy(update={"env": {**first.env, **told}, "tracks": True})


def _plan_relay(rank: int, python: str) -> ProcessPlan:
    """Return the server for the first rank: engine environments have no drivers of MLflow's databases."""
    module = ("-P", "-m", "training.tracking.relay", _RELAY_HOST, f"{{port:{RELAY_PORT}}}")
    return ProcessPlan(
        rank=rank, role="mlflow", host=_RELAY_HOST, argv=(python, *module), service=True, ready_on="output", tracks=True
    )
