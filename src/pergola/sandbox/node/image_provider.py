"""The component that imports the images of pods into a node, by the names that pods use.

Pods never pull (`manifests/image-policy.yaml`). When one is created, its images are looked up in
the catalogue by repository, ignoring tags, and imported under the name in the pod. An Event of the
pod reports images that are not available. Run as
`python -m pergola.sandbox.node.image_provider DIRECTORY KUBECONFIG`.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

from pergola.api.kinds import POD
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, maps_at
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.controlling.unit import Controller
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.logging import configure, get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.event_loop import run
from pergola.runtime.process.signals import work_until_signalled
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.images.catalogue import resolve
from pergola.sandbox.images.offer import Offer
from pergola.sandbox.node.image_import import import_as

log = get_logger("image-provider")

_NAME: Final = "image-provider"
_PROVIDED: Final = "sandbox.pergola.dev/images-provided"
_CHECK_AGAIN: Final = 5.0  # seconds: commands that build images do not trigger events


class ImageProvider:
    """A reconciler that provides images for the pods of one node.

    Args:
        directory: the sandbox's directory.
        pods: the pods of the whole cluster.
    """

    def __init__(
        self, client: Client, directory: Path, pods: Cache[JsonObject], events: Recorder
    ) -> None:
        self._client = client
        self._directory = directory
        self._pods = pods
        self._events = events
        self._provided: dict[str, asyncio.Task[None]] = {}

    async def reconcile(self, key: Key) -> Outcome:
        """Import the pod's missing images, and notify the kubelet."""
        pod = self._pods.get(key)
        if pod is None:
            return DONE
        problems = [p for image in sorted(images_of(pod)) if (p := await self._provide(image))]
        for problem in problems:
            self._events.warning(Regarding.of(pod), "ImageNotProvided", problem)
        if problems:
            return Again(_CHECK_AGAIN)
        if _waits(pod) and _PROVIDED not in annotations_of(pod):
            await self._nudge(key)
        return DONE

    async def _provide(self, image: str) -> str:
        """Import an image, and return the problem, or an empty text."""
        offer = resolve(image)
        if offer is None:
            return f'this sandbox has no image "{image}"; `pergola sandbox images` lists all images'
        if not offer.is_built():
            return f'"{image}" is not built: run `pergola sandbox images build {offer.name}`'
        try:
            await self._import_once(image, offer)
        except SandboxError as error:
            return str(error)
        return ""

    async def _import_once(self, image: str, offer: Offer) -> None:
        task = self._provided.get(image)
        if task is None:
            task = asyncio.create_task(import_as(self._directory, image, offer))
            self._provided[image] = task
        try:
            await asyncio.shield(task)
        except SandboxError:
            self._provided.pop(image, None)
            raise

    async def _nudge(self, key: Key) -> None:
        """Annotate the pod, so that the kubelet syncs it now instead of seconds later."""
        try:
            await self._client.patch(POD, key, {"metadata": {"annotations": {_PROVIDED: "true"}}})
        except NotFound:
            log.debug("pod is gone", object=str(key))


def images_of(pod: JsonObject) -> set[str]:
    """Return the images of all containers of a pod."""
    kinds = ("initContainers", "containers", "ephemeralContainers")
    return {c["image"] for kind in kinds for c in maps_at(pod, "spec", kind)}


def _waits(pod: JsonObject) -> bool:
    statuses = [
        status
        for kind in ("initContainerStatuses", "containerStatuses")
        for status in maps_at(pod, "status", kind)
    ]
    reasons = {map_at(status, "state", "waiting").get("reason") for status in statuses}
    return "ErrImageNeverPull" in reasons


async def provide(directory: Path, kubeconfig: Path) -> None:
    """Provide images of pods until cancelled."""
    async with Client.connect(load(kubeconfig)) as client:
        pods: Cache[JsonObject] = Cache(client, POD, keep=lambda pod: pod)
        events = Recorder(client, _NAME, action="ProvideImages")
        provider = ImageProvider(client, directory, pods, events)
        watches: list[Watch[Change[JsonObject], Key]] = [Watch(pods)]
        await Controller(
            _NAME,
            provider.reconcile,
            watches=watches,
            metrics=Metrics(),
            workers=4,
            tasks=[events.run],
        ).run()


async def _main() -> None:
    directory, kubeconfig = map(Path, sys.argv[1:])
    configure("info", "json")
    await work_until_signalled(provide(directory, kubeconfig))


if __name__ == "__main__":
    os.umask(0o077)
    run(_main)
