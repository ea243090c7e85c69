"""The health of machines: the condition `EveryNodeReady` (spec 31 §9)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pergola.api.conditions import FALSE, PROGRESSING
from pergola.api.kinds import MACHINE, MACHINE_DEPLOYMENT
from pergola.api.objects import JsonObject, map_at, name_of
from pergola.api.texts import abridged
from pergola.extension_api.errors import Code
from pergola.extensions.health_checks.checks import (
    EVERY_NODE_READY,
    HEALTHY,
    CheckContext,
    HealthCheck,
    Verdict,
)
from pergola.extensions.workers.deployments import current_replicas
from pergola.extensions.workers.live import Live
from pergola.extensions.workers.rollout import failed_machines, number, problem

_RUNNING: Final = "Running"
_NEW: Final = "no state yet"
_SHOWN: Final = 5


def every_node_ready(codes_of: Callable[[str], Sequence[Code]]) -> HealthCheck:
    """Return the check of all machines of a Worker.

    Args:
        codes_of: returns the classes of an error that the cloud reported about a machine.
    """

    async def run(context: CheckContext, _: JsonObject) -> Verdict:
        found = await context.client.list(MACHINE_DEPLOYMENT, context.namespace)
        deployments = {name_of(each): each for each in found}
        verdict = judge(deployments, codes_of)
        if verdict is not None:
            return verdict
        desired = sum(current_replicas(each) for each in found)
        ready = sum(number(each, "readyReplicas") for each in found)
        if ready >= desired:
            return HEALTHY
        machines = await context.client.list(MACHINE, context.namespace)
        waiting = sorted(text for each in machines if (text := _state_of(each)))
        text = f"{ready} of {desired} machines run"
        shown = abridged(waiting, _SHOWN, separator="; ")
        return Verdict(PROGRESSING, f"{text}: {shown}" if waiting else text)

    return HealthCheck(name="Machines", condition=EVERY_NODE_READY, run=run)


def judge(
    deployments: Mapping[str, JsonObject], codes_of: Callable[[str], Sequence[Code]]
) -> Verdict | None:
    """Return the verdict about MachineDeployments by name; None if nothing is wrong with them."""
    if failure := failed_machines(Live(deployments), deployments):
        return Verdict(FALSE, failure, tuple(codes_of(failure)))
    problems = [f"{name} {text}" for name, each in deployments.items() if (text := problem(each))]
    return Verdict(FALSE, "; ".join(problems)) if problems else None


def _state_of(machine: JsonObject) -> str:
    """Return why a Machine does not run; empty if it does."""
    status = map_at(machine, "status")
    phase = str(map_at(status, "currentStatus").get("phase") or "")
    if phase == _RUNNING:
        return ""
    last = str(map_at(status, "lastOperation").get("description") or "").strip()
    text = f"{name_of(machine)} is {phase or _NEW}"
    return f"{text} ({last})" if last else text
