"""`pergola garden export` and `import`: the same credentials in another runtime cluster."""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import JsonObject, Key, map_at, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.garden.runtime_cluster import GardenNotFound
from pergola.cli.garden.transfer import export, import_
from pergola.kube.client import Client
from pergola.operator.transfer import TransferError
from pergola.pki import KeyAlgorithm
from pergola.runtime.clock import FakeClock
from pergola.sandbox import Sandbox
from pergola.secrets_manager import (
    Certificate,
    CertificateAuthority,
    EncryptionKey,
    Options,
    Rotate,
    SecretsManager,
    SigningCA,
)
from tests.support.gardens import MINIMAL, SERVER, with_values

NOW = datetime.now(UTC).replace(microsecond=0)
KEEP = Options(persist=True, rotate=Rotate.KEEP_OLD)
POLICY = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "audit-policy", "namespace": "garden"},
    "data": {"policy": "exported"},
}
HOSTS = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "hosts",
        "namespace": "garden",
        "labels": {"gardener.cloud/role": "garden-cert"},
    },
    "type": "Opaque",
    "data": {"tls.key": base64.b64encode(b"the key of all hosts").decode()},
}
GARDEN_WITH_POLICY = with_values(
    MINIMAL, {f"{SERVER}.auditConfig.auditPolicy.configMapRef.name": "audit-policy"}
)


class Moving:
    """A runtime cluster that is the old one first, and then the new one."""

    def __init__(self, client: Client, sandbox: Sandbox, folder: Path) -> None:
        self.client = client
        self.file = folder / "garden.export"
        secret = folder / "passphrase"
        secret.write_text("correct horse battery\n")
        cluster = ClusterOptions(kubeconfig=sandbox.kubeconfig)
        self._export = partial(export, file=self.file, passphrase_file=secret, cluster=cluster)
        self._import = partial(import_, file=self.file, passphrase_file=secret, cluster=cluster)

    async def generate(self, **rotation_times: datetime) -> SecretsManager:
        """Generate credentials as the operator does, in a rotation of all if `at` is given."""
        manager = await SecretsManager.open(
            self.client,
            "garden",
            "gardener-operator",
            clock=FakeClock(NOW),
            rotation_times=dict.fromkeys(("ca", "key"), rotation_times["at"])
            if rotation_times
            else None,
        )
        ca = CertificateAuthority("ca", KeyAlgorithm.EC_P256)
        await manager.generate(ca, Options(rotate=Rotate.KEEP_OLD))
        await manager.generate(EncryptionKey("key"), KEEP)
        server = Certificate(
            name="server",
            common_name="server",
            hosts=("server",),
            for_server=True,
            algorithm=KeyAlgorithm.EC_P256,
        )
        await manager.generate(server, Options(signed_by=SigningCA("ca")))
        return manager

    async def exported(self) -> dict[str, JsonObject]:
        """Export a Garden; return its credentials by the names of their objects."""
        await self.export()
        return {name_of(obj): obj for obj in await self.secrets("ca,key")}

    async def export(self) -> None:
        await asyncio.to_thread(self._export)

    async def import_(self, **flags: bool) -> None:
        await asyncio.to_thread(partial(self._import, **flags))

    async def secrets(self, names: str = "ca,key,server") -> list[JsonObject]:
        return await self.client.list(SECRET, "garden", labels=f"name in ({names})")

    async def move(self) -> None:
        """Turn the cluster into the new one by deleting everything of the old one."""
        for kind in (SECRET, CONFIG_MAP):
            for obj in await self.client.list(kind, "garden", metadata_only=True):
                await self.client.delete(kind, Key.of(obj))
        for garden in await self.client.list(GARDEN):
            await self.client.delete(GARDEN, Key.of(garden))


@pytest.fixture
async def moving(runtime: Client, garden_sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Moving]:
    found = Moving(runtime, garden_sandbox, tmp_path)
    await found.move()
    for obj in (GARDEN_WITH_POLICY, POLICY, HOSTS):
        await runtime.create(obj)
    yield found
    await found.move()


async def test_the_new_cluster_gets_the_durable_credentials_and_generates_the_others(
    moving: Moving,
) -> None:
    old = await moving.generate()
    exported = await moving.exported()
    await moving.move()

    await moving.import_()
    assert {name_of(each) for each in await moving.secrets()} == exported.keys()
    new = await moving.generate()

    for name in ("ca", "key"):
        assert new.current(name).data == old.current(name).data
        assert new.current(name).labels == old.current(name).labels
        assert new.current(name).obj["immutable"] is True
        assert new.current(name).obj["type"] == old.current(name).obj["type"]
    assert new.get("ca").data == old.get("ca").data
    assert new.current("server").data != old.current("server").data
    assert await new.cleanup() == []


async def test_a_rotation_continues_with_old_and_new_credentials(
    moving: Moving, capsys: pytest.CaptureFixture[str]
) -> None:
    await moving.generate()
    await moving.client.patch(
        GARDEN,
        Key("", "minimal"),
        {"status": {"credentials": {"rotation": {"serviceAccountKey": {"phase": "Prepared"}}}}},
        subresource="status",
    )
    old = await moving.generate(at=NOW + timedelta(hours=1))
    await moving.export()
    assert "(serviceAccountKey: Prepared)" in capsys.readouterr().err
    await moving.move()

    await moving.import_()
    assert "(serviceAccountKey: Prepared)" in capsys.readouterr().err
    new = await moving.generate()

    for name in ("ca", "key"):
        before, after = old.old(name), new.old(name)
        assert before is not None
        assert after is not None
        assert after.data == before.data
        assert new.current(name).data == old.current(name).data
    assert new.get("ca").data == old.get("ca").data


async def test_objects_of_users_are_moved_and_those_of_the_new_cluster_are_kept(
    moving: Moving, capsys: pytest.CaptureFixture[str]
) -> None:
    await moving.generate()
    await moving.export()
    await moving.move()
    await moving.client.create({**POLICY, "data": {"policy": "of the new cluster"}})

    await moving.import_()

    policy = await moving.client.get(CONFIG_MAP, Key("garden", "audit-policy"))
    assert policy["data"] == {"policy": "of the new cluster"}
    hosts = await moving.client.get(SECRET, Key("garden", "hosts"))
    assert (hosts["data"], hosts["metadata"]["labels"]) == (
        HOSTS["data"],
        map_at(HOSTS, "metadata", "labels"),
    )
    printed = capsys.readouterr()
    assert "2 of 2 credentials and 1 of 2 provided objects created" in printed.out
    assert "ConfigMap garden/audit-policy exists with other content" in printed.err


async def test_the_garden_is_only_created_on_request(
    moving: Moving, capsys: pytest.CaptureFixture[str]
) -> None:
    await moving.generate()
    await moving.export()
    spec = (await moving.client.get(GARDEN, Key("", "minimal")))["spec"]
    await moving.move()

    await moving.import_(dry_run=True, create_garden=True)
    assert await moving.client.list(SECRET, "garden") == []
    assert await moving.client.list(GARDEN) == []

    await moving.import_()
    assert await moving.client.list(GARDEN) == []
    assert "put the volumes or backups of etcd into place" in capsys.readouterr().out

    await moving.import_(create_garden=True)
    assert (await moving.client.get(GARDEN, Key("", "minimal")))["spec"] == spec
    assert "0 of 2 credentials" in capsys.readouterr().out
    await moving.import_(create_garden=True)
    assert "the Garden exists" in capsys.readouterr().out

    await moving.import_(show_garden=True)
    assert capsys.readouterr().out.startswith("apiVersion: operator.gardener.cloud/v1alpha1\n")


async def test_an_interrupted_import_can_be_continued(
    moving: Moving, capsys: pytest.CaptureFixture[str]
) -> None:
    await moving.generate()
    exported = await moving.exported()
    await moving.move()
    first = next(iter(exported.values()))
    metadata = {name: first["metadata"][name] for name in ("name", "namespace", "labels")}
    await moving.client.create({**first, "metadata": metadata})

    await moving.import_()

    assert "1 of 2 credentials" in capsys.readouterr().out
    assert {name_of(each) for each in await moving.secrets()} == exported.keys()


async def test_a_cluster_with_other_credentials_is_refused_before_any_write(
    moving: Moving,
) -> None:
    await moving.generate()
    await moving.export()
    await moving.move()
    await moving.generate(at=NOW + timedelta(hours=1))
    before = {name_of(obj) for obj in await moving.client.list(SECRET, "garden")}

    with pytest.raises(TransferError) as caught:
        await moving.import_()

    assert str(caught.value).startswith("the cluster has other credentials than the file: Secret")
    assert {name_of(obj) for obj in await moving.client.list(SECRET, "garden")} == before


async def test_a_secret_of_the_same_name_with_other_data_is_refused(moving: Moving) -> None:
    await moving.generate()
    exported = await moving.exported()
    await moving.move()
    name = min(exported)
    other = {"metadata": {"name": name, "namespace": "garden"}, "data": {"other": "AAAA"}}
    await moving.client.create({"apiVersion": "v1", "kind": "Secret", **other})

    with pytest.raises(TransferError, match=f"Secret garden/{name}; nothing was written"):
        await moving.import_()

    assert len(await moving.client.list(SECRET, "garden")) == 1


async def test_a_file_of_another_garden_is_refused(moving: Moving) -> None:
    await moving.generate()
    await moving.export()
    await moving.move()
    identity = "spec.virtualCluster.gardener.clusterIdentity"
    await moving.client.create(with_values(MINIMAL, {identity: "other"}))

    with pytest.raises(TransferError) as caught:
        await moving.import_()

    assert str(caught.value) == (
        'the file is of Garden minimal (cluster identity "minimal"), but the cluster has Garden '
        'minimal (cluster identity "other")'
    )
    assert await moving.client.list(SECRET, "garden") == []


async def test_values_are_neither_printed_nor_readable_in_the_file(
    moving: Moving, capsys: pytest.CaptureFixture[str]
) -> None:
    await moving.generate()
    exported = await moving.exported()
    values = {value for obj in (*exported.values(), HOSTS) for value in obj["data"].values()}
    await moving.move()

    await moving.import_()

    printed = capsys.readouterr()
    sealed = moving.file.read_bytes()
    for value in values - {""}:
        assert value not in printed.out + printed.err
        assert value.encode() not in sealed
        assert len(raw := base64.b64decode(value)) < 8 or raw not in sealed


async def test_a_garden_without_credentials_is_not_exported(moving: Moving) -> None:
    with pytest.raises(TransferError, match="Garden minimal has no credentials yet"):
        await moving.export()
    assert not moving.file.exists()

    await moving.move()
    with pytest.raises(GardenNotFound):
        await moving.export()
