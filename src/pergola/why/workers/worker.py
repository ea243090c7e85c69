"""Why the machines of a Worker are as they are, pool by pool."""

from collections.abc import Iterator, Mapping, Sequence

from pergola.api.kinds import MACHINE_CLASS, MACHINE_DEPLOYMENT
from pergola.api.objects import (
    JsonObject,
    Key,
    deletion_timestamp_of,
    labels_of,
    maps_at,
    name_of,
)
from pergola.extensions.workers.deployments import POOL_LABEL, current_replicas
from pergola.extensions.workers.live import Live, class_of
from pergola.extensions.workers.rollout import number
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.reading import Reader
from pergola.why.workers.controller import controller_problem, is_hibernated
from pergola.why.workers.deployment import troubles
from pergola.why.workers.observed import class_statements, observe


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return which pools are not ready, and why."""
    namespace = asked.key.namespace
    live = await observe(reader, namespace)
    by_pool = _by_pool(asked.obj, live)
    statements = [*_pools(asked.obj, by_pool)]
    classes = {name_of(each) for each in await reader.listed(MACHINE_CLASS, namespace)}
    for name, deployment in live.deployments.items():
        if class_of(deployment) not in classes:
            about = await class_statements(reader, deployment)
            statements += [each for each in about if each.topic is Topic.PROBLEM]
        statements += troubles(name, live)
    statements += _missing(asked, live)
    is_asleep = await is_hibernated(reader, namespace) and not live.machines
    if not is_asleep and (problem := await controller_problem(reader, namespace)):
        statements.append(problem)
    is_bad = any(each.topic is Topic.PROBLEM for each in statements)
    return Part(
        sentence="has machines that do not run" if is_bad else "", statements=tuple(statements)
    )


def _by_pool(worker: JsonObject, live: Live) -> dict[str, list[JsonObject]]:
    """Return the MachineDeployments of each pool: first those of the Worker, then removed ones."""
    found: dict[str, list[JsonObject]] = {
        str(pool.get("name")): [] for pool in maps_at(worker, "spec", "pools")
    }
    for deployment in live.deployments.values():
        found.setdefault(labels_of(deployment).get(POOL_LABEL, ""), []).append(deployment)
    return found


def _pools(worker: JsonObject, by_pool: Mapping[str, Sequence[JsonObject]]) -> Iterator[Statement]:
    desired = {str(pool.get("name")) for pool in maps_at(worker, "spec", "pools")}
    for pool, deployments in by_pool.items():
        if pool not in desired:
            names = ", ".join(map(name_of, deployments))
            text = f"the Worker no longer has this pool: its machines go ({names})"
            yield Statement(topic=Topic.WAITS, subject=f"worker pool {pool}", text=text)
        elif not deployments and deletion_timestamp_of(worker) is None:
            text = "the extension has made no MachineDeployment for it yet"
            yield Statement(topic=Topic.WAITS, subject=f"worker pool {pool}", text=text)
        elif deployments:
            ready = sum(number(each, "readyReplicas") for each in deployments)
            asked = sum(map(current_replicas, deployments))
            text = f"{ready} of {asked} machine(s) run, in {len(deployments)} zone(s)"
            state = "ready" if ready >= asked else "not ready"
            yield Statement(topic=Topic.DECIDED, text=f"worker pool {pool} is {state}: {text}")


def _missing(asked: Asked, live: Live) -> Iterator[Statement]:
    """Yield MachineDeployments of the status that somebody deleted."""
    if deletion_timestamp_of(asked.obj) is not None:
        return
    for each in maps_at(asked.obj, "status", "machineDeployments"):
        name = str(each.get("name"))
        if name not in live.deployments:
            yield Statement(
                topic=Topic.PROBLEM,
                subject=f"{MACHINE_DEPLOYMENT.kind} {Key(asked.key.namespace, name)}",
                text="it does not exist, although the Worker reports it",
                advice=f"have the extension write it again: kubectl annotate worker "
                f"{asked.key.name} -n {asked.key.namespace} --overwrite "
                "gardener.cloud/operation=reconcile",
            )
