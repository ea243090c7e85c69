"""Errors in the registration, serving and trust of webhooks."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from pergola.admission.configurations import by_service, by_url, configurations
from pergola.admission.inspection import (
    Finding,
    blocking,
    entries,
    host_of,
    own_needs,
    path_of,
    unlike,
    unserved,
    untrusted,
)
from pergola.admission.registration import Registration, Rule
from pergola.api.objects import JsonObject
from pergola.pki import Authority, read_bundle, read_certificate

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
RUNTIME = {"kubernetes.io/metadata.name": "garden", "gardener.cloud/role": "garden"}
NAME = "gardener-resource-manager"


def registration(name: str = "pods.example.org", **changes: object) -> Registration:
    settings: dict[str, object] = {
        "path": "/pods",
        "kind": "mutating",
        "rules": (Rule(("CREATE",), ("",), ("v1",), ("pods",)),),
    }
    return Registration(name=name, **settings | changes)  # type: ignore[arg-type] # as declared


def known(*registrations: Registration) -> dict[str, JsonObject]:
    return entries(configurations(NAME, {}, registrations, by_service(NAME, "garden"), b"CA"))


def texts(found: Iterable[Finding]) -> list[str]:
    return [f"{finding.severity} {finding.webhook} {finding.text}" for finding in found]


def test_a_webhook_that_is_called_for_its_own_pods_blocks_them() -> None:
    needs = list(own_needs(NAME, "garden", RUNTIME, []))
    found = texts(blocking(known(registration()), needs))
    blocks = "error pods.example.org blocks its own start: it is asked about the creation of"
    assert found == [
        f"{blocks} its own pods in namespace garden, fails closed",
        f"{blocks} static pods in kube-system, fails closed",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"failure_policy": "Ignore"},
        {
            "object_selector": {
                "matchExpressions": [
                    {"key": "app", "operator": "NotIn", "values": [NAME]},
                    {"key": "static-pod", "operator": "NotIn", "values": ["true"]},
                ]
            }
        },
        {"namespace_selector": {"matchLabels": {"other": "label"}}},
    ],
    ids=["open", "selected out", "elsewhere"],
)
def test_a_webhook_that_fails_open_or_is_not_called_blocks_nothing(changes: JsonObject) -> None:
    needs = list(own_needs(NAME, "garden", RUNTIME, []))
    assert texts(blocking(known(registration(**changes)), needs)) == []


def test_selectors_are_matched_with_the_current_labels_of_pods() -> None:
    selector = {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]}
    webhook = known(registration(object_selector=selector))
    pod = {"metadata": {"labels": {"app": NAME, "skip": "true"}}}
    own = [need for need in own_needs(NAME, "garden", RUNTIME, [pod]) if "own pods" in need.what]
    assert texts(blocking(webhook, own)) == []


def test_the_registration_is_compared_with_the_desired_one() -> None:
    desired = known(registration("a"), registration("b"), registration("c"))
    live = known(registration("b"), registration("c", timeout_seconds=3), registration("d"))
    assert texts(unlike(desired, live)) == [
        "error a is served but not registered",
        "warning c is registered with other timeoutSeconds",
        "error d is registered but not served by this configuration",
    ]


def test_order_of_review_versions_and_the_ca_bundle_are_not_compared() -> None:
    desired = known(registration())
    live = entries(configurations(NAME, {}, [registration()], by_service(NAME, "garden"), b"OTHER"))
    live["pods.example.org"]["admissionReviewVersions"] = ["v1beta1", "v1"]
    assert texts(unlike(desired, live)) == []


def test_a_path_that_is_not_served_is_reported() -> None:
    found = texts(unserved(known(registration(), registration("b", path="/b")), {"/pods"}))
    assert found == ["error b is registered, but /b is not served"]


def test_path_and_host_are_read_from_urls_and_service_references() -> None:
    service = known(registration())["pods.example.org"]
    assert (path_of(service), host_of(service)) == ("/pods", f"{NAME}.garden.svc")
    (by_address,) = configurations(NAME, {}, [registration()], by_url("https://10.0.0.1:9"), b"")
    (entry,) = by_address["webhooks"]
    assert (path_of(entry), host_of(entry)) == ("/pods", "10.0.0.1")


def trust(
    *, at: datetime = NOW, host: str = "a.example", foreign: bool = False, empty: bool = False
) -> list[str]:
    """Return the findings about a certificate for `a.example` that is valid for 30 days."""
    authority = Authority.create("ca", NOW, 30 * DAY)
    served = authority.issue_server("server", ("a.example",), NOW, 30 * DAY).public
    trusted = Authority.create("ca", NOW, 30 * DAY) if foreign else authority
    bundle = [] if empty else read_bundle(trusted.pair.public)
    return [finding.text for finding in untrusted("x", bundle, read_certificate(served), host, at)]


def test_a_good_certificate_has_no_findings() -> None:
    assert trust() == []


def test_certificates_are_reported_before_they_expire() -> None:
    (soon,) = trust(at=NOW + 21 * DAY)
    assert soon.endswith("expires 2030-01-31 00:00 and should have been renewed")
    assert trust(at=NOW + 31 * DAY) == [
        "trusts only expired authorities, the last of which expired 2030-01-31 00:00",
        "is served with a certificate that expired 2030-01-31 00:00",
    ]


def test_an_untrusted_or_unexpected_server_is_reported() -> None:
    assert trust(foreign=True) == ["is served with a certificate that its CA bundle does not trust"]
    assert trust(host="b.example") == ["is served with a certificate that is not for b.example"]
    assert trust(empty=True) == ["has no CA bundle: no API server will trust its server"]
