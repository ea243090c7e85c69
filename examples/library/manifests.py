"""Objects of Kubernetes: `pergola.manifests`."""

from pergola.api import JsonObject
from pergola.manifests import (
    account,
    at_most_one_per_node,
    capable,
    cluster_role,
    config_map_volume,
    disruption_budget,
    empty_dir,
    env,
    exec_probe,
    flag,
    from_config_map,
    from_pod,
    group,
    host_path,
    host_port,
    http_probe,
    https_probe,
    manifest,
    mount,
    non_root,
    port,
    projected,
    requests,
    restricted,
    role,
    rule,
    secret_files,
    selector,
    service,
    service_account,
    service_port,
    spread,
    target_reference,
    token_mount,
    token_volume,
    user,
    vertical_pod_autoscaler,
)

LABELS = {"app": "web"}


def workload() -> None:
    """Build a Deployment that the Pod Security Standard `restricted` admits."""
    container: JsonObject = {
        "name": "web",
        "image": "registry.example/web:1",
        "args": [f"--verbose={flag(True)}"],
        "env": env(
            LEVEL="info", POD=from_pod("metadata.name"), MODE=from_config_map("web", "mode")
        ),
        "ports": [port("http", 8080)],
        "livenessProbe": http_probe("/healthz", 8080, periodSeconds=10),
        "readinessProbe": https_probe("/readyz", "http"),
        "startupProbe": exec_probe("test", "-e", "/run/started"),
        "resources": requests(cpu="10m", memory="32Mi"),
        "securityContext": restricted(),
        "volumeMounts": [mount("config", "/etc/web", readOnly=True), mount("cache", "/var/cache")],
    }
    pod = {
        "containers": [container],
        "securityContext": non_root(65532),
        "topologySpreadConstraints": [spread(LABELS)],
        "affinity": at_most_one_per_node(LABELS),
        "volumes": [config_map_volume("config", "web"), empty_dir("cache")],
    }
    template = {"metadata": {"labels": LABELS}, "spec": pod}
    spec = {"selector": selector(LABELS), "template": template}
    web = manifest("apps/v1", "Deployment", "web", namespace="shop", labels=LABELS, spec=spec)
    assert web["spec"]["selector"] == {"matchLabels": LABELS}
    assert container["env"][0] == {"name": "LEVEL", "value": "info"}


def volumes() -> None:
    """Mount what a process needs of Secrets, of its node, and of the token of another cluster."""
    files = projected("tls", secret_files("web-tls", {"tls.crt": "server.crt"}), mode=0o440)
    assert files["projected"]["sources"][0]["secret"]["name"] == "web-tls"
    assert host_path("logs", "/var/log", "Directory")["hostPath"]["path"] == "/var/log"
    assert token_volume()["name"] == token_mount()["name"]
    assert host_port("metrics", 9100)["hostPort"] == 9100
    assert capable("NET_ADMIN")["capabilities"]["add"] == ["NET_ADMIN"]


def access() -> None:
    """Grant rights to a ServiceAccount, a user and a group."""
    reads = [rule("", ["configmaps"], ["get", "list", "watch"])]
    found = [
        service_account("web", "shop"),
        *role("web", "shop", reads, account("web", "shop")),
        *cluster_role("readers", reads, user("ann"), group("support")),
    ]
    assert [each["kind"] for each in found] == [
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
    ]


def surroundings() -> None:
    """Build what stands beside a workload: a Service, a budget, an autoscaler."""
    web = service("web", "shop", LABELS, service_port("http", 80, "http"))
    assert web["spec"]["selector"] == LABELS
    budget = disruption_budget("web", "shop", LABELS)
    assert budget["spec"]["selector"] == {"matchLabels": LABELS}
    scaler = vertical_pod_autoscaler("web", "shop", target_reference("Deployment", "web"), "web")
    assert scaler["spec"]["targetRef"]["name"] == "web"
