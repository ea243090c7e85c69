"""Why a MachineDeployment is as it is: its class, its roll-out, and machines that failed."""

from collections.abc import Iterator
from typing import Final

from pergola.api.kinds import MACHINE, MACHINE_DEPLOYMENT
from pergola.api.objects import (
    JsonObject,
    Key,
    deletion_timestamp_of,
    maps_at,
    name_of,
)
from pergola.extensions.workers.deployments import current_replicas
from pergola.extensions.workers.live import Live, class_of
from pergola.extensions.workers.rollout import number, stuck
from pergola.runtime.clock import SystemClock
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.reading import Reader
from pergola.why.workers.controller import controller_problem
from pergola.why.workers.machine import RUNNING, phase_of, state_of
from pergola.why.workers.observed import class_statements, observe, of_worker, roll_out
from pergola.why.workers.words import failures

_SHOWN: Final = 3
_RESTART: Final = (
    "restart machine-controller-manager: kubectl delete pod -n {namespace} "
    "-l role=machine-controller-manager"
)


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return how many machines run, and why the others do not."""
    obj, name = asked.obj, asked.key.name
    live = await observe(reader, asked.key.namespace)
    live = Live({**live.deployments, name: obj}, live.sets, live.machines)
    statements = [*await of_worker(reader, obj), *await class_statements(reader, obj)]
    statements.append(Statement(topic=Topic.DECIDED, text=counted(obj)))
    found = [*troubles(name, live)]
    is_deleting = deletion_timestamp_of(obj) is not None
    if (found or is_deleting) and (
        problem := await controller_problem(reader, asked.key.namespace)
    ):
        statements.append(problem)
    return Part(
        sentence="has machines that do not run" if found else "has all its machines",
        statements=(*statements, *found),
    )


def counted(deployment: JsonObject) -> str:
    """Return how many machines of a MachineDeployment run."""
    desired = current_replicas(deployment)
    return f"{number(deployment, 'readyReplicas')} of {desired} machine(s) run"


def troubles(name: str, live: Live) -> Iterator[Statement]:
    """Yield why machines of a MachineDeployment do not run, or are replaced."""
    deployment = live.deployments[name]
    subject = f"{MACHINE_DEPLOYMENT.kind} {Key.of(deployment)}"
    yield from failures(deployment)
    if stuck(Live({name: deployment}, live.sets), SystemClock().now()):
        yield Statement(
            topic=Topic.PROBLEM,
            subject=subject,
            text=f"machine-controller-manager has made no MachineSet for {class_of(deployment)}",
            advice=_RESTART.format(namespace=Key.of(deployment).namespace),
        )
    yield from roll_out(name, live)
    if number(deployment, "readyReplicas") < current_replicas(deployment):
        yield Statement(topic=Topic.WAITS, subject=subject, text=counted(deployment))
        yield from _machines(name, live)


def _machines(name: str, live: Live) -> Iterator[Statement]:
    """Yield the first Machines that do not run, without those whose failure is known."""
    deployment = live.deployments[name]
    reported = {str(each.get("name")) for each in maps_at(deployment, "status", "failedMachines")}
    waiting = [
        machine
        for machine in live.machines_of(live.sets_of(name))
        if phase_of(machine) != RUNNING and name_of(machine) not in reported
    ]
    for machine in sorted(waiting, key=name_of)[:_SHOWN]:
        yield state_of(machine, f"{MACHINE.kind} {Key.of(machine)}")
