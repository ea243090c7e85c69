"""The authorizer's reads, live for every request.

Nothing is cached: node agents send few requests, and stale data must never allow one.
"""

import asyncio
import base64
import binascii
from typing import Final

from pergola.api.kinds import CSR, MACHINE, NODE, POD, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    labels_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.kube.client import Client
from pergola.kube.yaml import YamlError, parse
from pergola.resource_manager.webhooks.node_agent_authorizer.decide import (
    HOST_NAME_LABEL,
    SECRET_NAME_LABEL,
    SYSTEM,
    Agent,
)

POOL_LABEL: Final = "worker.gardener.cloud/pool"
_CONFIGURATION: Final = "osc.yaml"


class ClusterLookups:
    """Live reads from the API servers.

    Args:
        source: the cluster of the Machines.
        target: the cluster of the Nodes.
        machine_namespace: the namespace of the Machines; empty for node mode.
    """

    def __init__(self, source: Client, target: Client, machine_namespace: str = "") -> None:
        self._source = source
        self._target = target
        self._machines = machine_namespace

    async def agent(self, name: str) -> Agent:
        """Return the agent of a Machine, or in node mode of a Node.

        Raises:
            NotFound: The Machine does not exist.
        """
        node, secret = name, ""
        if self._machines:
            machine = await self._source.get(MACHINE, Key(self._machines, name))
            template = map_at(machine, "spec", "nodeTemplate", "metadata")
            node = labels_of(machine).get("node", "")
            secret = map_at(template, "labels").get(SECRET_NAME_LABEL) or ""
        found = await self._target.find(NODE, Key("", node)) if node else None
        if found is None:
            return Agent(name, secret=secret)
        return Agent(name, node, labels_of(found), secret)

    async def requester(self, signing_request: str) -> str | None:
        """Return the creator of a CertificateSigningRequest, or None if it does not exist."""
        found = await self._target.find(CSR, Key("", signing_request))
        return map_at(found, "spec").get("username") if found else None

    async def node_of_pod(self, pod: Key) -> str | None:
        """Return the name of a pod's node, or None if the pod does not exist."""
        found = await self._target.find(POD, pod)
        return map_at(found, "spec").get("nodeName") if found else None

    async def own_secrets(self, agent: Agent) -> frozenset[str]:
        """Return the names of the Secrets with the agent's configuration, or named by it.

        A Machine's configuration is included even if it does not exist, so that the agent gets a
        404 and can wait for it.
        """
        configurations = await self._configurations(agent)
        host = agent.node_labels.get(HOST_NAME_LABEL)
        names = {name_of(secret) for secret in configurations}
        for secret in configurations:
            names |= await asyncio.to_thread(named_secrets, secret, host)
        return frozenset(names | {agent.secret} - {""})

    async def _configurations(self, agent: Agent) -> list[JsonObject]:
        if self._machines:
            return await self._named(agent.secret)
        if not agent.node:
            # The Node is about to be registered; its pool is not known yet.
            return await self._target.list(SECRET, SYSTEM, labels=POOL_LABEL)
        secrets = await self._named(agent.node_labels.get(SECRET_NAME_LABEL))
        # Nodes may change their own labels: only Secrets created for nodes count.
        return [secret for secret in secrets if POOL_LABEL in labels_of(secret)]

    async def _named(self, name: str | None) -> list[JsonObject]:
        secret = await self._target.find(SECRET, Key(SYSTEM, name)) if name else None
        return [secret] if secret else []


def named_secrets(configuration: JsonObject, host: str | None) -> set[str]:
    """Return the names of the Secrets that a configuration's files refer to.

    Args:
        configuration: the Secret with the OperatingSystemConfig; unreadable content names none.
        host: skip the files of other hosts; None keeps all files.
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
