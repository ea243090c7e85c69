"""The configuration of a resource manager that runs in the cluster."""

from collections.abc import Iterable, Iterator
from typing import Final

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT
from pergola.api.objects import JsonObject, Key, map_at, maps_at, namespace_of
from pergola.api.resource_manager_config import (
    KIND,
    ConfigurationInvalid,
    ResourceManagerConfiguration,
    configuration_from,
)
from pergola.kube.yaml import YamlError, parse
from pergola.why.reading import Reader

_NAME: Final = "gardener-resource-manager"
_GARDEN: Final = "garden"


async def webhook_configuration(
    hooks: Iterable[JsonObject], reader: Reader
) -> ResourceManagerConfiguration | None:
    """Return the configuration of the Deployment behind registered webhooks; None if unknown."""
    for namespace in dict.fromkeys(_namespaces(hooks)):
        deployment = await reader.find(DEPLOYMENT, Key(namespace, _NAME))
        if (found := await _configuration(deployment or {}, reader)) is not None:
            return found
    return None


async def network_policy_configuration(reader: Reader) -> ResourceManagerConfiguration | None:
    """Return the configuration of the Deployment that writes NetworkPolicies; None if unknown.

    In a Seed, each Shoot has a resource manager, too, which does not write them.
    """
    found = await reader.listed(DEPLOYMENT, fields=f"metadata.name={_NAME}")
    for deployment in sorted(found, key=lambda each: namespace_of(each) != _GARDEN):
        configuration = await _configuration(deployment, reader)
        if configuration is not None and configuration.controllers.network_policy.enabled:
            return configuration
    return None


async def _configuration(
    deployment: JsonObject, reader: Reader
) -> ResourceManagerConfiguration | None:
    for volume in maps_at(deployment, "spec", "template", "spec", "volumes"):
        if name := map_at(volume, "configMap").get("name"):
            key = Key(namespace_of(deployment), str(name))
            if (found := _of(await reader.find(CONFIG_MAP, key) or {})) is not None:
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
