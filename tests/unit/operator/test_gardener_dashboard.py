"""The dashboard of Gardener (spec 20 §16.6)."""

import base64

import pytest

from pergola.api.objects import JsonObject, Key, annotations_of, map_at, maps_at, name_of
from pergola.garden.components.component import Target
from pergola.garden.components.gardener_dashboard.component import GARDENER_DASHBOARD
from pergola.garden.components.gardener_dashboard.configuration import configuration, login
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.errors import OperatorError, ReferenceMissing
from tests.support.garden import landscape

OIDC: JsonObject = {
    "issuerURL": "https://identity.example.org",
    "clientIDPublic": "public",
    "secretRef": {"name": "oidc"},
}
GITHUB: JsonObject = {
    "organisation": "org",
    "repository": "tickets",
    "secretRef": {"name": "github"},
}


def dashboard(**fields: object) -> JsonObject:
    return {"spec": {"virtualCluster": {"gardener": {"gardenerDashboard": fields}}}}


def sni(**fields: object) -> JsonObject:
    server = {"kubeAPIServer": {"sni": fields or None}}
    return {"spec": {"virtualCluster": {"kubernetes": server}}}


def secret(name: str, **data: str) -> JsonObject:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": "garden", "name": name},
        "data": encoded,
    }


def config_map(name: str, field: str = "data", **data: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "garden", "name": name},
        field: dict(data),
    }


def found(*objects: JsonObject) -> dict[tuple[str, Key], JsonObject]:
    return {(str(obj["kind"]), Key.of(obj)): obj for obj in objects}


def deployment(of: Landscape) -> JsonObject:
    (runtime, _) = GARDENER_DASHBOARD.objects(of).managed
    (obj,) = (each for each in runtime.objects if each["kind"] == "Deployment")
    return obj


def volumes(of: Landscape) -> dict[str, JsonObject]:
    return {
        str(volume["name"]): volume
        for volume in maps_at(deployment(of), "spec", "template", "spec", "volumes")
    }


def virtual(of: Landscape) -> set[str]:
    return {
        f"{obj['kind']} {name_of(obj)}"
        for managed in GARDENER_DASHBOARD.objects(of).managed
        if managed.target is Target.VIRTUAL
        for obj in managed.objects
    }


def test_a_garden_without_its_settings_has_no_dashboard() -> None:
    of = landscape({"spec": {"virtualCluster": {"gardener": {"gardenerDashboard": None}}}})
    reason = GARDENER_DASHBOARD.absent(of)
    assert reason == "spec.virtualCluster.gardener.gardenerDashboard is not set"
    assert list(GARDENER_DASHBOARD.credentials(of)) == []


def test_users_log_in_with_a_token_unless_it_is_disabled() -> None:
    assert login(landscape())["loginTypes"] == ["token"]
    both = landscape(dashboard(oidcConfig=OIDC))
    assert login(both)["loginTypes"] == ["oidc", "token"]
    only = landscape(dashboard(oidcConfig=OIDC, enableTokenLogin=False))
    assert login(only)["loginTypes"] == ["oidc"]


def test_openid_sends_users_back_to_every_host() -> None:
    domains = {"domains": [{"name": "a.example.org"}, {"name": "b.example.org"}]}
    of = landscape(
        dashboard(oidcConfig={**OIDC, "additionalScopes": ["groups"]}),
        {"spec": {"runtimeCluster": {"ingress": domains}}},
    )
    oidc = map_at(configuration(of), "oidc")
    assert oidc["redirect_uris"] == [
        "https://dashboard.a.example.org/auth/callback",
        "https://dashboard.b.example.org/auth/callback",
    ]
    assert oidc["scope"] == "openid email groups"
    assert oidc["sessionLifetime"] == 12 * 60 * 60
    assert oidc["public"] == {"clientId": "public", "usePKCE": True}


def test_issuer_and_client_are_those_of_the_api_server_if_absent() -> None:
    server = {"oidcConfig": {"issuerURL": "https://old.example.org", "clientID": "kube"}}
    of = landscape(
        dashboard(oidcConfig={"secretRef": {"name": "oidc"}}),
        {"spec": {"virtualCluster": {"kubernetes": {"kubeAPIServer": server}}}},
    )
    oidc = map_at(configuration(of), "oidc")
    assert oidc["issuer"] == "https://old.example.org"
    assert map_at(oidc, "public")["clientId"] == "kube"


def test_an_invalid_authority_is_reported_with_its_secret() -> None:
    oidc = {**OIDC, "certificateAuthoritySecretRef": {"name": "authority"}}
    for content in ("no certificate", ""):
        of = landscape(
            dashboard(oidcConfig=oidc), references=found(secret("authority", **{"ca.crt": content}))
        )
        with pytest.raises(OperatorError, match="garden/authority"):
            configuration(of)


def test_a_separate_domain_replaces_the_ingress_domains() -> None:
    of = landscape(dashboard(domain={"name": "gardener.example.org"}))
    assert configuration(of)["websocketAllowedOrigins"] == ["https://gardener.example.org"]


def test_kubeconfigs_of_users_name_the_host_of_sni_without_an_authority() -> None:
    config = configuration(landscape())
    assert config["apiServerUrl"] == "https://api.garden.local-test.gardener.cloud"
    assert "apiServerCaData" not in config


@pytest.mark.parametrize(
    ("patterns", "host"),
    [
        (["*.example.org", "api.example.com"], "api.example.com"),
        (["*.garden.example.org"], "api.garden.example.org"),
    ],
    ids=["a pattern without a wildcard", "a host that a wildcard covers"],
)
def test_kubeconfigs_of_users_name_a_host_not_a_pattern(patterns: list[str], host: str) -> None:
    domains = {"domains": [{"name": "a.example.org"}, {"name": "garden.example.org"}]}
    virtual = {"spec": {"virtualCluster": {"dns": domains}}}
    of = landscape(virtual, sni(domainPatterns=patterns))
    assert configuration(of)["apiServerUrl"] == f"https://{host}"


def test_kubeconfigs_of_users_trust_the_authority_of_the_cluster_if_no_host_matches_sni() -> None:
    config = configuration(landscape(sni(domainPatterns=["*.elsewhere.example.org"])))
    assert config["apiServerUrl"] == "https://api.virtual-garden.local.gardener.cloud"
    assert base64.b64decode(str(config["apiServerCaData"])) == b"bundle"


def test_kubeconfigs_of_users_trust_the_authority_of_the_cluster_without_sni() -> None:
    config = configuration(landscape(sni()))
    assert config["apiServerUrl"] == "https://api.virtual-garden.local.gardener.cloud"
    assert base64.b64decode(str(config["apiServerCaData"])) == b"bundle"


def test_the_authority_of_sni_is_passed_on_if_enabled() -> None:
    of = landscape(
        dashboard(propagateCAFromSNI=True),
        sni(secretName="sni", domainPatterns=["api.example.org"]),
        references=found(secret("sni", **{"ca.crt": "authority"})),
    )
    assert base64.b64decode(str(configuration(of)["apiServerCaData"])) == b"authority"


@pytest.mark.parametrize(
    ("data", "interval", "seconds"),
    [
        ({}, None, 900),
        ({}, "1m", 60),
        ({"webhookSecret": "x"}, None, None),
        ({"webhookSecret": "x"}, "1m", 60),
    ],
    ids=["default", "own interval", "notified", "notified, own interval"],
)
def test_github_is_polled_unless_it_notifies(
    data: dict[str, str], interval: str | None, seconds: int | None
) -> None:
    github = {**GITHUB, "pollInterval": interval}
    of = landscape(dashboard(gitHub=github), references=found(secret("github", **data)))
    assert map_at(configuration(of), "gitHub").get("pollIntervalSeconds") == seconds


def test_github_needs_its_secret() -> None:
    with pytest.raises(ReferenceMissing, match="Secret garden/github"):
        configuration(landscape(dashboard(gitHub=GITHUB)))


def test_with_github_one_pod_may_hold_the_lease_of_notifications() -> None:
    of = landscape(dashboard(gitHub=GITHUB), references=found(secret("github")))
    name = "Role gardener.cloud:system:dashboard-github-webhook"
    assert name in virtual(of)
    assert name not in virtual(landscape())
    assert "gardener-dashboard-github" in volumes(of)


def test_terminals_may_connect_only_to_allowed_hosts() -> None:
    terminal = {"container": {"image": "busybox"}, "allowedHosts": ["a.example.org"]}
    of = landscape(dashboard(terminal=terminal), terminal_seed="soil")
    config = configuration(of)
    assert map_at(config, "contentSecurityPolicy")["connectSrc"] == [
        "'self'",
        "wss://a.example.org",
        "https://a.example.org",
    ]
    assert map_at(config, "terminal", "gardenTerminalHost") == {"seedRef": "soil"}
    assert map_at(config, "frontend", "features") == {"terminalEnabled": True}


def test_the_dashboard_offers_no_terminals_if_they_are_disabled() -> None:
    of = landscape(dashboard(terminal=None))
    assert {"terminal", "contentSecurityPolicy", "frontend"} & configuration(of).keys() == set()


def test_settings_of_the_user_interface_also_reach_the_login_page() -> None:
    text = "landingPageUrl: https://example.org\nfeatures:\n  projects: true\n"
    of = landscape(
        dashboard(frontendConfigMapRef={"name": "frontend"}),
        references=found(config_map("frontend", **{"frontend-config.yaml": text})),
    )
    assert login(of)["landingPageUrl"] == "https://example.org"
    features = map_at(configuration(of), "frontend", "features")
    assert features == {"projects": True, "terminalEnabled": True}


@pytest.mark.parametrize("text", ["- a", "a: [", "{"])
def test_settings_of_the_user_interface_that_are_not_a_map_are_an_error(text: str) -> None:
    of = landscape(
        dashboard(frontendConfigMapRef={"name": "frontend"}),
        references=found(config_map("frontend", **{"frontend-config.yaml": text})),
    )
    with pytest.raises(OperatorError, match="garden/frontend"):
        configuration(of)


def test_pods_are_replaced_when_the_logos_change() -> None:
    checksums = []
    for content in ("YQ==", "Yg=="):
        logos = config_map("logos", "binaryData", **{"logo.svg": content})
        of = landscape(dashboard(assetsConfigMapRef={"name": "logos"}), references=found(logos))
        template = map_at(deployment(of), "spec", "template")
        checksums.append(annotations_of(template)["checksum-configmap-logos"])
        assert map_at(volumes(of)["gardener-dashboard-assets"], "configMap")["name"] == "logos"
    assert checksums[0] != checksums[1]


def test_the_certificate_is_from_the_garden_or_the_wildcard_or_generated() -> None:
    wildcard, own = (
        secret("wildcard", **{"tls.crt": "a", "tls.key": "b"}),
        secret("own", **{"tls.crt": "c", "tls.key": "d"}),
    )
    cases = {
        "garden-gardener-dashboard-gardener-dashboard-tls-0123abcd": landscape(
            wildcard_certificate=None
        ),
        "garden-gardener-dashboard-wildcard": landscape(wildcard_certificate=wildcard),
        "garden-gardener-dashboard-own": landscape(
            dashboard(tlsSecretName="own"), wildcard_certificate=wildcard, references=found(own)
        ),
    }
    for name, of in cases.items():
        (gateway,) = (
            obj
            for managed in GARDENER_DASHBOARD.objects(of).managed
            for obj in managed.objects
            if obj["kind"] == "Gateway"
        )
        (server,) = maps_at(gateway, "spec", "servers")
        assert map_at(server, "tls")["credentialName"] == name


def test_a_dashboard_without_ingress_is_not_exposed() -> None:
    of = landscape(dashboard(ingress={"enabled": False}))
    kinds = {
        obj["kind"] for managed in GARDENER_DASHBOARD.objects(of).managed for obj in managed.objects
    }
    assert kinds.isdisjoint({"Gateway", "VirtualService", "DestinationRule"})
