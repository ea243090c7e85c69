"""The approver of kubelets' certificates, with a real API server and signer: spec 11 §3.1."""

import base64
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pergola.api.kinds import CSR, MACHINE, NODE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, uid_of
from pergola.api.resource_manager_config import configuration_from
from pergola.kube.client import Client
from pergola.kube.errors import ApiError
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.controllers.csr_approver.controller import API_CLIENT
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.unit import Unit
from pergola.testing.waiting import running, settled, until
from tests.support.certificate_requests import request_pem
from tests.support.certificate_site import (
    KEY,
    OwnRequests,
    Site,
    as_user,
    certificate_site,
    conditions,
)
from tests.support.documented.symptoms import symptom
from tests.support.service_accounts import until_allowed

EXAMPLE = Path(__file__).parents[3] / "examples" / "csr-approver"


@pytest.fixture
async def site(kubeconfig: Path, cluster_client: Client, namespace: str) -> AsyncIterator[Site]:
    """Yield a site without Node and Machine."""
    async with certificate_site(load(kubeconfig), cluster_client, namespace) as site:
        yield site


# The lines of spec 11 §3.3


async def test_a_kubelet_that_satisfies_all_rules_gets_its_certificate(
    site: Site,
) -> None:
    await site.add_node(
        ("Hostname", site.name),
        ("Hostname", "foo.alias"),
        ("InternalDNS", "foo.internal"),
        ("ExternalDNS", "foo.example.org"),
        ("InternalIP", "10.0.0.1"),
        ("InternalIP", "2080:1000:1000:8ff0:0:0:0:0"),
        ("ExternalIP", "192.0.2.1"),
    )
    await site.add_machine()
    names = [site.name, "foo.alias", "foo.internal", "foo.example.org"]
    addresses = ["192.0.2.1", "10.0.0.1", "2080:1000:1000:8ff0::"]
    async with running(unit := site.unit()):
        key = await site.ask(dns_names=names, ip_addresses=addresses)
        assert await site.decision(key) == (
            "Approved",
            "RequestApproved",
            "Approving kubelet server certificate CSR (all checks passed)",
        )
        issued = await until(site.client, CSR, key, lambda c: bool(c["status"].get("certificate")))
        await settled(unit, site.client)
    assert site.recorder.taken() == [f"update/approval CertificateSigningRequest {key}"]
    (certificate,) = x509.load_pem_x509_certificates(
        base64.b64decode(issued["status"]["certificate"])
    )
    assert certificate.public_key() == KEY.public_key()
    (common_name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert common_name.value == site.user
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert found.get_values_for_type(x509.DNSName) == names
    assert found.get_values_for_type(x509.IPAddress) == [ip_address(a) for a in addresses]
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.SERVER_AUTH]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"user": "somebody"}, 'username "somebody" is not prefixed with "system:node:"'),
        (
            {"dns_names": [], "ip_addresses": []},
            "no DNS names or IP addresses in the SANs found",
        ),
        ({"common_name": "system:node:bar"}, "common name in CSR does not match username"),
        ({"organizations": []}, "organization in CSR does not match nodes group"),
        (
            {"organizations": ["system:nodes", "others"]},
            "organization in CSR does not match nodes group",
        ),
        ({"organizations": ["others"]}, "organization in CSR does not match nodes group"),
        ({"dns_names": ["other"]}, "DNS names in CSR do not match addresses of type"),
        ({"ip_addresses": ["10.0.0.2"]}, "IP addresses in CSR do not match addresses of type"),
    ],
)
async def test_a_kubelet_that_violates_a_rule_is_denied(
    site: Site, change: dict[str, Any], reason: str
) -> None:
    await site.add_node(("Hostname", site.name), ("InternalIP", "10.0.0.1"))
    await site.add_machine()
    desired: dict[str, Any] = {"dns_names": [site.name], "ip_addresses": ["10.0.0.1"]}
    async with running(site.unit()):
        message = await site.denial(await site.ask(**(desired | change)))
    assert message.startswith(f"Denying kubelet server certificate CSR ({reason}")
    assert message.endswith(")")


async def test_a_kubelet_without_a_node_is_denied_with_the_name_of_the_node(site: Site) -> None:
    await site.add_machine()
    async with running(site.unit()):
        message = await site.denial(await site.ask(dns_names=[site.name]))
    assert f'(could not find node object with name "{site.name}")' in message


@pytest.mark.parametrize("count", [0, 2])
async def test_a_kubelet_without_exactly_one_machine_is_denied(site: Site, count: int) -> None:
    await site.add_node(("Hostname", site.name))
    for number in range(count):
        await site.add_machine(f"{site.name}-{number}")
    await site.add_machine("other", node="other")
    async with running(site.unit()):
        message = await site.denial(await site.ask(dns_names=[site.name]))
    assert (
        f'(Expected exactly one machine in namespace "{site.namespace}"'
        f' for node "{site.name}" but found {count})'
    ) in message


@pytest.mark.parametrize("namespace_of_machines", [True, False])
async def test_a_kubelet_that_claims_the_addresses_of_another_node_is_denied(
    site: Site, *, namespace_of_machines: bool
) -> None:
    victim = f"{site.name}-victim"
    await site.add_node(("Hostname", victim), ("InternalIP", "10.0.0.1"), name=victim)
    await site.add_machine(f"{victim}-m", victim)
    # Every kubelet may write the status of its own Node.
    await site.add_node(("Hostname", victim), ("InternalIP", "10.0.0.1"))
    await site.add_machine()
    settings = {} if namespace_of_machines else {"machine_namespace": None}
    async with running(site.unit(**settings)):
        message = await site.denial(await site.ask(dns_names=[victim], ip_addresses=["10.0.0.1"]))
    assert f'("10.0.0.1" in CSR is also a name or address of node "{victim}")' in message


async def test_an_address_that_the_cloud_reports_for_the_machine_is_approved(site: Site) -> None:
    thief = f"{site.name}-thief"
    await site.add_node(("Hostname", thief), ("InternalIP", "10.0.0.1"), name=thief)
    await site.add_node(("Hostname", site.name), ("InternalIP", "10.0.0.1"))
    await site.add_machine("", None, "10.0.0.1")
    async with running(site.unit()):
        key = await site.ask(dns_names=[site.name], ip_addresses=["10.0.0.1"])
        assert (await site.decision(key))[0] == "Approved"


@pytest.mark.parametrize("kind", ["Approved", "Denied"])
async def test_a_decided_request_causes_no_read_or_write(site: Site, kind: str) -> None:
    key = await site.ask(dns_names=["anything"])
    csr = await site.client.get(CSR, key)
    csr["status"] = {"conditions": [{"type": kind, "status": "True", "reason": "ByHand"}]}
    decided = await site.client.update(csr, subresource="approval")
    async with running(unit := site.unit()):
        await settled(unit, site.client)
        await site.client.patch(CSR, key, {"metadata": {"labels": {"touched": "yes"}}})
        await settled(unit, site.client)
    assert (site.recorder.reads, site.recorder.taken()) == (0, [])
    after = await site.client.get(CSR, key)
    assert [c["reason"] for c in conditions(after)][:1] == ["ByHand"]
    assert after["spec"] == decided["spec"]


async def test_an_unrelated_client_certificate_is_left_alone(site: Site) -> None:
    key = await site.ask(API_CLIENT, common_name="somebody", organizations=["people"])
    kubelet = await site.ask(API_CLIENT, common_name=site.user)
    async with running(unit := site.unit()):
        await settled(unit, site.client)
        await site.client.patch(CSR, key, {"metadata": {"labels": {"touched": "yes"}}})
        await settled(unit, site.client)
    assert site.recorder.taken() == []
    assert await site.is_untouched(key)
    assert await site.is_untouched(kubelet)


class Ailing(OwnRequests):
    """Live lookups that fail at first, during which nothing may be written."""

    kind = ""
    failures = 4

    def _read(self, gvk: GroupVersionKind) -> None:
        super()._read(gvk)
        if gvk.kind == self.kind and self.failures:
            self.failures -= 1
            assert self.taken() == []
            raise ApiError(500, {"message": "the server has a bad day"})


@pytest.mark.parametrize("kind", ["Node", "Machine"])
async def test_a_failing_lookup_causes_no_decision_and_is_retried(site: Site, kind: str) -> None:
    if kind == "Machine":
        await site.add_node(("Hostname", site.name))
    async with Ailing.connect(site.config) as ailing:
        ailing.label, ailing.kind = site.recorder.label, kind
        site.recorder = ailing
        async with running(site.unit()):
            await site.denial(await site.ask(dns_names=[site.name]))
        assert ailing.failures == 0


async def test_without_a_machine_namespace_no_machine_is_needed(site: Site) -> None:
    await site.add_node(("Hostname", site.name))
    async with running(site.unit(machine_namespace=None)):
        kind, _, _ = await site.decision(await site.ask(dns_names=[site.name]))
    assert kind == "Approved"


async def test_only_one_condition_is_ever_written(site: Site) -> None:
    await site.add_node(("Hostname", site.name))
    await site.add_machine()
    key = await site.ask(dns_names=[site.name])
    before = await site.client.get(CSR, key)
    failed = {"type": "Failed", "status": "True", "reason": "ByHand", "message": "so"}
    before = await site.client.update(
        {**before, "status": {"conditions": [failed]}}, subresource="status"
    )
    foreign = [await site.ask("example.org/signer", pem=request_pem(KEY, site.user))]
    foreign.append(
        await site.ask("kubernetes.io/kube-apiserver-client-kubelet", dns_names=[site.name])
    )
    async with running(unit := site.unit()):
        after = await until(site.client, CSR, key, lambda c: len(conditions(c)) == 2)
        await settled(unit, site.client)
    kinds = [condition["type"] for condition in conditions(after)]
    assert kinds == ["Failed", "Approved"]
    assert conditions(after)[0] == conditions(before)[0]
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert site.recorder.taken() == [f"update/approval CertificateSigningRequest {key}"]
    for other in foreign:
        assert await site.is_untouched(other)


# Denials are final, so they wait for late objects


def patient(site: Site) -> Unit:
    """Return an approver that denies after an hour, and considers new requests ten minutes old.

    Without an event, its next attempt would be ten minutes away.
    """
    clock = FakeClock(datetime.now(UTC) + timedelta(minutes=10))
    return site.unit(clock, patience=timedelta(hours=1))


def decisions(site: Site) -> list[str]:
    """Return the writes so far, except for Events."""
    return [write for write in site.recorder.taken() if not write.startswith("create Event")]


async def test_a_pending_denial_becomes_an_approval_when_addresses_appear(site: Site) -> None:
    await site.add_machine()
    async with running(unit := patient(site)):
        key = await site.ask(dns_names=[site.name], ip_addresses=["10.0.0.1"])
        await settled(unit, site.client)
        await site.add_node(("Hostname", site.name))
        await settled(unit, site.client)
        assert decisions(site) == []
        addresses = [
            {"type": "Hostname", "address": site.name},
            {"type": "InternalIP", "address": "10.0.0.1"},
        ]
        await site.client.patch(
            NODE, Key("", site.name), {"status": {"addresses": addresses}}, subresource="status"
        )
        kind, _, _ = await site.decision(key)
    assert kind == "Approved"


async def test_a_pending_denial_becomes_an_approval_when_the_machine_is_labelled(
    site: Site,
) -> None:
    await site.add_node(("Hostname", site.name))
    await site.add_machine(node="")
    async with running(unit := patient(site)):
        key = await site.ask(dns_names=[site.name])
        await settled(unit, site.client)
        assert decisions(site) == []
        label = {"metadata": {"labels": {"node": site.name}}}
        await site.client.patch(MACHINE, Key(site.namespace, site.name), label)
        kind, _, _ = await site.decision(key)
    assert kind == "Approved"


async def test_a_restart_grants_no_second_grace_period(site: Site) -> None:
    key = await site.ask(dns_names=[site.name])
    created = datetime.fromisoformat(
        (await site.client.get(CSR, key))["metadata"]["creationTimestamp"]
    )
    patience = timedelta(seconds=30)
    async with running(unit := site.unit(FakeClock(created), patience=patience)):
        await settled(unit, site.client)
    assert decisions(site) == []
    later = FakeClock(created + patience)
    async with running(site.unit(later, patience=patience)):
        assert "could not find node object" in await site.denial(key)


async def test_a_final_violation_is_denied_at_once(site: Site) -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running(site.unit(clock, patience=timedelta(hours=1))):
        message = await site.denial(await site.ask(organizations=["others"], dns_names=["a"]))
    assert "organization in CSR" in message


class Blind(OwnRequests):
    """Caches that never contain a Node or Machine."""

    def stream(
        self, path: str, query: dict[str, str], *, accept: str, silence: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        if path.endswith(("/nodes", "/machines")):
            query = query | {"labelSelector": "nobody=here"}
        return super().stream(path, query, accept=accept, silence=silence)


async def test_live_state_is_read_before_a_denial(site: Site) -> None:
    await site.add_node(("Hostname", site.name))
    await site.add_machine()
    async with Blind.connect(site.config) as blind:
        blind.label = site.recorder.label
        site.recorder = blind
        async with running(site.unit()):
            kind, _, _ = await site.decision(await site.ask(dns_names=[site.name]))
    assert kind == "Approved"


async def test_an_ambiguous_request_is_denied_once(site: Site) -> None:
    pem = b"some text\n" + request_pem(KEY, site.user, ["system:nodes"], [site.name])
    async with running(unit := site.unit()):
        message = await site.denial(await site.ask(pem=pem))
        other = await site.ask(API_CLIENT, pem=pem)
        await settled(unit, site.client)
    assert site.recorder.taken().count(f"update/approval CertificateSigningRequest {other}") == 0
    assert "unable to parse csr: not exactly one PEM block" in message
    assert await site.is_untouched(other)


# Reports to people


async def test_the_reason_of_a_denial_is_an_event_about_the_node(site: Site) -> None:
    node = await site.add_node(("Hostname", site.name))
    await site.add_machine()
    async with running(site.unit()):
        key = await site.ask(dns_names=["other"])
        await site.denial(key)
        event = await site.event(site.name)
    assert (event["type"], event["regarding"]["kind"]) == ("Warning", "Node")
    assert event["regarding"]["uid"] == uid_of(node)
    assert event["reportingController"] == "csr-approver-controller"
    assert event["note"].startswith(f"denied the csr {key.name}: DNS names in CSR do not match")


async def test_a_pending_denial_is_an_event_at_once(site: Site) -> None:
    async with running(patient(site)):
        key = await site.ask(dns_names=["other"])
        event = await site.event(key.name, "CertificateSigningRequestPending")
    assert f'is pending: could not find node object with name "{site.name}"' in event["note"]
    assert "it will be denied 3600s after its creation" in event["note"]
    assert await site.is_untouched(key)


async def test_without_a_node_the_reason_is_an_event_about_the_request(site: Site) -> None:
    async with running(site.unit()):
        key = await site.ask(dns_names=["other"])
        await site.denial(key)
        event = await site.event(key.name)
    assert event["regarding"]["kind"] == "CertificateSigningRequest"
    assert f'could not find node object with name "{site.name}"' in event["note"]


# The example


def example(file: str) -> list[JsonObject]:
    """Return the objects of a file of the example."""
    documents = parse_documents((EXAMPLE / file).read_text())
    return [document.value for document in documents if isinstance(document.value, dict)]


async def test_the_example_does_what_its_readme_says(site: Site) -> None:
    (configuration,) = example("config.yaml")
    config, warnings = configuration_from(configuration)
    assert warnings == []
    assert config.controllers.csr_approver.enabled
    objects = example("node.yaml")
    user = as_user(site.config, "system:node:demo-node")
    async with Client.connect(user) as kubelet, running(site.unit(machine_namespace=None)):
        for obj in objects:
            await site.client.create(site.labelled(obj))
        await until_allowed(kubelet, CSR)
        requests = [await kubelet.create(site.labelled(csr)) for csr in example("requests.yaml")]
        right, wrong = map(Key.of, requests)
        assert (right.name, wrong.name) == ("demo-right", "demo-wrong")
        await until(site.client, CSR, right, lambda c: bool(c["status"].get("certificate")))
        denial = await site.denial(wrong)
        assert re.search(symptom("The certificate of a kubelet is denied"), denial)
        event = await site.event("demo-node")
    assert event["note"].startswith("denied the csr demo-wrong: IP addresses in CSR")
    for obj in objects:
        await site.client.delete(GroupVersionKind.of(obj), Key.of(obj))
