"""`pergola garden certificates` with the Secrets of a Garden."""

import asyncio
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from pergola.api.kinds import SECRET, SEED
from pergola.api.objects import JsonObject, Key, name_of
from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.garden.certificates import certificates
from pergola.kube.client import Client
from pergola.manifests import manifest
from pergola.pki import Authority
from pergola.runtime.task_group import gathered
from pergola.sandbox import Sandbox
from pergola.testing.crds import definition, serve
from tests.support.objects import secret
from tests.support.virtual_site import VirtualSite, virtual_sandbox, virtual_site

__all__ = ["virtual_sandbox", "virtual_site"]

NOW = datetime.now(UTC)
MONTH = timedelta(days=30)


def generated(name: str, expires: datetime) -> JsonObject:
    """Return a Secret as the operator's secrets manager labels it."""
    labels = {
        "managed-by": "secrets-manager",
        "manager-identity": "gardener-operator",
        "name": name,
        "issued-at-time": str(int((expires - MONTH).timestamp())),
        "valid-until-time": str(int(expires.timestamp())),
    }
    return manifest("v1", "Secret", f"{name}-1", namespace="garden", labels=labels)


def provided(name: str, expires: datetime) -> JsonObject:
    """Return a Secret with a certificate for all hosts."""
    pair = Authority.create("test", expires - MONTH, MONTH).pair
    found = secret("garden", name, **{"tls.crt": pair.public.decode()})
    found["metadata"]["labels"] = {"gardener.cloud/role": "garden-cert"}
    return found


async def test_certificates_are_listed_by_expiry_with_who_renews_them(
    runtime: Client, garden_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    day = timedelta(days=1)
    objects = [
        generated("etcd", NOW + 20.5 * day),
        generated("ca", NOW - 1.5 * day),
        provided("wildcard", NOW + 2.5 * day),
    ]
    await gathered(runtime.create(obj) for obj in objects)
    options = ClusterOptions(kubeconfig=garden_sandbox.kubeconfig)
    try:
        with pytest.raises(SystemExit) as late:
            await asyncio.to_thread(certificates, cluster=options)
        printed = capsys.readouterr()
        table = [line.split("   ") for line in printed.out.splitlines()]
        with pytest.raises(SystemExit):
            await asyncio.to_thread(certificates, output="json", cluster=options)
        rows = orjson.loads(capsys.readouterr().out)
    finally:
        await gathered(runtime.delete(SECRET, Key("garden", name_of(obj))) for obj in objects)
    assert late.value.code == 1
    lines = [[cell.strip() for cell in line if cell.strip()] for line in table]
    signs = "signs servers of the virtual cluster"
    assert {line[0] for line in lines[1:]} == {"runtime"}
    assert [[*line[1:3], *line[4:]] for line in lines] == [
        ["CERTIFICATE", "FOR", "IN", "RENEWED"],
        ["Secret garden/ca-1", signs, "1 day ago", "by the operator, now", "expired"],
        ["Secret garden/wildcard", "all hosts of the Garden", "2 days", "by you", "late"],
        ["Secret garden/etcd-1", "server etcd", "20 days", "by the operator, in 10 days"],
    ]
    assert printed.err.startswith("the virtual cluster was not read: Secret garden/")
    assert [(row["name"], row["renewedByOperator"], row["late"]) for row in rows] == [
        ("ca-1", True, True),
        ("wildcard", False, True),
        ("etcd-1", True, False),
    ]
    assert [row["daysLeft"] for row in rows] == [-2, 2, 20]


async def test_certificates_that_are_renewed_in_time_do_not_fail_the_command(
    runtime: Client, garden_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    obj = generated("etcd-client", NOW + timedelta(days=20))
    await runtime.create(obj)
    options = ClusterOptions(kubeconfig=garden_sandbox.kubeconfig)
    try:
        await asyncio.to_thread(certificates, cluster=options)
    finally:
        await runtime.delete(SECRET, Key("garden", name_of(obj)))
    assert "client etcd-client" in capsys.readouterr().out


async def test_certificates_of_the_virtual_cluster_are_listed_too(
    virtual_site: VirtualSite, garden_sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    day = timedelta(days=1)
    await virtual_site.publish(virtual_site.kubeconfig((await virtual_site.issue()).token))
    provided = Authority.create("test", NOW - MONTH, MONTH + 20.5 * day).pair
    tls = secret("garden", "own", **{"tls.crt": provided.public.decode(), "tls.key": "not read"})
    await virtual_site.client.create(manifest("v1", "Namespace", "garden"))
    await virtual_site.client.create({**tls, "type": "kubernetes.io/tls"})
    await serve(virtual_site.client, definition(SEED, scope="Cluster"))
    expires = (NOW + 3.5 * day).strftime("%Y-%m-%dT%H:%M:%SZ")
    seed = manifest("core.gardener.cloud/v1beta1", "Seed", "north")
    await virtual_site.client.create(
        {**seed, "status": {"clientCertificateExpirationTimestamp": expires}}
    )
    with pytest.raises(SystemExit):
        await asyncio.to_thread(
            certificates,
            output="json",
            cluster=ClusterOptions(kubeconfig=garden_sandbox.kubeconfig),
        )
    printed = capsys.readouterr()
    assert printed.err == ""
    assert [
        (row["cluster"], row["kind"], row["name"], row["purpose"], row["daysLeft"], row["late"])
        for row in orjson.loads(printed.out)
    ] == [
        ("virtual", "Seed", "north", "client gardenlet", 3, True),
        ("virtual", "Secret", "own", "a TLS Secret of users", 20, False),
    ]
