"""The target cluster of a gardenlet: its identity, and the Seed of its current gardenlet.

A cluster is identified by the uid of its namespace `kube-system`, whichever kubeconfig is used.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, SECRET
from pergola.api.kinds import NAMESPACE as NAMESPACE_KIND
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    map_at,
    maps_at,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import parse_cluster
from pergola.kube.yaml import YamlError, parse
from pergola.manifests import KUBE_SYSTEM
from pergola.operator.gardenlet.errors import GardenletFailed, GardenletMoved
from pergola.operator.gardenlet.names import (
    CONFIG_FILE,
    CONFIG_VOLUME,
    GARDENLET,
    PROGRAM,
    TARGET,
    kubeconfig_secret,
)
from pergola.operator.virtual_cluster import kubeconfig_in

DEPLOYED: Final = Key(NAMESPACE, PROGRAM)
"""The Deployment of gardenlet."""


class Target(NamedTuple):
    """A target cluster of a gardenlet.

    Attributes:
        identity: The uid of its namespace `kube-system`.
        where: A description of its origin, for messages.
        is_runtime: Whether it is the runtime cluster of the Garden.
    """

    client: Client
    identity: str
    where: str
    is_runtime: bool


@asynccontextmanager
async def open_target(
    gardenlet: JsonObject, runtime: Client, virtual: Client
) -> AsyncGenerator[Target]:
    """Connect to the target of a Gardenlet for the duration of the block.

    Raises:
        GardenletFailed: The Secret with its kubeconfig is missing or empty, or the cluster is
            unreachable.
        KubeError: A cluster refused, or the kubeconfig cannot be used.
    """
    name, own = kubeconfig_secret(gardenlet), await _identity(runtime)
    if not name:
        yield Target(runtime, own, "the runtime cluster", is_runtime=True)
        return
    key = Key(namespace_of(gardenlet), name)
    content = kubeconfig_in(await virtual.find(SECRET, key) or {})
    if not content:
        raise GardenletFailed(
            f"Secret {key}, which spec.kubeconfigSecretRef names, does not exist or has no key "
            '"kubeconfig": create it in the virtual cluster'
        )
    where = f"the cluster of Secret {key}"
    async with Client.connect(parse_cluster(content, f"Secret {key}")) as client:
        try:
            identity = await _identity(client)
        except KubeError as error:
            raise GardenletFailed(
                f"{where} cannot be used: {error}; correct the kubeconfig, or make the cluster "
                "reachable"
            ) from error
        yield Target(client, identity, where, is_runtime=identity == own)


def check_unchanged(gardenlet: JsonObject, target: Target) -> None:
    """Check that a Gardenlet still targets the cluster that it was deployed into before.

    Raises:
        GardenletMoved: It targets another one.
    """
    before = annotations_of(gardenlet).get(TARGET, target.identity)
    if before != target.identity:
        raise GardenletMoved(
            f"Gardenlet {Key.of(gardenlet)} was deployed into the cluster {before}, but now leads "
            f"to {target.where} ({target.identity}): let spec.kubeconfigSecretRef name a Secret "
            f"with a kubeconfig of the former or, to move the Seed, remove the annotation {TARGET}"
        )


async def check_free(gardenlet: JsonObject, target: Target) -> None:
    """Check that no gardenlet of another Seed runs in a cluster.

    Raises:
        GardenletFailed: One does.
        KubeError: The cluster refused, or did not answer.
    """
    found = await seed_of(target.client)
    if found not in ("", name_of(gardenlet)):
        raise GardenletFailed(
            f'{target.where} has the gardenlet of Seed "{found}", so that of Seed '
            f'"{name_of(gardenlet)}" cannot be deployed there: let spec.kubeconfigSecretRef name '
            "another cluster, or remove the Deployment garden/gardenlet"
        )


async def seed_of(client: Client) -> str:
    """Return the Seed of a cluster's gardenlet; empty if it has none.

    Raises:
        KubeError: The cluster refused, or did not answer.
    """
    deployment = await client.find(DEPLOYMENT, DEPLOYED)
    name = config_of(deployment or {})
    found = await client.find(CONFIG_MAP, Key(NAMESPACE, name)) if name else None
    return seed_in(found or {})


def config_of(deployment: JsonObject) -> str:
    """Return the ConfigMap with the configuration of a gardenlet; empty if unknown."""
    volumes = maps_at(deployment, "spec", "template", "spec", "volumes")
    found = next((each for each in volumes if each.get("name") == CONFIG_VOLUME), {})
    return str(map_at(found, "configMap").get("name") or "")


def seed_in(config_map: JsonObject) -> str:
    """Return the Seed in a gardenlet's configuration; empty if unknown."""
    text = str(map_at(config_map, "data").get(CONFIG_FILE) or "")
    try:
        config = parse(text)
    except YamlError:
        return ""
    if not isinstance(config, dict):
        return ""
    return str(map_at(config, "seedConfig", "metadata").get("name") or "")


async def record(gardenlet: JsonObject, target: Target, virtual: Client) -> JsonObject:
    """Record the target in a Gardenlet before anything is deployed; return the result.

    Raises:
        Conflict: The Gardenlet changed since it was read.
        KubeError: The virtual cluster refused, or did not answer.
    """
    if annotations_of(gardenlet).get(TARGET) == target.identity:
        return gardenlet
    metadata = {
        "resourceVersion": resource_version_of(gardenlet),
        "annotations": {TARGET: target.identity},
    }
    return await virtual.patch(GARDENLET, Key.of(gardenlet), {"metadata": metadata})


async def _identity(client: Client) -> str:
    return uid_of(await client.get(NAMESPACE_KIND, Key("", KUBE_SYSTEM)))
