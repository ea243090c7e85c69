"""The approver of nodes' CertificateSigningRequests."""

import asyncio
import base64
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import ip_address  # noqa: TID251 # the library's type for a request
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.documents import client_of
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.kubernetes import some
from pergola.api.objects import JsonObject, JsonValue
from pergola.resource_manager.controllers.csr_approver.judge import Judge
from pergola.resource_manager.controllers.csr_approver.rules import Approved

_MACHINES: Final = "shoot--a--b"
_AGENT: Final = "gardener.cloud:node-agent:machine:"
_GARDENADM: Final = "gardener.cloud:gardenadm:shoot:"
_KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(32))  # its signatures never differ
_NODES: Final = ("n1", "n2")
_USERS: Final = (
    *("system:node:n1", "system:node:n2", "system:node:", "system:bootstrap:abc", "admin"),
    *(f"{_AGENT}m1", f"{_AGENT}n1", _AGENT, f"{_GARDENADM}a", _GARDENADM),
)
_NAMES: Final = st.sampled_from([*_USERS, "other", ""])
_HOSTS: Final = st.sampled_from(["n1", "n2", "n1.internal", "N1"])
_ADDRESSES: Final = st.sampled_from(["10.0.0.1", "10.0.0.2", "fd00::1", "::ffff:10.0.0.1"])
_ORGANIZATIONS: Final = st.sampled_from(
    [
        ("system:nodes",),
        ("gardener.cloud:node-agents",),
        ("gardener.cloud:system:shoots",),
        (),
        ("system:masters",),
        ("system:nodes", "system:masters"),
        ("system:nodes", "system:nodes"),
    ]
)
_Content = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]
_CONTENT: Final[SearchStrategy[_Content]] = st.tuples(
    _NAMES,
    _ORGANIZATIONS,
    st.lists(_HOSTS, max_size=2, unique=True).map(tuple),
    st.lists(_ADDRESSES, max_size=2, unique=True).map(tuple),
    st.sampled_from([(), (), (), ("a@example.com",), ("https://example.com",)]),
)


@lru_cache(4096)
def _pem(content: _Content) -> str:
    """Return a request with a common name, organizations, DNS names, addresses and other names."""
    name, organizations, hosts, addresses, others = content
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    if name:
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    names += [x509.IPAddress(ip_address(address)) for address in addresses]
    for other in others:
        is_address = "@" in other
        names.append(
            x509.RFC822Name(other) if is_address else x509.UniformResourceIdentifier(other)
        )
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    pem = builder.sign(_KEY, None).public_bytes(Encoding.PEM)
    return base64.b64encode(pem).decode()


def _matching(node: str) -> SearchStrategy[_Content]:
    """Return the content of a kubelet's usual request; most others are refused early."""
    return st.tuples(
        st.just(f"system:node:{node}"),
        st.just(("system:nodes",)),
        st.lists(_HOSTS, min_size=1, max_size=2, unique=True).map(tuple),
        st.lists(_ADDRESSES, max_size=2, unique=True).map(tuple),
        st.just(()),
    )


def _request(signer: str, username: str, request: str, uid: str = "1") -> JsonObject:
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "csr", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "request": request,
            "signerName": signer,
            "username": username,
            "usages": ["digital signature"],
        },
    }


def _requests() -> SearchStrategy[JsonObject]:
    usual = st.sampled_from(_NODES).flatmap(_matching)
    kubelet = st.builds(
        lambda content, user: _request(
            "kubernetes.io/kubelet-serving", user or content[0], _pem(content)
        ),
        usual | _CONTENT,
        st.sampled_from(["", "", "", *_USERS]),
    )
    client = st.builds(
        lambda content, user: _request("kubernetes.io/kube-apiserver-client", user, _pem(content)),
        _CONTENT,
        st.sampled_from(_USERS),
    )
    odd = st.builds(
        _request,
        st.sampled_from(
            [
                "kubernetes.io/kubelet-serving",
                "kubernetes.io/kube-apiserver-client",
                "kubernetes.io/kube-apiserver-client-kubelet",
                "example.com/other",
            ]
        ),
        st.sampled_from(_USERS),
        _CONTENT.map(_pem),
    )
    return st.one_of(kubelet, kubelet, client, client, odd)


_ADDRESS_TYPES: Final = ("Hostname", "InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS")
_NODE: Final = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["Hostname", "InternalDNS", "ExternalDNS"]),
                "address": _HOSTS,
            }
        ),
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["InternalIP", "ExternalIP"]),
                "address": _ADDRESSES | st.just("010.0.0.1"),
            }
        ),
    ),
    max_size=3,
)


def _node(name: str, addresses: list[JsonObject]) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name},
        "status": {"addresses": addresses},
    }


def _machine(name: str, labels: JsonObject) -> JsonObject:
    return {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": _MACHINES, "labels": labels},
    }


_TARGET: Final = st.dictionaries(st.sampled_from(_NODES), _NODE, max_size=2).map(
    lambda found: [_node(name, addresses) for name, addresses in found.items()]
)
_SOURCE: Final = st.dictionaries(
    st.sampled_from(["m1", "m2", "n1"]), some({"node": st.sampled_from(_NODES)}), max_size=2
).map(lambda found: [_machine(name, labels) for name, labels in found.items()])


class SigningRequests:
    """Which requests are approved, denied, or left to others."""

    name = "csr"
    ask = "csr"
    title = "Approval of CertificateSigningRequests"
    of: OracleModule = GARDENER
    code = ("pergola.resource_manager.controllers.csr_approver",)

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return requests with Nodes and Machines."""
        return st.fixed_dictionaries(
            {"request": _requests(), "source": _SOURCE, "target": _TARGET},
            optional={"machineNamespace": st.just(_MACHINES)},
        )

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the decision; an error of the original leaves the request undecided."""
        return {"decision": answer.output.get("decision", "")}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the decisions; the texts give the reasons."""
        decision, why = asyncio.run(_judged(question))
        for each in differences(self.meaning(answer), {"decision": decision}):
            text = answer.output.get("why", str(answer.value))
            yield Difference(each.path, f"{each.theirs} {text}", f"{each.ours} {why}")


async def _judged(question: JsonObject) -> tuple[str, str]:
    source, target = client_of(question["source"]), client_of(question["target"])
    namespace = question.get("machineNamespace")
    judged = await Judge(source, target, namespace).judge(question["request"])
    if judged is None or question["request"]["spec"]["signerName"] not in _SIGNERS:
        return "", ""
    if isinstance(judged.verdict, Approved):
        return "Approved", ""
    return "Denied", judged.verdict.reason


_SIGNERS: Final = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client")
