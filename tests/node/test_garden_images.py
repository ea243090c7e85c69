"""Images of a Garden at work: etcd with its backup sidecar, as etcd-druid deploys them."""

import asyncio
import json
import ssl
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pergola.api.kinds import POD, STATEFUL_SET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.pki import Authority, Pair, Template
from pergola.sandbox import Sandbox
from pergola.testing.shared import require_images
from pergola.testing.waiting import until
from tests.support.node_workloads import is_ready

pytestmark = [pytest.mark.soak("node-images"), pytest.mark.node]

ETCD_WRAPPER = "europe-docker.pkg.dev/gardener-project/public/gardener/etcd-wrapper:v0.8.1"
BACKUP_RESTORE = "europe-docker.pkg.dev/gardener-project/public/gardener/etcdbrctl:v0.44.1"
LABELS = {"app": "main"}
DATA, TLS, BACKUP_TLS = "/var/etcd/data", "/var/etcd/ssl", "/var/etcdbr/ssl"
KEY, VALUE = "a2V5", "dmFsdWU="  # base64: key, value
NONROOT = 65532


async def test_etcd_serves_data_that_its_sidecar_has_validated_and_keeps_it(
    node_sandbox: Sandbox, node_client: Client, node_namespace: str, tmp_path: Path
) -> None:
    require_images("etcd-wrapper", "etcd-backup-restore")
    trust = certificates(node_namespace, tmp_path)
    for obj in etcd_with_a_sidecar(node_namespace, trust):
        await node_client.create(obj)
    await until(node_client, STATEFUL_SET, Key(node_namespace, "main"), is_ready)
    first = await node_client.get(POD, Key(node_namespace, "main-0"))
    await call(node_sandbox, first, tmp_path, "put", {"key": KEY, "value": VALUE})

    await node_client.delete(POD, Key(node_namespace, "main-0"))
    second = await until(
        node_client,
        POD,
        Key(node_namespace, "main-0"),
        lambda pod: pod["metadata"]["uid"] != first["metadata"]["uid"] and is_ready(pod),
    )

    found = await call(node_sandbox, second, tmp_path, "range", {"key": KEY})
    assert [pair["value"] for pair in found["kvs"]] == [VALUE]


def certificates(namespace: str, folder: Path) -> dict[str, str]:
    """Return the content of a Secret with TLS, and write the client's files to a folder."""
    now, lifetime = datetime.now(UTC), timedelta(days=1)
    authority = Authority.create("etcd", now, lifetime)
    hosts = ("main-local", f"main-0.main.{namespace}.svc", "127.0.0.1")
    # The certificate is a client's, too: etcd's JSON gateway uses it as a client of etcd.
    both = Template(
        common_name="etcd", lifetime=lifetime, hosts=hosts, for_server=True, for_client=True
    )
    server = authority.issue(both, now)
    client = authority.issue_client("etcd-client", [], now, lifetime)
    (folder / "ca.crt").write_bytes(authority.pair.public)
    (folder / "client.pem").write_bytes(client.public + client.private)
    pairs: dict[str, Pair] = {"server": server, "client": client}
    entries = {f"{name}.crt": pair.public.decode() for name, pair in pairs.items()}
    entries |= {f"{name}.key": pair.private.decode() for name, pair in pairs.items()}
    return entries | {"ca.crt": authority.pair.public.decode()}


def etcd_with_a_sidecar(namespace: str, trust: dict[str, str]) -> list[JsonObject]:
    """Return one member with TLS for clients and sidecar, as etcd-druid configures it."""
    meta = {"name": "main", "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": trust},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"etcd.conf.yaml": json.dumps(configuration(namespace))},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": LABELS,
                "ports": [{"name": "client", "port": 2379}, {"name": "peer", "port": 2380}],
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": meta,
            "spec": {
                "serviceName": "main",
                "replicas": 1,
                "selector": {"matchLabels": LABELS},
                "template": {"metadata": {"labels": LABELS}, "spec": pod_spec()},
                "volumeClaimTemplates": [
                    {
                        "metadata": {"name": "data"},
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "100Mi"}},
                        },
                    }
                ],
            },
        },
    ]


def configuration(namespace: str) -> JsonObject:
    """Return the configuration from which the sidecar derives that of the member."""
    host = f"main-0.main.{namespace}.svc"
    return {
        "name": "etcd-config",
        "data-dir": f"{DATA}/new.etcd",
        "metrics": "basic",
        "snapshot-count": 10000,
        "enable-grpc-gateway": True,
        "quota-backend-bytes": 8 << 30,
        "initial-cluster-token": "etcd-cluster",
        "initial-cluster-state": "new",
        "initial-cluster": f"main-0=http://{host}:2380",
        "auto-compaction-mode": "periodic",
        "auto-compaction-retention": "30m",
        "listen-peer-urls": "http://0.0.0.0:2380",
        "listen-client-urls": "https://0.0.0.0:2379",
        "initial-advertise-peer-urls": {"main-0": [f"http://{host}:2380"]},
        "advertise-client-urls": {"main-0": [f"https://{host}:2379"]},
        "client-transport-security": {
            "cert-file": f"{TLS}/server.crt",
            "key-file": f"{TLS}/server.key",
            "client-cert-auth": True,
            "trusted-ca-file": f"{TLS}/ca.crt",
            "auto-tls": False,
        },
        "next-cluster-version-compatible": True,
    }


def pod_spec() -> JsonObject:
    ready = {"path": "/readyz", "port": 9095, "scheme": "HTTPS"}
    data, tls = {"name": "data", "mountPath": DATA}, {"name": "tls", "mountPath": TLS}
    return {
        "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["main-local"]}],
        "shareProcessNamespace": True,
        "securityContext": {
            "runAsUser": NONROOT,
            "runAsGroup": NONROOT,
            "runAsNonRoot": True,
            "fsGroup": NONROOT,
        },
        "terminationGracePeriodSeconds": 5,
        "containers": [
            {
                "name": "etcd",
                "image": ETCD_WRAPPER,
                "args": [
                    "start-etcd",
                    "--backup-restore-host-port=main-local:8080",
                    "--etcd-server-name=main-local",
                    "--backup-restore-tls-enabled=true",
                    f"--backup-restore-ca-cert-bundle-path={BACKUP_TLS}/ca.crt",
                    f"--etcd-client-cert-path={TLS}/client.crt",
                    f"--etcd-client-key-path={TLS}/client.key",
                    "--etcd-client-port=2379",
                    "--etcd-wrapper-port=9095",
                ],
                "readinessProbe": {"httpGet": ready, "periodSeconds": 1},
                "securityContext": {"allowPrivilegeEscalation": False},
                "volumeMounts": [data, tls, {"name": "tls", "mountPath": BACKUP_TLS}],
            },
            {
                "name": "backup-restore",
                "image": BACKUP_RESTORE,
                "args": [
                    "server",
                    f"--cacert={TLS}/ca.crt",
                    f"--cert={TLS}/client.crt",
                    f"--key={TLS}/client.key",
                    "--insecure-transport=false",
                    "--insecure-skip-tls-verify=false",
                    "--endpoints=https://main-local:2379",
                    "--service-endpoints=https://main-local:2379",
                    f"--server-cert={BACKUP_TLS}/server.crt",
                    f"--server-key={BACKUP_TLS}/server.key",
                    f"--data-dir={DATA}/new.etcd",
                    f"--restoration-temp-snapshots-dir={DATA}/restoration.temp",
                    f"--snapstore-temp-directory={DATA}/temp",
                    "--etcd-connection-timeout=5m",
                    "--use-etcd-wrapper=true",
                ],
                "env": [
                    {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{path}"}}}
                    for name, path in (("POD_NAME", "name"), ("POD_NAMESPACE", "namespace"))
                ],
                "securityContext": {"allowPrivilegeEscalation": False},
                "volumeMounts": [
                    data,
                    tls,
                    {"name": "tls", "mountPath": BACKUP_TLS},
                    {"name": "configuration", "mountPath": "/var/etcd/config"},
                ],
            },
        ],
        "volumes": [
            {"name": "tls", "secret": {"secretName": "main", "defaultMode": 0o640}},
            {"name": "configuration", "configMap": {"name": "main", "defaultMode": 0o640}},
        ],
    }


async def call(
    sandbox: Sandbox, pod: JsonObject, folder: Path, method: str, body: dict[str, str]
) -> JsonObject:
    """Call the JSON gateway of the etcd in a pod with the client's certificate."""
    port = await sandbox.forward(map_at(pod, "status")["podIP"], 2379)
    trust = ssl.create_default_context(cafile=folder / "ca.crt")
    trust.load_cert_chain(folder / "client.pem")
    request = urllib.request.Request(
        f"https://127.0.0.1:{port}/v3/kv/{method}", json.dumps(body).encode()
    )

    def fetch() -> JsonObject:
        with urllib.request.urlopen(request, timeout=60, context=trust) as answer:  # noqa: S310
            content: JsonObject = json.load(answer)
            return content

    return await asyncio.to_thread(fetch)
