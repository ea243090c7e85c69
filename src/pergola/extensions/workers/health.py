"""The health of machines: the condition `EveryNodeReady` (spec 31 §9)."""

from collections.abc import Callable, Mapping, Sequence

from pergola.api.conditions import FALSE
from pergola.api.kinds import MACHINE_DEPLOYMENT
from pergola.api.objects import JsonObject, name_of
from pergola.extension_api.errors import Code
from pergola.extensions.health_checks.checks import (
    EVERY_NODE_READY,
    HEALTHY,
    CheckContext,
    HealthCheck,
    Verdict,
)
from pergola.extensions.workers.live import Live
from pergola.extensions.workers.rollout import failed_machines, problem


def every_node_ready(codes_of: Callable[[str], Sequence[Code]]) -> HealthCheck:
    """Return the check of all machines of a Worker.

    Machines that are on their way are no problem: gardenlet itself counts and judges nodes.

    Args:
        codes_of: returns the classes of an error that the cloud reported about a machine.
    """

    async def run(context: CheckContext, _: JsonObject) -> Verdict:
        found = await context.client.list(MACHINE_DEPLOYMENT, context.namespace)
        return judge({name_of(each): each for each in found}, codes_of) or HEALTHY

    return HealthCheck(name="Machines", condition=EVERY_NODE_READY, run=run)


def judge(
    deployments: Mapping[str, JsonObject], codes_of: Callable[[str], Sequence[Code]]
) -> Verdict | None:
    """Return the verdict about MachineDeployments by name; None if nothing is wrong with them."""
    if failure := failed_machines(Live(deployments), deployments):
        return Verdict(FALSE, failure, tuple(codes_of(failure)))
    problems = [f"{name} {text}" for name, each in deployments.items() if (text := problem(each))]
    return Verdict(FALSE, "; ".join(problems)) if problems else None
