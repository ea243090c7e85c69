"""The fields of an InfraCluster that Cluster API's core reads: spec 50 §4."""

import pytest

from pergola.api.cluster_api import ContractVersion, crd_name, plural_of
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject
from pergola.externally_managed.contract import (
    ContractError,
    Endpoint,
    FailureDomain,
    contract_of,
    done,
    endpoint_of,
    failure_domains_of,
    is_provisioned,
    kind_of,
    render_failure_domains,
)
from pergola.externally_managed.versions import newest


def crd(**labels: str) -> JsonObject:
    prefixed = {f"cluster.x-k8s.io/{name}": value for name, value in labels.items()}
    return {
        "metadata": {"name": "fooclusters.example.org", "labels": prefixed},
        "spec": {"group": "example.org", "names": {"kind": "FooCluster"}},
    }


@pytest.mark.parametrize(
    ("labels", "version", "api_version"),
    [
        ({"v1beta2": "v1beta2"}, "v1beta2", "v1beta2"),
        ({"v1beta1": "v1beta1_v1beta2"}, "v1beta1", "v1beta2"),
        ({"v1beta1": "v1beta1", "v1beta2": "v1beta2"}, "v1beta2", "v1beta2"),
        ({"v1beta1": "v1alpha4_v1beta1", "v1beta2": ""}, "v1beta1", "v1beta1"),
        ({"v1alpha3": "v1alpha3", "v1beta1": "v1alpha1_v1_v1beta2"}, "v1beta1", "v1"),
    ],
)
def test_the_labels_of_the_crd_select_the_contract(
    labels: dict[str, str], version: str, api_version: str
) -> None:
    contract = contract_of(crd(**labels))
    assert (contract.version, contract.api_version) == (version, api_version)
    kind = GroupVersionKind("example.org", api_version, "FooCluster")
    assert kind_of(crd(**labels), contract) == kind


def test_a_crd_without_labels_is_refused_with_the_message_of_the_core() -> None:
    with pytest.raises(ContractError) as error:
        contract_of(crd(v1alpha4="v1alpha4"))
    assert str(error.value) == (
        'cannot find any versions matching contract versions ["v1beta2" "v1beta1"] for CRD '
        "fooclusters.example.org as contract version label(s) are either missing or empty"
    )


def test_versions_are_sorted_as_in_kubernetes() -> None:
    ordered = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "foo1", "foo10"]
    while len(ordered) > 1:
        assert newest(ordered) == ordered.pop(0)


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("FooCluster", "fooclusters"), ("FooBus", "foobuses"), ("FooPolicy", "foopolicies")],
)
def test_the_name_of_a_crd_follows_the_fixed_rule(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural
    assert crd_name(GroupKind("example.org", kind)) == f"{plural}.example.org"


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_written_ready_status_is_read_as_ready(version: ContractVersion) -> None:
    assert is_provisioned({"status": done(version)}, version)
    assert not is_provisioned({"status": {}}, version)
    other: ContractVersion = "v1beta2" if version == "v1beta1" else "v1beta1"
    assert not is_provisioned({"status": done(other)}, version)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_written_failure_domains_are_read_back(version: ContractVersion) -> None:
    domains = [FailureDomain("b", control_plane=False), FailureDomain("a", attributes={"x": "y"})]
    status = {"failureDomains": render_failure_domains(domains, version)}
    found = failure_domains_of({"status": status}, version)
    assert [(d.name, d.control_plane) for d in found] == [("a", True), ("b", False)]
    assert found[0].attributes == {"x": "y"}
    assert failure_domains_of({}, version) == []


def test_wrong_types_are_refused_with_the_message_of_the_core() -> None:
    with pytest.raises(ContractError, match="true is of the type string, expected bool"):
        is_provisioned({"status": {"initialization": {"provisioned": "true"}}}, "v1beta2")
    with pytest.raises(ContractError, match=r"map\[string\]interface \{\}, expected \[\]interface"):
        failure_domains_of({"status": {"failureDomains": {"a": {}}}}, "v1beta2")


@pytest.mark.parametrize(
    ("endpoint", "expected", "valid"),
    [
        ({"host": "a.example", "port": 6443}, Endpoint("a.example", 6443), True),
        ({"host": "a.example", "port": 0}, Endpoint("a.example", 0), False),
        ({"host": "", "port": 6443}, Endpoint("", 6443), False),
        ({"host": 7, "port": True}, Endpoint("", 0), False),
        ({}, Endpoint("", 0), False),
    ],
)
def test_an_endpoint_needs_host_and_port(
    endpoint: JsonObject, expected: Endpoint, valid: bool
) -> None:
    found = endpoint_of({"spec": {"controlPlaneEndpoint": endpoint}})
    assert found == expected
    assert found.is_valid is valid


def test_an_ipv6_address_is_shown_in_brackets() -> None:
    assert str(Endpoint("2001:db8::1", 443)) == "[2001:db8::1]:443"
