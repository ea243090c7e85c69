"""Nodes, their Machines, and the certificates that kubelets and node agents request."""

import base64
from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from conformance.places.checks.setting import as_user
from conformance.places.place import PATIENCE, Site
from pergola.api.kinds import CSR, MACHINE
from pergola.api.objects import JsonObject, Key, maps_at
from pergola.kube.transport import Transport
from pergola.manifests import manifest
from pergola.testing.waiting import until

KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
CLIENT: Final = "kubernetes.io/kube-apiserver-client"
AGENTS: Final = "gardener.cloud:node-agents"
_AGENT: Final = "gardener.cloud:node-agent:machine:"
_KUBELETS: Final = "system:nodes"


class Requester(NamedTuple):
    """A user that requests a certificate, and its group."""

    user: str
    group: str

    async def send(
        self, site: Site, method: str, path: str, body: JsonObject | None = None
    ) -> None:
        """Send a request to the target, without discovery, which node agents may not use.

        Raises:
            ApiError: it is refused.
        """
        transport = Transport(as_user(site.target, self.user, self.group))
        try:
            await transport.request(method, path, body=orjson.dumps(body) if body else None)
        finally:
            await transport.close()


def kubelet(name: str) -> Requester:
    """Return the kubelet of a Node."""
    return Requester(f"system:node:{name}", _KUBELETS)


def agent(name: str) -> Requester:
    """Return the node agent of a Machine or Node."""
    return Requester(f"{_AGENT}{name}", AGENTS)


async def add_node(site: Site, name: str) -> None:
    """Create a Node that reports itself ready, and its Machine if the place has Machines."""
    node = manifest(
        "v1",
        "Node",
        name,
        spec={"taints": [{"key": "only-for-certificates", "effect": "NoSchedule"}]},
        status={
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "Hostname", "address": name}],
        },
    )
    await site.target.client.create(node)
    if site.place.has_target:
        machine = manifest(
            MACHINE.api_version,
            MACHINE.kind,
            name,
            namespace=site.place.namespace,
            labels={"node": name},
            spec={"class": {"kind": "MachineClass", "name": "places"}},
        )
        await site.source.client.create(machine)


async def request(
    site: Site, name: str, signer: str, requester: Requester, dns_names: Sequence[str] = ()
) -> str:
    """Request a certificate; return `Approved` or `Denied`, once that is decided."""
    usage = "server auth" if signer == KUBELET_SERVING else "client auth"
    spec: JsonObject = {
        "request": base64.b64encode(_pem(requester, dns_names)).decode(),
        "signerName": signer,
        "usages": ["digital signature", usage],
    }
    csr = manifest(CSR.api_version, CSR.kind, name, spec=spec)
    await requester.send(site, "POST", f"/apis/{CSR.api_version}/certificatesigningrequests", csr)
    found = await until(
        site.target.client, CSR, Key("", name), lambda csr: bool(_decisions(csr)), patience=PATIENCE
    )
    return str(_decisions(found)[0]["type"])


def _decisions(csr: JsonObject) -> list[JsonObject]:
    return maps_at(csr, "status", "conditions")


def _pem(requester: Requester, dns_names: Sequence[str]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, requester.group),
            x509.NameAttribute(NameOID.COMMON_NAME, requester.user),
        ]
    )
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if dns_names:
        names = x509.SubjectAlternativeName([x509.DNSName(name) for name in dns_names])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
