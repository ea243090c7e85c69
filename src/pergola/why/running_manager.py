"""The configuration of the resource manager whose webhooks a cluster registers."""

from collections.abc import Iterable, Iterator
from typing import Final

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.api.resource_manager_config import (
    KIND,
    ConfigurationInvalid,
    ResourceManagerConfiguration,
    configuration_from,
)
from pergola.kube.yaml import YamlError, parse
from pergola.why.reading import Reader

_NAME: Final = "gardener-resource-manager"


async def configuration(
    hooks: Iterable[JsonObject], reader: Reader
) -> ResourceManagerConfiguration | None:
    """Return the configuration of the Deployment behind registered webhooks; None if unknown."""
    for namespace in dict.fromkeys(_namespaces(hooks)):
        deployment = await reader.find(DEPLOYMENT, Key(namespace, _NAME)) or {}
        for volume in maps_at(deployment, "spec", "template", "spec", "volumes"):
            if name := map_at(volume, "configMap").get("name"):
                files = await reader.find(CONFIG_MAP, Key(namespace, str(name))) or {}
                if (found := _of(files)) is not None:
                    return found
    return None


def _namespaces(hooks: Iterable[JsonObject]) -> Iterator[str]:
    for hook in hooks:
        if namespace := map_at(hook, "clientConfig", "service").get("namespace"):
            yield str(namespace)


def _of(config_map: JsonObject) -> ResourceManagerConfiguration | None:
    for text in map_at(config_map, "data").values():
        try:
            value = parse(str(text))
            if isinstance(value, dict) and value.get("kind") == KIND:
                return configuration_from(value).config
        except (YamlError, ConfigurationInvalid):
            continue
    return None
