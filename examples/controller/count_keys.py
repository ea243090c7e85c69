"""Annotate every ConfigMap that has the label `count=keys` with the number of its keys."""

from pergola.api import GroupVersionKind, JsonObject, Key, annotations_of, map_at
from pergola.kube import Client, load
from pergola.runtime import DONE, Application, Cache, Controller, Metrics, Outcome, Watch, run

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
ANNOTATION = "example.org/keys"


def keep(obj: JsonObject) -> tuple[str, str | None]:
    """Return what the cache stores of a ConfigMap: the number of keys, and the annotation."""
    return str(len(map_at(obj, "data"))), annotations_of(obj).get(ANNOTATION)


def count_keys(client: Client, metrics: Metrics) -> Controller:
    """Return the controller."""
    config_maps = Cache(client, CONFIG_MAP, keep, labels="count=keys")

    async def reconcile(key: Key) -> Outcome:
        count, annotation = config_maps.get(key) or (None, None)
        if count != annotation:
            patch = {"metadata": {"annotations": {ANNOTATION: count}}}
            await client.patch(CONFIG_MAP, key, patch)
        return DONE

    return Controller("count-keys", reconcile, watches=[Watch(config_maps)], metrics=metrics)


async def main() -> None:
    """Run the controller, and serve `/healthz`, `/readyz` and `/metrics`, until SIGTERM."""
    async with Client.connect(load()) as client:
        app = Application(client)
        await app.serve(leading=[count_keys(app.guarded(client), app.metrics)])


if __name__ == "__main__":
    run(main)
