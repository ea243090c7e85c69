"""The tasks that rewrite encrypted resources (spec 20 §12.2, §17.3)."""

from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.flow import Graph, Retry
from pergola.garden.components import task_names
from pergola.garden.components.api_server.encryption import key_name
from pergola.garden.components.gardener_apiserver import GARDENER_APISERVER
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.encryption_at_rest import is_served_by_gardener
from pergola.operator.rotation.encryption import marks
from pergola.operator.rotation.encryption.kinds import kinds_of
from pergola.operator.rotation.encryption.rewrite import Rewriter
from pergola.operator.rotation.encryption.situation import (
    Situation,
    desired,
    provider,
    situation,
)
from pergola.operator.run.run import Run
from pergola.runtime.logging import get_logger

log = get_logger("rotation")

LABEL: Final = (
    "Labeling encrypted resources after modification of encryption config or to re-encrypt them "
    "with new ETCD encryption key"
)
SNAPSHOT: Final = (
    "Snapshotting ETCD after modification of encryption config or resources are re-encrypted with "
    "new ETCD encryption key"
)
UNLABEL: Final = (
    "Removing label from re-encrypted resources after modification of encryption config or "
    "rotation of ETCD encryption key"
)

_RETRY: Final = Retry.every(30)
_LIMIT: Final = 600.0


def add_encryption_tasks(graph: Graph, run: Run, garden: Key) -> None:
    """Add the tasks to the flow that reconciles a Garden."""

    def now() -> Situation:
        return situation(run.current().garden)

    def no_snapshot() -> str | None:
        has_backup = run.current().virtual.etcd.main.backup is not None
        return now().no_rewrite() if has_backup else "the Garden has no backup"

    async def label_all() -> None:
        await label(run, now())

    async def unlabel_all() -> None:
        await unlabel(run, garden, now())

    async def take_snapshot() -> None:
        await snapshot(run)

    ready = [task_names.CONNECTION, GARDENER_APISERVER.ready]
    graph.add(
        LABEL,
        label_all,
        after=ready,
        skip=lambda: now().no_rewrite(),
        retry=_RETRY,
        timeout=_LIMIT,
    )
    graph.add(SNAPSHOT, take_snapshot, after=[LABEL], skip=no_snapshot, timeout=_LIMIT)
    graph.add(
        UNLABEL,
        unlabel_all,
        after=[SNAPSHOT, *ready],
        skip=lambda: now().no_unlabelling(),
        retry=_RETRY,
        timeout=_LIMIT,
    )


async def label(run: Run, situation: Situation) -> None:
    """Rewrite the objects of the situation, unless an earlier run has done so.

    Raises:
        NotServed: The virtual cluster does not serve a resource of Gardener.
        NotConnected: The virtual cluster cannot be reached.
        KubeError: A cluster refused, or did not answer.
    """
    landscape = run.current()
    if await marks.is_marked(run.client, landscape, marks.LABELED):
        return
    virtual = await run.virtual.client()
    rewriter = Rewriter(virtual, run.note)
    for resource, gvk in (await kinds_of(virtual, situation.rewrites)).items():
        await rewriter.label(gvk, _key_of(landscape, resource))
    log.info("encrypted resources rewritten", objects=rewriter.count)
    await marks.patch_mark(run.client, landscape, marks.LABELED)


async def snapshot(run: Run) -> None:
    """Take a snapshot, unless an earlier run has taken one since the objects were rewritten.

    Raises:
        SnapshotFailed: There is none; the text says why.
        KubeError: The runtime cluster refused, or did not answer.
    """
    landscape = run.current()
    if not await marks.is_marked(run.client, landscape, marks.SNAPSHOTTED):
        await run.snapshot(landscape, run.virtual.reach)
        await marks.patch_mark(run.client, landscape, marks.SNAPSHOTTED)


async def unlabel(run: Run, garden: Key, situation: Situation) -> None:
    """Remove the label from all objects, and record in the status what is now encrypted.

    Raises as `label` does.
    """
    virtual = await run.virtual.client()
    rewriter = Rewriter(virtual, run.note)
    for gvk in (await kinds_of(virtual, situation.unlabels)).values():
        await rewriter.unlabel(gvk)
    await marks.patch_unmarked(run.client, run.current())
    await run.client.patch(GARDEN, garden, _status(run.current()), subresource="status")


def _status(landscape: Landscape) -> JsonObject:
    """Return the status with the encrypted resources; older clients read its second field."""
    resources = sorted(desired(landscape.garden))
    at_rest = {"resources": resources, "provider": {"type": provider(landscape.garden)}}
    return {
        "status": {
            "credentials": {"encryptionAtRest": at_rest},
            "encryptedResources": resources or None,
        }
    }


def _key_of(landscape: Landscape, resource: str) -> str:
    """Return the name of the Secret with the key that encrypts a resource."""
    kubernetes, gardener = marks.servers(landscape)
    server = gardener if is_served_by_gardener(resource) else kubernetes
    return landscape.credentials.name(key_name(server))
