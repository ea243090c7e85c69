"""The DNSRecords of a Garden, and their values (spec 20 §15.3)."""

import pytest

from pergola.api.objects import JsonObject, Key, annotations_of, labels_of, name_of, namespace_of
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Rendered
from pergola.garden.landscape.errors import OperatorError
from pergola.operator.reconcile.extension_resources.dns import absent, dns_records, is_covered
from pergola.operator.reconcile.extension_resources.inputs import CHECKSUM
from tests.support.garden import COMPLETE, landscape

ADDRESS = "192.0.2.1"
PROVIDERS = [
    {"name": "main", "type": "aws-route53", "secretRef": {"name": "dns"}},
    {
        "name": "other",
        "type": "google-clouddns",
        "secretRef": {"name": "other-dns"},
        "providerConfig": {"apiVersion": "a/v1", "kind": "Config", "nothing": None},
    },
]
WITH_DNS: JsonObject = {"spec": {"dns": {"providers": PROVIDERS}}}


def garden(
    *, virtual: list[JsonObject] | None = None, ingress: list[JsonObject] | None = None
) -> JsonObject:
    return {
        "spec": {
            "dns": {"providers": PROVIDERS},
            "virtualCluster": {"dns": {"domains": virtual or [{"name": "v.example.org"}]}},
            "runtimeCluster": {"ingress": {"domains": ingress or [{"name": "i.example.org"}]}},
        }
    }


def gardener(**settings: JsonObject) -> JsonObject:
    return {"spec": {"virtualCluster": {"gardener": settings}}}


def dns_names(*patches: JsonObject) -> list[str]:
    return [record["spec"]["name"] for record in dns_records(landscape(*patches), ADDRESS)]


def test_without_spec_dns_the_task_is_skipped_with_a_reason() -> None:
    assert absent(landscape()) == "spec.dns is not set"
    assert absent(landscape(WITH_DNS)) is None


def test_every_domain_has_its_api_names_and_every_ingress_domain_a_wildcard() -> None:
    patch = garden(
        virtual=[{"name": "v.example.org"}, {"name": "w.example.org"}],
        ingress=[{"name": "i.example.org"}, {"name": "j.example.org"}],
    )
    assert sorted(dns_names(patch)) == [
        "*.i.example.org",
        "*.j.example.org",
        "api.v.example.org",
        "api.w.example.org",
        "gardener.v.example.org",
        "gardener.w.example.org",
    ]


def test_a_record_is_named_after_its_dns_name_and_the_type_of_its_provider() -> None:
    records = {name_of(each): each for each in dns_records(landscape(garden()), ADDRESS)}
    assert set(records) == {
        "api-v-example-org-aws-route53",
        "gardener-v-example-org-aws-route53",
        "wildcard-i-example-org-aws-route53",
    }
    record = records["api-v-example-org-aws-route53"]
    assert namespace_of(record) == "garden"
    assert labels_of(record) == {"origin": "gardener-operator"}
    assert record["spec"] == {
        "class": "garden",
        "type": "aws-route53",
        "name": "api.v.example.org",
        "recordType": "A",
        "values": [ADDRESS],
        "secretRef": {"name": "dns", "namespace": "garden"},
    }


@pytest.mark.parametrize(
    ("address", "record_type"),
    [("192.0.2.1", "A"), ("2001:db8::1", "AAAA"), ("lb.example.org", "CNAME")],
)
def test_the_form_of_the_address_decides_the_type_of_the_record(
    address: str, record_type: str
) -> None:
    for record in dns_records(landscape(garden()), address):
        assert record["spec"]["recordType"] == record_type
        assert record["spec"]["values"] == [address]


def test_a_domain_may_have_its_own_provider_and_configuration() -> None:
    patch = garden(ingress=[{"name": "i.example.org", "provider": "other"}])
    [record] = [
        each
        for each in dns_records(landscape(patch), ADDRESS)
        if each["spec"]["name"] == "*.i.example.org"
    ]
    assert name_of(record) == "wildcard-i-example-org-google-clouddns"
    assert record["spec"]["secretRef"]["name"] == "other-dns"
    assert record["spec"]["providerConfig"] == {"apiVersion": "a/v1", "kind": "Config"}


def test_the_error_about_an_unknown_provider_lists_the_known_ones() -> None:
    patch = garden(ingress=[{"name": "i.example.org", "provider": "gone"}])
    with pytest.raises(OperatorError, match=r'\*\.i\.example\.org names the DNS provider "gone"'):
        dns_records(landscape(patch), ADDRESS)


def test_names_that_need_the_same_object_are_refused() -> None:
    patch = garden(virtual=[{"name": "a.b.example.org"}, {"name": "a-b.example.org"}])
    with pytest.raises(OperatorError, match="both need DNSRecord api-a-b-example-org-aws-route53"):
        dns_records(landscape(patch), ADDRESS)


def test_a_name_in_several_domains_has_one_record() -> None:
    shared = [{"name": "example.org"}]
    assert dns_names(garden(virtual=shared, ingress=shared)) == [
        "*.example.org",
        "api.example.org",
        "gardener.example.org",
    ]


def test_separate_domains_have_records_unless_a_wildcard_covers_them() -> None:
    own = gardener(
        gardenerDashboard={"domain": {"name": "dashboard.example.com", "provider": "other"}},
        gardenerDiscoveryServer={"domain": {"name": "keys.i.example.org"}},
    )
    assert "dashboard.example.com" in dns_names(garden(), own)
    assert "keys.i.example.org" not in dns_names(garden(), own)


def test_a_dashboard_exposed_by_others_gets_no_record() -> None:
    own = gardener(
        gardenerDashboard={
            "domain": {"name": "dashboard.example.com"},
            "ingress": {"enabled": False},
        }
    )
    assert "dashboard.example.com" not in dns_names(garden(), own)


@pytest.mark.parametrize(
    ("name", "covered"),
    [
        ("a.i.example.org", True),
        ("a.b.i.example.org", True),
        ("api.i.example.org", True),
        ("a.api.i.example.org", False),
        ("i.example.org", False),
        ("a.example.org", False),
        ("a.x.i.example.org", True),
    ],
)
def test_a_wildcard_covers_the_names_that_resolvers_match(name: str, covered: bool) -> None:
    records = ["*.i.example.org", "api.i.example.org", "*.x.i.example.org"]
    assert is_covered(name, records) is covered


def test_changed_credentials_change_the_record() -> None:
    checksums = set()
    for content in ("b25l", "dHdv"):
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "dns", "namespace": "garden"},
            "data": {"key": content},
        }
        site = landscape(garden(), references={("Secret", Key("garden", "dns")): secret})
        checksums |= {annotations_of(each)[CHECKSUM] for each in dns_records(site, ADDRESS)}
    assert len(checksums) == 2


EXPLICIT: JsonObject = {
    "metadata": {"annotations": {"operator.gardener.cloud/explicit-dns-records": "true"}}
}


def test_every_host_behind_the_gateway_has_its_own_record_on_request() -> None:
    site = landscape(COMPLETE, WITH_DNS, EXPLICIT)
    served = {
        host
        for component in CATALOG
        if component.absent(site) is None
        for obj in objects_of(component.objects(site))
        if obj["kind"] == "Gateway"
        for server in obj["spec"]["servers"]
        for host in server["hosts"]
    }
    records = {record["spec"]["name"] for record in dns_records(site, ADDRESS)}
    wildcard = "*.ingress.runtime-garden.local.gardener.cloud"
    assert records == served | {wildcard}
    assert len(served) == 8


def test_an_explicit_record_has_the_provider_of_the_innermost_ingress_domain() -> None:
    patch = garden(
        ingress=[
            {"name": "a.example.org", "provider": "other"},
            {"name": "example.org", "provider": "main"},
        ]
    )
    records = dns_records(landscape(patch, EXPLICIT), ADDRESS)
    types = {each["spec"]["name"]: each["spec"]["type"] for each in records}
    assert types["plutono-garden.a.example.org"] == "google-clouddns"
    assert types["dashboard.example.org"] == "aws-route53"


def objects_of(rendered: Rendered) -> list[JsonObject]:
    return [*rendered.direct, *(obj for each in rendered.managed for obj in each.objects)]
