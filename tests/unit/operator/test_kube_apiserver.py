"""The kube-apiserver of the virtual cluster (spec 20 §15.2)."""

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of
from pergola.garden.components.kube_apiserver.component import KUBE_APISERVER, credentials
from pergola.garden.components.kube_apiserver.identities import CERTIFICATE, probe_token
from pergola.garden.landscape.errors import ReferenceMalformed
from pergola.kube.yaml import parse
from pergola.secrets_manager import Certificate, Generated, ManagedSecret
from tests.support.garden import HIGHLY_AVAILABLE, landscape

API = "api.virtual-garden.local.gardener.cloud"


def settings(**fields: Any) -> JsonObject:
    return {"spec": {"virtualCluster": {"kubernetes": {"kubeAPIServer": fields}}}}


def version(text: str) -> JsonObject:
    return {"spec": {"virtualCluster": {"kubernetes": {"version": text}}}}


def objects(*patches: JsonObject, **attributes: Any) -> list[JsonObject]:
    return list(KUBE_APISERVER.objects(landscape(*patches, **attributes)).direct)


def one(kind: str, found: list[JsonObject]) -> JsonObject:
    [obj] = [each for each in found if each["kind"] == kind]
    return obj


def container(found: list[JsonObject]) -> JsonObject:
    template = map_at(one("Deployment", found), "spec", "template", "spec")
    only: JsonObject = template["containers"][0]
    return only


def flags(*patches: JsonObject, **attributes: Any) -> list[str]:
    found: list[str] = container(objects(*patches, **attributes))["args"]
    return found


def named(prefix: str, found: list[JsonObject]) -> JsonObject:
    [obj] = [each for each in found if name_of(each).startswith(prefix)]
    return obj


def config_map(name: str, content: Mapping[str, str]) -> dict[tuple[str, Key], JsonObject]:
    key = Key("garden", name)
    metadata = {"name": name, "namespace": "garden"}
    obj: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": dict(content),
    }
    return {("ConfigMap", key): obj}


def secret(name: str, content: str) -> dict[tuple[str, Key], JsonObject]:
    data = {"kubeconfig": base64.b64encode(content.encode()).decode()}
    metadata = {"name": name, "namespace": "garden"}
    obj: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    return {("Secret", Key("garden", name)): obj}


def test_only_the_issuer_flag_is_repeated() -> None:
    names = [flag.partition("=")[0] for flag in flags()]
    repeated = {name for name in names if names.count(name) > 1}
    assert repeated <= {"--service-account-issuer"}


def test_every_volume_is_mounted_and_every_mount_has_a_volume() -> None:
    found = objects()
    volumes = map_at(one("Deployment", found), "spec", "template", "spec")["volumes"]
    assert [each["name"] for each in volumes] == [
        each["name"] for each in container(found)["volumeMounts"]
    ]


def test_every_file_in_a_flag_is_mounted() -> None:
    found = objects()
    paths = [each["mountPath"] for each in container(found)["volumeMounts"]]
    for flag in container(found)["args"]:
        name, _, value = flag.partition("=")
        if name.endswith(("-file", "-config")) and value.startswith("/"):
            assert any(value.startswith(f"{path}/") for path in paths), flag


def test_events_and_resources_chosen_by_the_garden_have_their_own_etcd() -> None:
    server = "https://virtual-garden-etcd-events-client:2379"
    chosen = settings(resourcesToStoreInETCDEvents=[{"group": "a.org", "resource": "things"}])
    assert (
        f"--etcd-servers-overrides=/events#{server},events.k8s.io/events#{server},"
        f"a.org/things#{server}" in flags(chosen)
    )
    assert "--etcd-servers=https://virtual-garden-etcd-main-client:2379" in flags()


def test_the_issuer_of_tokens_comes_before_accepted_ones() -> None:
    assert f"--service-account-issuer=https://{API}" in flags()
    config = {
        "issuer": "https://issuer.example.org",
        "acceptedIssuers": ["https://old.example.org"],
        "maxTokenExpiration": "720h",
        "extendTokenExpiration": False,
    }
    found = flags(settings(serviceAccountConfig=config))
    assert [flag for flag in found if flag.startswith("--service-account-issuer")] == [
        "--service-account-issuer=https://issuer.example.org",
        "--service-account-issuer=https://old.example.org",
        f"--service-account-issuer=https://{API}",
    ]
    assert "--service-account-max-token-expiration=720h0m0s" in found
    assert "--service-account-extend-token-expiration=false" in found


@pytest.mark.parametrize(
    ("issuer", "host"),
    [
        ("https://gardener.virtual-garden.local.gardener.cloud", "gardener"),
        ("https://issuer.example.org", "api"),
    ],
)
def test_the_external_hostname_is_taken_from_a_custom_issuer(issuer: str, host: str) -> None:
    found = flags(settings(serviceAccountConfig={"issuer": issuer}))
    assert f"--external-hostname={host}.virtual-garden.local.gardener.cloud" in found


@pytest.mark.parametrize("user", ["", "a@", "a:b@"])
def test_the_external_hostname_has_the_port_of_the_issuer_but_not_its_user(user: str) -> None:
    issuer = f"https://{user}{API}:8443/path"
    found = flags(settings(serviceAccountConfig={"issuer": issuer}))
    assert f"--external-hostname={API}:8443" in found
    assert f"--service-account-issuer=https://{API}:8443" in found


def test_the_certificate_has_all_names_and_the_first_address_of_each_service_range() -> None:
    services = {"services": ["10.4.0.0/16", "fd00::/64"]}
    ranges = {"spec": {"virtualCluster": {"networking": services}}}
    [server] = [
        each.config
        for each in credentials(landscape(ranges))
        if isinstance(each.config, Certificate) and each.config.name == CERTIFICATE
    ]
    expected = {
        "virtual-garden-kube-apiserver.garden.svc",
        "kubernetes.default.svc.cluster.local",
        API,
        "10.4.0.1",
        "fd00::1",
    }
    assert expected <= set(server.hosts)


def test_additional_names_have_the_certificate_of_the_garden() -> None:
    flag = "--tls-sni-cert-key=/srv/kubernetes/tls-sni/0/tls.crt,/srv/kubernetes/tls-sni/0/tls.key"
    assert f"{flag}:api.garden.local-test.gardener.cloud" in flags()
    empty = flags(settings(sni={"domainPatterns": None}))
    assert not any(each.startswith("--tls-sni-cert-key") for each in empty)


def test_apis_that_need_nodes_are_disabled_by_default() -> None:
    found = flags(settings(runtimeConfig={"batch/v1": True}))
    assert (
        "--runtime-config=apps/v1=false,autoscaling/v2=false,batch/v1=true,policy/v1=false,"
        "storage.k8s.io/v1/csinodes=false" in found
    )


def test_anonymous_requests_are_refused_by_default() -> None:
    assert "--anonymous-auth=false" in flags(version("1.31.1"))
    found = objects(version("1.34.0"))
    config = parse(named("kube-apiserver-authentication-config", found)["data"]["config.yaml"])
    assert config == {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": False},
    }
    assert not any(each.startswith("--anonymous-auth") for each in container(found)["args"])


def test_the_configuration_of_the_user_takes_precedence() -> None:
    text = "apiVersion: apiserver.config.k8s.io/v1beta1\nanonymous: {enabled: true}\njwt: []\n"
    found = objects(
        version("1.34.0"),
        settings(structuredAuthentication={"configMapName": "users"}),
        references=config_map("users", {"config.yaml": text}),
    )
    config = parse(named("kube-apiserver-authentication-config", found)["data"]["config.yaml"])
    assert isinstance(config, dict)
    assert config["anonymous"] == {"enabled": True}
    assert config["apiVersion"] == "apiserver.config.k8s.io/v1beta1"


@pytest.mark.parametrize("text", ["- a", "a: [", "{"])
def test_a_malformed_configuration_is_reported(text: str) -> None:
    with pytest.raises(ReferenceMalformed, match=r'key "config\.yaml" of ConfigMap garden/users'):
        flags(
            settings(structuredAuthentication={"configMapName": "users"}),
            references=config_map("users", {"config.yaml": text}),
        )


def test_an_openid_provider_is_configured_by_flags() -> None:
    config = {
        "issuerURL": "https://issuer.example.org",
        "clientID": "kube",
        "signingAlgs": ["RS256", "ES256"],
        "requiredClaims": {"a": "b"},
        "caBundle": "pem",
    }
    found = flags(version("1.34.0"), settings(oidcConfig=config))
    assert {
        "--oidc-issuer-url=https://issuer.example.org",
        "--oidc-client-id=kube",
        "--oidc-signing-algs=RS256,ES256",
        "--oidc-required-claim=a=b",
        "--oidc-ca-file=/srv/kubernetes/oidc/ca.crt",
        "--anonymous-auth=false",
    } <= set(found)
    assert not any(each.startswith("--authentication-config") for each in found)


def authorizers(found: list[JsonObject]) -> list[JsonObject]:
    content = named("kube-apiserver-authorization-config", found)["data"]["config.yaml"]
    config = parse(content)
    assert isinstance(config, dict)
    return maps_at(config, "authorizers")


def test_gardener_webhooks_authorize_gardenlets_after_rbac() -> None:
    assert [each["name"] for each in authorizers(objects())] == [
        "rbac",
        "seed-authorizer",
        "shoot-authorizer",
    ]


def test_user_webhooks_come_last_and_only_with_mounted_kubeconfigs() -> None:
    text = (
        "authorizers:\n"
        "- {type: RBAC, name: rbac}\n"
        "- type: Webhook\n"
        "  name: own\n"
        "  webhook: {timeout: 3s, connectionInfo: {kubeConfigFile: /etc/passwd}}\n"
    )
    kubeconfigs = [{"authorizerName": "own", "secretName": "own"}]
    found = objects(
        settings(structuredAuthorization={"configMapName": "rules", "kubeconfigs": kubeconfigs}),
        references={**config_map("rules", {"config.yaml": text}), **secret("own", "content")},
    )
    own = authorizers(found)[-1]
    assert own["name"] == "own"
    assert own["webhook"] == {
        "timeout": "3s",
        "connectionInfo": {
            "type": "KubeConfigFile",
            "kubeConfigFile": (
                "/etc/kubernetes/structured/authorization-kubeconfigs/own-kubeconfig.yaml"
            ),
        },
    }
    mounted = named("kube-apiserver-authorization-webhooks-kubeconfigs", found)["data"]
    assert base64.b64decode(mounted["own-kubeconfig.yaml"]) == b"content"


def test_the_autoscaler_owns_the_replicas() -> None:
    found = objects()
    assert "replicas" not in one("Deployment", found)["spec"]
    assert one("HorizontalPodAutoscaler", found)["spec"]["minReplicas"] == 2
    available = one("HorizontalPodAutoscaler", objects(HIGHLY_AVAILABLE))
    assert available["spec"]["minReplicas"] == 3


def test_probes_use_their_own_token() -> None:
    site = landscape()
    known = site.credentials
    tokens = ManagedSecret({}, {"static_tokens.csv": b"secret,health-check,health-check\n"})
    generated = {**known.generated, "kube-apiserver-static-token": Generated(tokens)}
    site = site.with_credentials(replace(known, generated=generated))
    assert probe_token(site) == "secret"
    probe = container(list(KUBE_APISERVER.objects(site).direct))["readinessProbe"]
    assert probe["httpGet"]["httpHeaders"] == [{"name": "Authorization", "value": "Bearer secret"}]
