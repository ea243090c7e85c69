"""gardener-apiserver (spec 20 §16.2)."""

from pergola.api.objects import JsonObject, labels_of, map_at, maps_at, name_of
from pergola.garden.components.component import Target
from pergola.garden.components.gardener_apiserver import GARDENER_APISERVER
from pergola.garden.landscape import Landscape
from tests.support.garden import HIGHLY_AVAILABLE, landscape


def objects(of: Landscape, target: Target) -> list[JsonObject]:
    rendered = GARDENER_APISERVER.objects(of)
    return [obj for each in rendered.managed if each.target is target for obj in each.objects]


def deployment(of: Landscape) -> JsonObject:
    (found,) = (obj for obj in objects(of, Target.RUNTIME) if obj["kind"] == "Deployment")
    return found


def flags(of: Landscape) -> list[str]:
    (container,) = maps_at(deployment(of), "spec", "template", "spec", "containers")
    args = container["args"]
    assert isinstance(args, list)
    return [str(arg) for arg in args]


def endpoints(of: Landscape) -> list[JsonObject]:
    kinds = ("Endpoints", "EndpointSlice")
    return [obj for obj in objects(of, Target.VIRTUAL) if obj["kind"] in kinds]


def kubernetes(version: str) -> JsonObject:
    return {"spec": {"virtualCluster": {"kubernetes": {"version": version}}}}


def settings(**fields: object) -> JsonObject:
    return {"spec": {"virtualCluster": {"gardener": {"gardenerAPIServer": fields}}}}


def test_a_highly_available_garden_has_a_third_replica() -> None:
    assert map_at(deployment(landscape()), "spec")["replicas"] == 2
    assert map_at(deployment(landscape(HIGHLY_AVAILABLE)), "spec")["replicas"] == 3


def test_the_old_authority_is_trusted_until_all_pods_serve_the_new_certificate() -> None:
    runtime, virtual = GARDENER_APISERVER.objects(landscape()).managed
    assert runtime.deployment == "gardener-apiserver"
    assert not virtual.deployment


def test_five_apis_are_registered_with_the_authority_of_gardener() -> None:
    found = [obj for obj in objects(landscape(), Target.VIRTUAL) if obj["kind"] == "APIService"]
    assert [name_of(obj) for obj in found] == [
        "v1.core.gardener.cloud",
        "v1beta1.core.gardener.cloud",
        "v1alpha1.operations.gardener.cloud",
        "v1alpha1.security.gardener.cloud",
        "v1alpha1.seedmanagement.gardener.cloud",
    ]


def test_nothing_is_registered_before_the_service_of_the_runtime_cluster_has_an_address() -> None:
    assert objects(landscape(gardener_api_server_address=""), Target.VIRTUAL) == []


def test_the_endpoint_of_the_virtual_cluster_is_the_service_of_the_runtime_cluster() -> None:
    (found,) = endpoints(landscape(kubernetes("1.32.0"), gardener_api_server_address="10.2.0.7"))
    assert found["kind"] == "Endpoints"
    (subset,) = maps_at(found, "subsets")
    assert maps_at(subset, "addresses") == [{"ip": "10.2.0.7"}]


def test_kubernetes_1_33_gets_both_kinds_of_endpoints_and_1_34_only_slices() -> None:
    assert [obj["kind"] for obj in endpoints(landscape(kubernetes("1.33.1")))] == [
        "Endpoints",
        "EndpointSlice",
    ]
    (slice_,) = endpoints(landscape(kubernetes("1.34.0")))
    assert slice_["kind"] == "EndpointSlice"
    assert labels_of(slice_)["kubernetes.io/service-name"] == "gardener-apiserver"


def test_the_address_may_be_of_either_family() -> None:
    of = landscape(kubernetes("1.34.0"), gardener_api_server_address="2001:db8::1")
    (slice_,) = endpoints(of)
    assert slice_["addressType"] == "IPv6"


def test_settings_become_flags() -> None:
    found = flags(
        landscape(
            settings(
                goAwayChance=0.01,
                logging={"verbosity": 3},
                shootAdminKubeconfigMaxExpiration="24h",
                featureGates={"Some": True},
            )
        )
    )
    assert "--goaway-chance=0.010000" in found
    assert "--log-level=debug" in found
    assert "--shoot-admin-kubeconfig-max-expiration=24h0m0s" in found
    assert "--cluster-identity=test" in found


def test_absent_settings_are_left_to_the_program() -> None:
    found = flags(landscape())
    assert "--log-level=info" in found
    for flag in ("--goaway-chance", "--shoot-admin-kubeconfig-max-expiration", "--feature-gates"):
        assert not any(each.startswith(flag) for each in found)


def test_tokens_of_workload_identities_name_the_domain_of_the_discovery_server() -> None:
    issuer = "--workload-identity-token-issuer=https://{}/garden/workload-identity/issuer"
    default = "discovery.ingress.runtime-garden.local.gardener.cloud"
    assert issuer.format(default) in flags(landscape())
    server = {"gardenerDiscoveryServer": {"domain": {"name": "keys.example.org"}}}
    of = landscape({"spec": {"virtualCluster": {"gardener": server}}})
    assert issuer.format("keys.example.org") in flags(of)


def test_mounted_objects_are_applied_before_the_pods() -> None:
    rendered = GARDENER_APISERVER.objects(landscape())
    names = {name_of(obj) for obj in rendered.direct}
    volumes = maps_at(deployment(landscape()), "spec", "template", "spec", "volumes")
    mounted = {map_at(volume, "configMap").get("name") for volume in volumes} - {None}
    assert mounted <= names
    assert "shoot-access-gardener-apiserver" in names
