"""The source and target cluster of a place, and the node that runs the resource manager."""

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from conformance.places.audit import AuditLog
from conformance.places.place import Place, Side
from pergola.api.objects import JsonObject
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump
from pergola.manifests import manifest
from pergola.pki import Authority, KeyAlgorithm
from pergola.sandbox import Sandbox, start
from pergola.sandbox.directory import remove, root, write
from pergola.sandbox.process_node import (
    OWN_RESOURCE_MANAGER,
    NodeSettings,
    api_server_flags,
    process_node,
)
from pergola.sandbox.process_node.programs import Programs
from pergola.testing.waiting import running

SERVER: Final = "kube-apiserver"
"""The host of a target's API server, for the resource manager."""
_PREFIX: Final = "places-"
_LIFETIME: Final = timedelta(days=1)
# Tokens are requested for Gardener's audience, which its API servers accept.
_AUDIENCES: Final = ("https://kubernetes.default.svc.cluster.local", "gardener")


@dataclass(frozen=True)
class Clusters:
    """The clusters of a place.

    Attributes:
        directory: of the files of the node.
        own: the program that runs as resource manager.
        authority: signs for the target's clients, and for its servers where the original does so.
        sandboxes: one or two: the source, and the target.
        logs: the audit log of each.
    """

    place: Place
    directory: Path
    own: Programs
    authority: Authority
    sandboxes: tuple[Sandbox, ...]
    logs: tuple[AuditLog, ...]

    @property
    def source(self) -> Sandbox:
        """The cluster in which the resource manager runs."""
        return self.sandboxes[0]

    @property
    def target(self) -> Sandbox:
        """The cluster that it serves."""
        return self.sandboxes[-1]

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[tuple[Side, Side]]:
        """Connect to source and target as administrator."""
        source, target = load(self.source.kubeconfig), load(self.target.kubeconfig)
        async with Client.connect(source) as one, Client.connect(target) as other:
            yield Side(one, source), Side(other, target)

    @asynccontextmanager
    async def node(self, client: Client) -> AsyncGenerator[None]:
        """Run the pods of the resource manager until the block ends, and stop them."""
        namespace = self.place.namespace
        await client.apply(manifest("v1", "Namespace", namespace), manager=_PREFIX, force=True)
        if self.place.has_target:
            # As the Service of the API server's pods, which are elsewhere.
            spec = {"type": "ExternalName", "externalName": "127.0.0.1"}
            service = manifest("v1", "Service", SERVER, namespace=namespace, spec=spec)
            await client.apply(service, manager=_PREFIX, force=True)
        settings = NodeSettings(namespace=namespace, own=self.own)
        async with (
            process_node(client, self.source.kubeconfig, self.directory, settings) as node,
            running(node.unit),
        ):
            yield

    def tail(self, lines: int) -> str:
        """Return the end of the newest log of the resource manager's container."""
        folder = self.directory / self.place.namespace
        logs = sorted(folder.glob("*/*.log"), key=lambda log: log.stat().st_mtime)
        if not logs:
            return "it has not written a log"
        return "\n".join(logs[-1].read_text(errors="replace").splitlines()[-lines:])


@asynccontextmanager
async def clusters(place: Place, own: Programs = OWN_RESOURCE_MANAGER) -> AsyncGenerator[Clusters]:
    """Start the clusters of a place, and stop them when the block ends.

    Args:
        own: the program that runs as resource manager.

    Raises:
        SandboxError: one cannot be started.
    """
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root()))
    async with AsyncExitStack() as stack:
        stack.callback(remove, directory)
        authority = await asyncio.to_thread(_authority)
        names = [f"place-{os.getpid()}-{secrets.token_hex(3)}"]
        names += [f"{names[0]}-target"] if place.has_target else []
        logs = [AuditLog(directory, name, place.users) for name in names]
        sandboxes = []
        for name, log in zip(names, logs, strict=True):
            is_target = name == names[-1]
            flags = api_server_flags(directory, by_url=is_target)
            if is_target:
                flags += _target_flags(place, directory, authority)
            sandbox = await start(name, apiserver_flags=(*flags, *log.flags()))
            stack.push_async_callback(sandbox.stop)
            sandboxes.append(sandbox)
        yield Clusters(place, directory, own, authority, tuple(sandboxes), tuple(logs))


def _authority() -> Authority:
    """Create an authority with an RSA key: the original reads no others."""
    now = datetime.now(UTC)
    return Authority.create("places", now, _LIFETIME, algorithm=KeyAlgorithm.RSA_3072)


def _target_flags(place: Place, directory: Path, authority: Authority) -> tuple[str, ...]:
    now = datetime.now(UTC)
    serving = authority.issue_server(SERVER, (SERVER,), now, _LIFETIME)
    trusted = write(directory / "authority.crt", authority.pair.public)
    certificate = write(directory / "server.crt", serving.public)
    key = write(directory / "server.key", serving.private)
    # The administrator and the control plane authenticate by tokens.
    flags = (
        f"--client-ca-file={trusted}",
        f"--tls-sni-cert-key={certificate},{key}:{SERVER}",
        f"--api-audiences={','.join(_AUDIENCES)}",
    )
    if not place.authorizes:
        return flags
    kubeconfig = write(directory / "authorizer.yaml", dump(_authorizer(place, trusted)))
    file = write(directory / "authorizers.yaml", dump(_authorizers(kubeconfig)))
    return *flags, f"--authorization-config={file}"


def _authorizers(kubeconfig: Path) -> JsonObject:
    """Return the authorizers of an API server that asks about node agents, as the original's."""
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": [
            {
                "type": "Webhook",
                "name": "node-agent-authorizer",
                "webhook": {
                    "authorizedTTL": "0s",
                    "unauthorizedTTL": "0s",
                    "timeout": "10s",
                    "failurePolicy": "Deny",
                    "subjectAccessReviewVersion": "v1",
                    "matchConditionSubjectAccessReviewVersion": "v1",
                    "matchConditions": [
                        {"expression": "'gardener.cloud:node-agents' in request.groups"}
                    ],
                    "connectionInfo": {
                        "type": "KubeConfigFile",
                        "kubeConfigFile": str(kubeconfig),
                    },
                },
            },
            {"type": "RBAC", "name": "rbac"},
        ],
    }


def _authorizer(place: Place, authority: Path) -> JsonObject:
    server = f"https://{place.deployment}.{place.namespace}/webhooks/auth/nodeagent"
    cluster = {"server": server, "certificate-authority": str(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "authorizer", "cluster": cluster}],
        "users": [{"name": "authorizer", "user": {}}],
        "contexts": [
            {"name": "authorizer", "context": {"cluster": "authorizer", "user": "authorizer"}}
        ],
        "current-context": "authorizer",
    }
