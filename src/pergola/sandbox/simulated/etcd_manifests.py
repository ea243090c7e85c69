"""The objects that one `Etcd` requires."""

from typing import Final

from pergola.api.objects import JsonObject, labels_of, map_at, name_of, namespace_of, uid_of
from pergola.kube.quantities import parse_quantity
from pergola.manifests import http_probe, manifest, mount, port, service, service_port
from pergola.sandbox.images.catalogue import named

CLIENT_PORT: Final = 2379

_PEERS: Final = "http://localhost:2380"
_METRICS_PORT: Final = 9095
_DATA: Final = "/var/etcd/data"
_TLS: Final = "/var/etcd/ssl/client"
_STORAGE: Final = "16Gi"


def objects(etcd: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return the Service for clients and the StatefulSet.

    There is one member, whatever the number of replicas, and no backup.
    """
    owner = {
        "apiVersion": etcd["apiVersion"],
        "kind": etcd["kind"],
        "name": name_of(etcd),
        "uid": uid_of(etcd),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made = (_service(etcd), _stateful_set(etcd))
    for obj in made:
        obj["metadata"]["ownerReferences"] = [owner]
    return made


def _service(etcd: JsonObject) -> JsonObject:
    return service(
        f"{name_of(etcd)}-client",
        namespace_of(etcd),
        _pods(etcd),
        service_port("client", CLIENT_PORT),
        labels=labels_of(etcd),
        annotations=map_at(etcd, "spec", "etcd", "clientService", "annotations"),
    )


def _stateful_set(etcd: JsonObject) -> JsonObject:
    spec = map_at(etcd, "spec")
    claim = spec.get("volumeClaimTemplate") or name_of(etcd)
    labels = {**map_at(spec, "labels"), **_pods(etcd)}
    pod = {
        "containers": [_container(etcd, claim)],
        "volumes": [
            {"name": name, "secret": {"secretName": s}} for name, s in _secrets(etcd).items()
        ],
        **({"priorityClassName": spec["priorityClassName"]} if "priorityClassName" in spec else {}),
    }
    storage = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": spec.get("storageCapacity", _STORAGE)}},
    }
    if "storageClass" in spec:
        storage["storageClassName"] = spec["storageClass"]
    return manifest(
        "apps/v1",
        "StatefulSet",
        name_of(etcd),
        namespace=namespace_of(etcd),
        labels=labels_of(etcd),
        spec={
            "replicas": min(spec["replicas"], 1),
            "serviceName": f"{name_of(etcd)}-peer",
            "selector": {"matchLabels": _pods(etcd)},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": claim}, "spec": storage}],
        },
    )


def _pods(etcd: JsonObject) -> dict[str, str]:
    return {
        **map_at(etcd, "spec", "selector", "matchLabels"),
        "app.kubernetes.io/part-of": name_of(etcd),
    }


def _secrets(etcd: JsonObject) -> dict[str, str]:
    tls = map_at(etcd, "spec", "etcd", "clientUrlTls")
    if not tls:
        return {}
    return {"server": tls["serverTLSSecretRef"]["name"], "ca": tls["tlsCASecretRef"]["name"]}


def _container(etcd: JsonObject, claim: str) -> JsonObject:
    image = named(["etcd"])[0]
    ports = map_at(etcd, "spec", "etcd")
    return {
        "name": "etcd",
        "image": f"{image.repository}:{image.version}",
        "command": ["etcd"],
        "args": _flags(etcd),
        "ports": [
            port("client", ports.get("clientPort", CLIENT_PORT)),
            port("metrics", _METRICS_PORT),
        ],
        "readinessProbe": http_probe("/readyz", _METRICS_PORT, periodSeconds=5),
        "volumeMounts": [
            mount(claim, _DATA),
            *(mount(name, f"{_TLS}/{name}") for name in _secrets(etcd)),
        ],
    }


def _flags(etcd: JsonObject) -> list[str]:
    name = name_of(etcd)
    quota = map_at(etcd, "spec", "etcd").get("quota")
    tls = map_at(etcd, "spec", "etcd", "clientUrlTls")
    scheme = "https" if tls else "http"
    flags = [
        f"--name={name}-0",
        f"--data-dir={_DATA}/new.etcd",
        f"--listen-client-urls={scheme}://0.0.0.0:{CLIENT_PORT}",
        f"--advertise-client-urls={scheme}://{name}-client:{CLIENT_PORT}",
        "--listen-peer-urls=http://0.0.0.0:2380",
        f"--initial-advertise-peer-urls={_PEERS}",
        f"--initial-cluster={name}-0={_PEERS}",
        f"--listen-metrics-urls=http://0.0.0.0:{_METRICS_PORT}",
        "--log-level=warn",
    ]
    if quota:
        flags.append(f"--quota-backend-bytes={int(parse_quantity(quota))}")
    if tls:
        bundle = tls["tlsCASecretRef"].get("dataKey", "ca.crt")
        flags += [
            "--client-cert-auth",
            f"--trusted-ca-file={_TLS}/ca/{bundle}",
            f"--cert-file={_TLS}/server/tls.crt",
            f"--key-file={_TLS}/server/tls.key",
        ]
    return flags
