"""`pergola garden certificates` with the Secrets of a Garden."""

import asyncio
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, name_of
from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.garden.certificates import certificates
from pergola.kube.client import Client
from pergola.manifests import manifest
from pergola.pki import Authority
from pergola.runtime.task_group import gathered
from pergola.sandbox import Sandbox
from tests.support.objects import secret

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
        table = [line.split("   ") for line in capsys.readouterr().out.splitlines()]
        with pytest.raises(SystemExit):
            await asyncio.to_thread(certificates, output="json", cluster=options)
        rows = orjson.loads(capsys.readouterr().out)
    finally:
        await gathered(runtime.delete(SECRET, Key("garden", name_of(obj))) for obj in objects)
    assert late.value.code == 1
    lines = [[cell.strip() for cell in line if cell.strip()] for line in table]
    signs = "signs servers of the virtual cluster"
    assert [[*line[:2], *line[3:]] for line in lines] == [
        ["SECRET", "FOR", "IN", "RENEWED"],
        ["garden/ca-1", signs, "1 day ago", "by the operator, now", "expired"],
        ["garden/wildcard", "all hosts of the Garden", "2 days", "by you", "late"],
        ["garden/etcd-1", "server etcd", "20 days", "by the operator, in 10 days"],
    ]
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
