"""Small components of the runtime cluster (spec 20 §12.1, §13)."""

from pergola.api.objects import JsonObject, map_at, name_of
from pergola.garden.components import (
    gardener_operator,
    internal_load_balancing,
    volume_autoscaling,
)
from pergola.garden.components import nginx_ingress as nginx
from tests.support.garden import landscape

NGINX = {"DisableNginxIngressInGarden": False}


def runtime(**fields: object) -> JsonObject:
    return {"spec": {"runtimeCluster": fields}}


def test_the_operator_keeps_enough_memory_to_start() -> None:
    [autoscaler] = gardener_operator.autoscaler(landscape()).direct
    [policy, others] = map_at(autoscaler, "spec", "resourcePolicy")["containerPolicies"]
    assert policy["minAllowed"] == {"memory": "200Mi"}
    assert others == {"containerName": "*", "mode": "Off"}


def test_the_garden_prometheus_scrapes_the_operator() -> None:
    [monitor] = gardener_operator.service_monitor(landscape()).direct
    assert name_of(monitor) == "garden-gardener-operator"
    assert map_at(monitor, "metadata", "labels") == {"prometheus": "garden"}


def test_pods_reach_the_first_name_of_the_api_server_through_the_gateway() -> None:
    [config_map] = internal_load_balancing.render(landscape()).direct
    assert config_map["data"] == {
        "hosts": "api.virtual-garden.local.gardener.cloud",
        "istio-namespace": "virtual-garden-istio-ingress",
    }


def test_pods_connect_to_the_gateway_only_if_it_decrypts() -> None:
    passthrough = landscape(feature_gates={"IstioTLSTermination": False})
    assert internal_load_balancing.absent(passthrough)
    assert internal_load_balancing.absent(landscape()) is None


def test_volumes_grow_only_if_the_garden_enables_it() -> None:
    enabled = runtime(settings={"persistentVolumeClaimAutoscaler": {"enabled": True}})
    disabled = runtime(settings={"persistentVolumeClaimAutoscaler": {"enabled": False}})
    assert volume_autoscaling.absent(landscape(enabled)) is None
    assert volume_autoscaling.absent(landscape(disabled))
    assert volume_autoscaling.absent(landscape())


def test_nginx_is_deployed_only_if_its_gate_is_off() -> None:
    assert nginx.absent(landscape(feature_gates=NGINX)) is None
    assert nginx.absent(landscape())


def test_the_garden_configures_nginx() -> None:
    controller = {"kind": "nginx", "providerConfig": {"worker-processes": 4, "use-http2": False}}
    found = nginx.configuration(landscape(runtime(ingress={"controller": controller})))
    assert (found["worker-processes"], found["use-http2"]) == ("4", "false")
    assert found["allow-snippet-annotations"] == "false"


def test_each_domain_has_its_own_route_to_nginx() -> None:
    domains = [{"name": "a.test"}, {"name": "b.a.test"}]
    built = landscape(runtime(ingress={"domains": domains}), feature_gates=NGINX)
    [managed] = nginx.NGINX_INGRESS.objects(built).managed
    routes = {
        name_of(obj): map_at(obj, "spec")
        for obj in managed.objects
        if obj["kind"] == "VirtualService"
    }
    assert {name: spec["hosts"] for name, spec in routes.items()} == {
        "nginx-ingress-controller-0": ["*.a.test"],
        "nginx-ingress-controller-1": ["*.b.a.test"],
    }
    assert {tuple(spec["gateways"]) for spec in routes.values()} == {("nginx-ingress-controller",)}
