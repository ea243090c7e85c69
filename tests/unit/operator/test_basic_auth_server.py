"""The server that checks the passwords of users (spec 20 §12.3)."""

from pergola.api.objects import JsonObject, labels_of, map_at, maps_at
from pergola.garden.components.basic_auth_server import BASIC_AUTH_SERVER, HOSTS
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.istio import basic_auth
from pergola.garden.components.observability.conventions import CREDENTIAL, host
from tests.support.garden import landscape


def rendered(kind: str) -> JsonObject:
    [managed] = BASIC_AUTH_SERVER.objects(landscape()).managed
    [found] = [obj for obj in managed.objects if obj["kind"] == kind]
    return found


def test_every_host_that_needs_a_password_is_protected() -> None:
    built = landscape()
    guarded = {host(built, name) for name in HOSTS}
    labels = basic_auth(CREDENTIAL).items()
    needing = {
        name
        for component in CATALOG
        if component.absent(built) is None
        for managed in component.render(built).managed
        for obj in managed.objects
        if obj["kind"] == "VirtualService" and labels <= labels_of(obj).items()
        for name in map_at(obj, "spec")["hosts"]
    }
    assert needing
    assert needing <= guarded


def test_the_gateway_requires_authorization_only_for_these_hosts() -> None:
    patches = map_at(rendered("EnvoyFilter"), "spec")["configPatches"]
    asked = [map_at(patch, "match", "listener", "filterChain")["sni"] for patch in patches]
    assert asked == [host(landscape(), name) for name in HOSTS]


def test_each_host_has_its_own_password_file() -> None:
    pod = map_at(rendered("Deployment"), "spec", "template", "spec")
    [container] = pod["containers"]
    mounts = {each.get("subPath"): each["mountPath"] for each in container["volumeMounts"]}
    assert {name: mounts[name] for name in HOSTS} == {name: f"/secrets/{name}" for name in HOSTS}
    [_, secrets] = maps_at(pod, "volumes")
    assert [each["key"] for each in map_at(secrets, "secret")["items"]] == ["auth"] * len(HOSTS)


def test_only_ingress_gateways_may_connect() -> None:
    annotations = map_at(rendered("Service"), "metadata", "annotations")
    assert annotations["networking.resources.gardener.cloud/namespace-selectors"] == (
        '[{"matchLabels":{"gardener.cloud/role":"istio-ingress"}}]'
    )
