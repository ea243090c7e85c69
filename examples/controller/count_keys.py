"""A whole controller: it annotates ConfigMaps labelled `count=keys` with the number of keys."""

from typing import NamedTuple

from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, map_at
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.runtime import (
    DONE,
    Application,
    Cache,
    Outcome,
    ProcessOptions,
    Watch,
    changed,
    configure,
    controller_unit,
    run,
)

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
ANNOTATION = "example.org/keys"


class Seen(NamedTuple):
    """The cached facts about a ConfigMap."""

    keys: int
    counted: str | None


def keep(obj: JsonObject) -> Seen:
    """Reduce a ConfigMap to what the controller needs."""
    return Seen(len(map_at(obj, "data")), annotations_of(obj).get(ANNOTATION))


async def serve(config: ClusterConfig, options: ProcessOptions) -> None:
    """Run the controller until cancelled."""
    async with Client.connect(config) as client:
        app = Application(client, options)
        config_maps = Cache(client, CONFIG_MAP, keep, labels="count=keys")
        writer = app.guarded(client)

        async def reconcile(key: Key) -> Outcome:
            seen = config_maps.get(key)
            if seen is not None and seen.counted != str(seen.keys):
                annotations = {ANNOTATION: str(seen.keys)}
                await writer.patch(CONFIG_MAP, key, {"metadata": {"annotations": annotations}})
            return DONE

        unit = controller_unit(
            "count-keys",
            reconcile,
            watches=[Watch(config_maps, when=changed)],
            workers=2,
            metrics=app.metrics,
        )
        await app.serve(leading=[unit])


if __name__ == "__main__":
    configure(format="text")
    run(lambda: serve(load(), ProcessOptions()))
