"""The tasks of rotations on Seeds, strictly one after the other (spec 20 §12.2, §17.2).

A Seed has one annotation for operations, so each step waits until the Seeds have finished the
previous one.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from pergola.api.objects import Key
from pergola.flow import Graph, Retry
from pergola.garden.components import task_names
from pergola.garden.components.gardener_apiserver import GARDENER_APISERVER
from pergola.garden.landscape import Landscape
from pergola.operator.rotation.current import (
    ACCOUNT_KEY,
    AUTHORITIES,
    OBSERVABILITY,
    WORKLOAD_KEY,
    began,
    not_preparing,
)
from pergola.operator.rotation.seeds import propagation, requests
from pergola.operator.rotation.seeds.standing import Request
from pergola.operator.rotation.seeds.targets import SEEDS, SELF_HOSTED, Targets
from pergola.operator.run.run import Run

RENEW_ACCESS: Final = "Annotate Seed resources to trigger renewal of their garden access secrets"
ACCESS: Final = "Check if all seeds finished the renewal of their garden access secrets"
RENEW_TOKENS: Final = "Annotate Seed resources to trigger renewal of workload identity tokens"
TOKENS: Final = "Check if all seeds finished the renewal of their workload identity tokens"
RENEW_KUBECONFIGS: Final = (
    "Annotate Seed resources to trigger renewal of their gardenlet kubeconfig"
)
KUBECONFIGS: Final = "Check if all seed gardenlets finished the renewal of their kubeconfig"
RENEW_SELF_HOSTED: Final = (
    "Annotate Gardenlet resources of self-hosted shoots to trigger renewal of their kubeconfig"
)
SELF_HOSTED_KUBECONFIGS: Final = (
    "Check if all shoot gardenlets finished the renewal of their kubeconfig"
)
PROPAGATED: Final = "Wait until global observability secret is propagated to all seed namespaces"
RECONCILE_SEEDS: Final = (
    "Annotate Seed resources to trigger reconciliation after observability credentials rotation"
)

_RETRY: Final = Retry.every(5)
_LIMIT: Final = 600.0

_KUBECONFIG: Final = "gardenlet kubeconfig"


def add_seed_tasks(graph: Graph, run: Run, garden: Key) -> None:
    """Add the tasks to the flow that reconciles a Garden."""
    add = partial(_add_step, graph, run, garden)
    add(
        (RENEW_ACCESS, ACCESS),
        (SEEDS, ACCOUNT_KEY, "renew-garden-access-secrets", "garden access"),
        [task_names.CONNECTION],
    )
    add(
        (RENEW_TOKENS, TOKENS),
        (SEEDS, WORKLOAD_KEY, "renew-workload-identity-tokens", "workload identity"),
        [task_names.CONNECTION, GARDENER_APISERVER.ready, ACCESS],
    )
    kubeconfig = (AUTHORITIES, "renew-kubeconfig", _KUBECONFIG)
    add((RENEW_KUBECONFIGS, KUBECONFIGS), (SEEDS, *kubeconfig), [TOKENS])
    add(
        (RENEW_SELF_HOSTED, SELF_HOSTED_KUBECONFIGS),
        (SELF_HOSTED, *kubeconfig),
        [task_names.CONNECTION],
    )
    _add_observability(graph, run, garden)


def _add_step(
    graph: Graph,
    run: Run,
    garden: Key,
    names: tuple[str, str],
    step: tuple[Targets, str, str, str],
    after: list[str],
) -> None:
    """Add the task that requests an operation, and the one that waits for it.

    Args:
        step: The objects, the rotation, the operation, and what it renews.
    """
    targets, part, operation, secrets = step

    async def annotate() -> None:
        request = Request(operation, began(run.current(), part))
        await requests.annotate(run, garden, targets, request)

    async def wait() -> None:
        request = Request(operation, began(run.current(), part))
        await requests.wait(run, garden, targets, request, secrets)

    skip = skipped(run, part)
    request, finish = names
    graph.add(request, annotate, after=after, skip=skip, retry=_RETRY, timeout=_LIMIT)
    graph.add(finish, wait, after=[request], skip=skip, retry=_RETRY, timeout=_LIMIT)


def _add_observability(graph: Graph, run: Run, garden: Key) -> None:
    async def annotate() -> None:
        request = Request("reconcile", began(run.current(), OBSERVABILITY))
        await requests.annotate(run, garden, SEEDS, request)

    graph.add(
        PROPAGATED,
        partial(propagation.wait, run, garden),
        after=[task_names.REPLICATION],
        skip=lambda: propagation.absent(run.current()),
        retry=_RETRY,
        timeout=_LIMIT,
    )
    graph.add(
        RECONCILE_SEEDS,
        annotate,
        after=[PROPAGATED, KUBECONFIGS],
        skip=skipped(run, OBSERVABILITY),
        retry=_RETRY,
        timeout=_LIMIT,
    )


def skipped(run: Run, part: str) -> Callable[[], str | None]:
    """Return a function that says, once its turn has come, why a rotation task is skipped."""

    def reason() -> str | None:
        landscape: Landscape = run.current()
        return not_preparing(landscape, part)

    return reason
