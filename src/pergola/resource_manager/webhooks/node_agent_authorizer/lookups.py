"""What the authorizer has to know of the clusters, asked when a request is judged.

Nothing is cached: a node agent asks seldom, and an answer that is late must not be an allowance.
"""

import base64
import binascii
from typing import Final

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.yaml import YamlError, parse
from pergola.resource_manager.webhooks.node_agent_authorizer.decide import (
    HOST_NAME_LABEL,
    SECRET_NAME_LABEL,
    SYSTEM,
    Agent,
)

MACHINE: Final = GroupVersionKind("machine.sapcloud.io", "v1alpha1", "Machine")
NODE: Final = GroupVersionKind("", "v1", "Node")
POD: Final = GroupVersionKind("", "v1", "Pod")
SECRET: Final = GroupVersionKind("", "v1", "Secret")
SIGNING_REQUEST: Final = GroupVersionKind("certificates.k8s.io", "v1", "CertificateSigningRequest")
POOL_LABEL: Final = "worker.gardener.cloud/pool"
_CONFIGURATION: Final = "osc.yaml"


class ClusterLookups:
    """The look-ups, by live reads.

    Args:
        source: the cluster of the Machines.
        target: the cluster of the nodes.
        machine_namespace: where the Machines are; empty where agents are named by their nodes.
    """

    def __init__(self, source: Client, target: Client, machine_namespace: str = "") -> None:
        self._source = source
        self._target = target
        self._machines = machine_namespace

    async def agent(self, name: str) -> Agent:
        """The agent of a Machine, or of a node.

        Raises:
            NotFound: there is no such Machine.
        """
        node = name
        if self._machines:
            machine = await self._source.get(MACHINE, Key(self._machines, name))
            node = labels_of(machine).get("node", "")
        found = await _optional(self._target, NODE, Key("", node)) if node else None
        return Agent(name, node, labels_of(found) if found is not None else None)

    async def requester(self, signing_request: str) -> str | None:
        """Who made a CertificateSigningRequest; None if there is none."""
        found = await _optional(self._target, SIGNING_REQUEST, Key("", signing_request))
        return map_at(found, "spec").get("username") if found else None

    async def node_of_pod(self, pod: Key) -> str | None:
        """On which node a pod is; None if there is no such pod."""
        found = await _optional(self._target, POD, pod)
        return map_at(found, "spec").get("nodeName") if found else None

    async def own_secrets(self, agent: Agent) -> frozenset[str]:
        """The Secrets with the agent's configuration, and those that it names."""
        configurations = await self._configurations(agent)
        host = (agent.node_labels or {}).get(HOST_NAME_LABEL)
        names = {name_of(secret) for secret in configurations}
        for secret in configurations:
            names |= named_secrets(secret, host)
        return frozenset(names)

    async def _configurations(self, agent: Agent) -> list[JsonObject]:
        if self._machines:
            machine = await self._source.get(MACHINE, Key(self._machines, agent.name))
            template = map_at(machine, "spec", "nodeTemplate", "metadata")
            return await self._named(map_at(template, "labels").get(SECRET_NAME_LABEL))
        if agent.node_labels is None:
            # The node is about to join: which pool it will belong to is not known yet.
            return await self._target.list(SECRET, SYSTEM, labels=POOL_LABEL)
        secrets = await self._named(agent.node_labels.get(SECRET_NAME_LABEL))
        # A node may change its own labels: only what was made for nodes counts.
        return [secret for secret in secrets if POOL_LABEL in labels_of(secret)]

    async def _named(self, name: str | None) -> list[JsonObject]:
        secret = await _optional(self._target, SECRET, Key(SYSTEM, name)) if name else None
        return [secret] if secret else []


def named_secrets(configuration: JsonObject, host: str | None) -> set[str]:
    """The Secrets from which files of a configuration are filled, as far as they are for a host.

    Args:
        configuration: the Secret with the OperatingSystemConfig; unreadable content names none.
        host: the node's host name; None if it is not known, then all files count.
    """
    try:
        text = base64.b64decode(map_at(configuration, "data").get(_CONFIGURATION) or "")
        config = parse(text)
    except (binascii.Error, ValueError, YamlError):
        return set()
    if not isinstance(config, dict):
        return set()
    files = maps_at(config, "spec", "files") + maps_at(config, "status", "extensionFiles")
    names = set()
    for file in files:
        for_other = host is not None and file.get("hostName") not in (None, "", host)
        name = map_at(file, "content", "secretRef").get("name")
        if isinstance(name, str) and name and not for_other:
            names.add(name)
    return names


async def _optional(client: Client, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
    try:
        return await client.get(gvk, key)
    except NotFound:
        return None
