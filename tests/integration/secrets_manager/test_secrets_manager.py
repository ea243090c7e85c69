"""Credentials as Secrets of a namespace, on a real API server (spec 20 §10)."""

import base64
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, labels_of, name_of, resource_version_of, uid_of
from pergola.kube.errors import Invalid
from pergola.kube.kubeconfig import load
from pergola.pki import (
    Authority,
    KeyAlgorithm,
    Pair,
    read_bundle,
    read_certificate,
    signed_by,
)
from pergola.runtime.clock import FakeClock
from pergola.secrets_manager import (
    BasicAuth,
    Certificate,
    CertificateAuthority,
    EncryptionKey,
    Irreplaceable,
    Kubeconfig,
    ManagedSecret,
    Options,
    Rotate,
    RsaKey,
    SecretLost,
    SecretsManager,
    SecretsManagerError,
    SigningCA,
    Use,
)
from pergola.secrets_manager.configs import SecretData
from pergola.secrets_manager.lifetime import default_validity
from pergola.testing.world import RecordingClient
from tests.support.documented.symptoms import symptom

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
IDENTITY = "gardener-operator"
CA = CertificateAuthority("ca", KeyAlgorithm.EC_P256)
KEEP = Options(rotate=Rotate.KEEP_OLD)
RUNTIME = Options(rotate=Rotate.KEEP_OLD, validity=30 * DAY, ignore_old_after=DAY)
SERVER = Certificate(
    name="server",
    common_name="server",
    hosts=("server.garden", "127.0.0.1"),
    for_server=True,
    algorithm=KeyAlgorithm.EC_P256,
)
CLIENT = Certificate(
    name="client",
    common_name="jane",
    organizations=("admins",),
    for_client=True,
    algorithm=KeyAlgorithm.EC_P256,
)
SIGNED = Options(signed_by=SigningCA("ca"))


class Landscape:
    """A namespace with managed Secrets, and a clock."""

    def __init__(self, client: RecordingClient, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.clock = FakeClock(NOW)

    async def manager(self, **rotation_times: datetime) -> SecretsManager:
        """Start a run, and return its manager."""
        return await SecretsManager.open(
            self.client,
            self.namespace,
            IDENTITY,
            clock=self.clock,
            rotation_times={name.replace("_", "-"): at for name, at in rotation_times.items()},
        )

    async def run(self, options: Options = KEEP, **rotation_times: datetime) -> SecretsManager:
        """Generate an authority, a server and a client, and clean up."""
        manager = await self.manager(**rotation_times)
        await manager.generate(CA, options)
        await manager.generate(SERVER, SIGNED)
        await manager.generate(CLIENT, SIGNED)
        await manager.cleanup()
        return manager

    async def secrets(self, name: str = "") -> list[JsonObject]:
        """Return all managed Secrets, or those of one config."""
        labels = f"managed-by=secrets-manager,name={name}" if name else "managed-by"
        return await self.client.list(SECRET, self.namespace, labels=labels)

    async def create(self, name: str, labels: dict[str, str], data: dict[str, bytes]) -> None:
        await self.client.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
                "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
            }
        )

    async def create_of_original(self, name: str, suffix: str, data: dict[str, bytes]) -> None:
        """Create a Secret with the labels of the original's manager."""
        labels = {
            "name": name,
            "managed-by": "secrets-manager",
            "manager-identity": IDENTITY,
            "checksum-of-config": "14302786093210831498",
            "last-rotation-initiation-time": "",
        }
        await self.create(f"{name}-{suffix}", labels, data)


@pytest.fixture
async def landscape(kubeconfig: Path, namespace: str) -> AsyncIterator[Landscape]:
    async with RecordingClient.connect(load(kubeconfig)) as client:
        yield Landscape(client, namespace)


def authority(name: str = "original") -> dict[str, bytes]:
    pair = Authority.create(name, NOW, 3650 * DAY).pair
    return {"ca.crt": pair.public, "ca.key": pair.private}


def checksums(secret: JsonObject) -> dict[str, str]:
    """Return the labels from which the name of a Secret is computed."""
    return {name: text for name, text in labels_of(secret).items() if name.startswith("checksum")}


def signer(secret: ManagedSecret, manager: SecretsManager) -> bool:
    """Return whether the current authority signed a certificate."""
    return signed_by(
        read_certificate(secret.data["tls.crt"]),
        read_certificate(manager.current("ca").data["ca.crt"]),
    )


async def test_the_first_run_creates_one_current_secret_of_each_config_with_all_labels(
    landscape: Landscape,
) -> None:
    manager = await landscape.run()

    (ca,) = await landscape.secrets("ca")
    labels = labels_of(ca)
    assert labels["manager-identity"] == IDENTITY
    assert labels["last-rotation-initiation-time"] == ""
    assert int(labels["issued-at-time"]) == int((NOW - timedelta(minutes=1)).timestamp())
    assert int(labels["valid-until-time"]) == int((NOW + default_validity(NOW)).timestamp())
    assert ca["immutable"] is True
    assert ca["type"] == "Opaque"
    (server,) = await landscape.secrets("server")
    assert server["type"] == "kubernetes.io/tls"
    assert labels_of(server)["checksum-of-signing-ca"]
    (bundle,) = await landscape.secrets("ca-bundle")
    assert labels_of(bundle)["bundle-for"] == "ca"
    assert base64.b64decode(bundle["data"]["bundle.crt"]) == manager.current("ca").data["ca.crt"]


async def test_an_authority_is_named_like_its_object(landscape: Landscape) -> None:
    manager = await landscape.run()

    ca = manager.current("ca")
    subject = read_certificate(ca.data["ca.crt"]).subject.rfc4514_string()
    assert subject == f"CN={ca.object_name}"


async def test_a_second_run_writes_nothing(landscape: Landscape) -> None:
    await landscape.run()
    before = {name_of(s): resource_version_of(s) for s in await landscape.secrets()}
    landscape.client.writes.clear()

    landscape.clock.set(NOW + DAY)
    await landscape.run()

    assert landscape.client.writes == []
    assert {name_of(s): resource_version_of(s) for s in await landscape.secrets()} == before


async def test_the_data_of_a_managed_secret_is_immutable(landscape: Landscape) -> None:
    manager = await landscape.run()

    key = Key(landscape.namespace, manager.current("server").object_name)
    with pytest.raises(Invalid, match="immutable"):
        await landscape.client.patch(SECRET, key, {"data": {"tls.crt": "YQ=="}})


async def test_a_secret_that_was_restored_as_mutable_becomes_immutable_again(
    landscape: Landscape,
) -> None:
    manager = await landscape.run()
    current = manager.current("server")
    key = Key(landscape.namespace, current.object_name)
    await landscape.client.delete(SECRET, key)
    await landscape.create(key.name, dict(current.labels), dict(current.data))

    await landscape.run()

    restored = await landscape.client.get(SECRET, key)
    assert restored["immutable"] is True
    assert labels_of(restored) == current.labels
    assert ManagedSecret.of(restored).data == current.data


@pytest.mark.parametrize(
    "edit",
    [
        {"name": "other"},
        {"managed-by": None},
        {"manager-identity": "somebody"},
        {"checksum-of-config": "0", "issued-at-time": None},
        {"persist": "true"},
        {"gardener.cloud/role": "somebody"},
    ],
)
async def test_edited_labels_are_restored(
    landscape: Landscape, edit: dict[str, str | None]
) -> None:
    manager = await landscape.run()
    secret = manager.current("server")
    key = Key(landscape.namespace, secret.object_name)
    await landscape.client.patch(SECRET, key, {"metadata": {"labels": edit}})

    await landscape.run()

    restored = await landscape.client.get(SECRET, key)
    assert uid_of(restored) == secret.uid
    assert labels_of(restored) == secret.labels


async def test_a_label_that_is_no_longer_desired_is_removed(landscape: Landscape) -> None:
    password = BasicAuth("password")
    manager = await landscape.manager()
    await manager.generate(password, Options(labels={"gardener.cloud/role": "monitoring"}))

    manager = await landscape.manager()
    secret = await manager.generate(password)

    assert "gardener.cloud/role" not in secret.labels


async def test_a_certificate_with_another_validity_is_issued_again(landscape: Landscape) -> None:
    first = (await landscape.run()).current("server")

    manager = await landscape.manager()
    await manager.generate(CA, KEEP)
    second = await manager.generate(SERVER, replace(SIGNED, validity=30 * DAY))

    assert second.data != first.data
    assert second.valid_until == NOW + 30 * DAY


async def test_a_certificate_may_be_valid_for_longer_than_its_authority(
    landscape: Landscape,
) -> None:
    manager = await landscape.manager()
    await manager.generate(CA, RUNTIME)
    server = await manager.generate(SERVER, SIGNED)

    assert server.valid_until == NOW + default_validity(NOW)


async def test_an_old_secret_with_the_same_data_is_kept_for_those_who_mount_it(
    landscape: Landscape,
) -> None:
    config, options = Kubeconfig("kubeconfig", b"{}"), replace(KEEP, validity=30 * DAY)
    first = await (await landscape.manager()).generate(config, options)
    landscape.clock.set(NOW + 25 * DAY)

    manager = await landscape.manager()
    second = await manager.generate(config, options)
    await manager.cleanup()

    assert second.data == first.data
    old = manager.old("kubeconfig")
    assert old is not None
    assert old.object_name == first.object_name


async def test_an_automatic_authority_is_replaced_in_time_and_the_old_one_is_still_trusted(
    landscape: Landscape,
) -> None:
    first = await landscape.run(RUNTIME)
    landscape.clock.set(NOW + 0.81 * 30 * DAY)

    second = await landscape.run(RUNTIME)

    old, new = first.current("ca"), second.current("ca")
    assert new.object_name != old.object_name
    bundle = read_bundle(second.get("ca").data["bundle.crt"])
    assert bundle == [read_certificate(s.data["ca.crt"]) for s in (new, old)]
    # Clients of the server may only know the old bundle, while the client meets servers that know
    # the new one.
    assert not signer(second.current("server"), second)
    assert signer(second.current("client"), second)


async def test_after_a_day_the_old_authority_is_deleted_and_servers_are_reissued(
    landscape: Landscape,
) -> None:
    await landscape.run(RUNTIME)
    landscape.clock.set(NOW + 25 * DAY)
    await landscape.run(RUNTIME)
    landscape.clock.set(NOW + 26 * DAY + timedelta(minutes=2))

    third = await landscape.run(RUNTIME)

    assert third.old("ca") is None
    assert len(read_bundle(third.get("ca").data["bundle.crt"])) == 1
    assert signer(third.current("server"), third)
    assert len(await landscape.secrets("ca")) == 1


async def test_an_authority_that_expired_between_two_runs_signs_nothing(
    landscape: Landscape,
) -> None:
    await landscape.run(RUNTIME)
    landscape.clock.set(NOW + 31 * DAY)
    manager = await landscape.run(RUNTIME)
    for name in ("server", "client"):
        assert signer(manager.current(name), manager)
    assert len(read_bundle(manager.get("ca").data["bundle.crt"])) == 1


async def test_an_authority_that_is_renewed_repeatedly_leaves_no_old_secrets(
    landscape: Landscape,
) -> None:
    for days in range(0, 120, 5):
        landscape.clock.set(NOW + days * DAY)
        await landscape.run(RUNTIME)

        assert len(await landscape.secrets()) <= 6


async def test_a_user_starts_a_rotation_and_completes_it(landscape: Landscape) -> None:
    first = await landscape.run()
    started = NOW + DAY
    landscape.clock.set(started + timedelta(seconds=1))

    preparing = await landscape.run(ca=started)
    assert preparing.old("ca") is not None
    assert preparing.current("ca").data != first.current("ca").data
    assert preparing.current("ca").initiated == str(int(started.timestamp()))

    completing = await landscape.run(Options(rotate=Rotate.KEEP_OLD, ignore_old=True), ca=started)
    assert completing.current("ca").uid == preparing.current("ca").uid
    assert completing.old("ca") is None
    assert signer(completing.current("server"), completing)
    assert len(await landscape.secrets("ca")) == 1


async def test_the_signing_authority_can_be_chosen(landscape: Landscape) -> None:
    await landscape.run()
    manager = await landscape.manager(ca=NOW + DAY)
    await manager.generate(CA, KEEP)

    server = await manager.generate(SERVER, Options(signed_by=SigningCA("ca", Use.CURRENT)))
    client = await manager.generate(CLIENT, Options(signed_by=SigningCA("ca", Use.OLD)))

    assert signer(server, manager)
    assert not signer(client, manager)


async def test_labelled_data_is_used_verbatim(landscape: Landscape) -> None:
    data = authority()
    await landscape.create("mine", {"secrets-manager-use-data-for-name": "ca"}, data)

    manager = await landscape.run()

    assert manager.current("ca").data == data
    assert signer(manager.current("server"), manager)


async def test_two_labelled_secrets_are_an_error_and_nothing_is_created(
    landscape: Landscape,
) -> None:
    for name in ("one", "two"):
        await landscape.create(name, {"secrets-manager-use-data-for-name": "ca"}, authority())
    landscape.client.writes.clear()

    with pytest.raises(SecretsManagerError, match=r"/one, .*/two; keep it on one"):
        await landscape.run()

    assert landscape.client.writes == []


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"ca.crt": b"x"}, "it lacks ca.key"),
        ({"ca.crt": b"x", "ca.key": b"y"}, "not a PEM certificate"),
        ({**authority(), "ca.key": authority()["ca.key"]}, "does not belong to its certificate"),
    ],
)
async def test_unusable_labelled_data_is_an_error_and_never_replaced(
    landscape: Landscape, data: dict[str, bytes], problem: str
) -> None:
    await landscape.create("mine", {"secrets-manager-use-data-for-name": "ca"}, data)
    landscape.client.writes.clear()

    with pytest.raises(SecretsManagerError, match=problem):
        await landscape.run()

    assert landscape.client.writes == []


async def test_a_rotation_does_not_reuse_labelled_data(landscape: Landscape) -> None:
    data = authority()
    await landscape.create("mine", {"secrets-manager-use-data-for-name": "ca"}, data)
    await landscape.run()

    rotated = await landscape.run(ca=NOW + DAY)

    assert rotated.current("ca").data != data
    old = rotated.old("ca")
    assert old is not None
    assert old.data == data


async def test_a_landscape_of_the_original_keeps_its_secrets(landscape: Landscape) -> None:
    data = authority()
    await landscape.create_of_original("ca", "f6032ea0", data)
    await landscape.create_of_original("ca-bundle", "51bb9dad", {"bundle.crt": data["ca.crt"]})
    key = {"provider": b"", "key": b"key1795324389", "secret": b"x" * 32, "encoding": b"none"}
    await landscape.create_of_original("etcd-key", "80f230d7", key)
    before = {uid_of(each): checksums(each) for each in await landscape.secrets()}

    for run in range(2):
        manager = await landscape.manager()
        landscape.client.writes.clear()
        ca = await manager.generate(CA, KEEP)
        etcd_key = await manager.generate(EncryptionKey("etcd-key"), KEEP)
        assert ca.data == data
        assert etcd_key.data == key
        assert manager.old("ca") is None
        assert await manager.cleanup() == []
        assert not run or not landscape.client.writes

    assert {uid_of(each): checksums(each) for each in await landscape.secrets()} == before


async def test_a_renewed_secret_of_the_original_with_the_same_data_is_kept(
    landscape: Landscape,
) -> None:
    """Pods still mount it, as they mount an old Secret of ours."""
    config, options = Kubeconfig("kubeconfig", b"{}"), replace(KEEP, validity=30 * DAY)
    await landscape.create_of_original("kubeconfig", "0", {"kubeconfig": b"{}"})
    first = await (await landscape.manager()).generate(config, options)
    assert first.object_name == "kubeconfig-0"
    landscape.clock.set(NOW + 25 * DAY)

    manager = await landscape.manager()
    second = await manager.generate(config, options)

    assert second.object_name != first.object_name
    assert second.data == first.data
    assert await manager.cleanup() == []
    old = manager.old("kubeconfig")
    assert old is not None
    assert old.object_name == "kubeconfig-0"


async def test_a_secret_of_the_original_is_replaced_when_its_config_changes(
    landscape: Landscape,
) -> None:
    ca = authority()
    await landscape.create_of_original("ca", "f6032ea0", ca)
    signing = Authority(Pair(ca["ca.crt"], ca["ca.key"]))
    pair = signing.issue_server("server", SERVER.hosts, NOW, 365 * DAY)
    data = {"tls.crt": pair.public, "tls.key": pair.private, "ca.crt": ca["ca.crt"]}
    await landscape.create_of_original("server", "0", data)

    async def server(config: Certificate) -> ManagedSecret:
        manager = await landscape.manager()
        await manager.generate(CA, KEEP)
        return await manager.generate(config, SIGNED)

    assert (await server(SERVER)).object_name == "server-0"
    changed = await server(replace(SERVER, organizations=("others",)))
    assert changed.object_name != "server-0"
    assert changed.data["tls.crt"] != pair.public


async def test_a_rotation_replaces_an_authority_of_the_original_and_keeps_it_as_the_old_one(
    landscape: Landscape,
) -> None:
    data = authority()
    await landscape.create_of_original("ca", "f6032ea0", data)
    await (await landscape.manager()).generate(CA, KEEP)

    manager = await landscape.manager(ca=NOW)
    current = await manager.generate(CA, KEEP)

    old = manager.old("ca")
    assert current.data != data
    assert old is not None
    assert old.object_name == "ca-f6032ea0"
    assert manager.get("ca").data["bundle.crt"] == current.data["ca.crt"] + data["ca.crt"]


async def test_a_lost_authority_of_the_original_is_missed(landscape: Landscape) -> None:
    data = authority()
    await landscape.create_of_original("ca", "f6032ea0", data)
    await landscape.create_of_original("ca-bundle", "51bb9dad", {"bundle.crt": data["ca.crt"]})
    options = replace(KEEP, irreplaceable=PUBLISHED)
    await (await landscape.manager()).generate(CA, options)
    await landscape.client.delete(SECRET, Key(landscape.namespace, "ca-f6032ea0"))

    with pytest.raises(SecretLost, match="ca-bundle-51bb9dad publishes it"):
        await (await landscape.manager()).generate(CA, options)


async def test_unusable_data_of_the_original_stops_the_run_instead_of_breaking_clients(
    landscape: Landscape,
) -> None:
    await landscape.create_of_original("ca", "f6032ea0", {"ca.crt": b"x", "ca.key": b"y"})
    manager = await landscape.manager()

    with pytest.raises(SecretsManagerError, match=r"ca-f6032ea0 holds the data for ca, but not a"):
        await manager.generate(CA, KEEP)

    assert len(await landscape.secrets("ca")) == 1


async def test_a_certificate_of_the_original_is_kept_if_it_is_suitable_and_otherwise_reissued(
    landscape: Landscape,
) -> None:
    ca = authority()
    original = Authority.create("x", NOW, DAY)
    await landscape.create_of_original("ca", "f6032ea0", ca)
    manager = await landscape.manager()
    await manager.generate(CA, KEEP)
    signing = Authority(Pair(ca["ca.crt"], ca["ca.key"]))
    good = signing.issue_server("server", SERVER.hosts, NOW, 365 * DAY)
    bad = original.issue_server("server", SERVER.hosts, NOW, DAY)
    for suffix, pair in (("1", good), ("2", bad)):
        data = {"tls.crt": pair.public, "tls.key": pair.private, "ca.crt": ca["ca.crt"]}
        await landscape.create_of_original(f"server{suffix}", "0", data)
    manager = await landscape.manager()
    await manager.generate(CA, KEEP)

    kept = await manager.generate(_renamed("server1"), SIGNED)
    reissued = await manager.generate(_renamed("server2"), SIGNED)

    assert kept.data["tls.crt"] == good.public
    assert reissued.data["tls.crt"] != bad.public
    assert signer(reissued, manager)


async def test_secrets_of_another_identity_are_never_touched(landscape: Landscape) -> None:
    labels = {"name": "ca", "managed-by": "secrets-manager", "manager-identity": "gardenlet"}
    await landscape.create("ca-of-gardenlet", labels, authority())
    await landscape.run()

    manager = await landscape.manager(ca=NOW + DAY)
    await manager.cleanup()

    remaining = [name_of(secret) for secret in await landscape.secrets()]
    assert remaining == ["ca-of-gardenlet"]


async def test_without_cleanup_nothing_is_deleted(landscape: Landscape) -> None:
    await landscape.run()
    failing = await landscape.manager(ca=NOW + DAY)
    await failing.generate(CA, Options())
    with pytest.raises(SecretsManagerError, match="secret etcd has not been generated"):
        await failing.generate(SERVER, Options(signed_by=SigningCA("etcd")))

    assert len(await landscape.secrets("ca")) == 2
    assert not [write for write in landscape.client.writes if write.startswith("delete")]


async def test_a_run_that_was_killed_after_creating_continues_with_the_same_secret(
    landscape: Landscape,
) -> None:
    await landscape.run()
    killed, next_run = await landscape.manager(ca=NOW), await landscape.manager(ca=NOW)
    created = await killed.generate(CA, KEEP)

    found = await next_run.generate(CA, KEEP)

    assert found.uid == created.uid


async def test_a_password_is_renewed_by_its_validity_which_counts_from_its_issue(
    landscape: Landscape,
) -> None:
    config, month = BasicAuth("plutono-admin"), Options(validity=30 * DAY)
    first = await (await landscape.manager()).generate(config, month)
    landscape.clock.set(NOW + 5 * DAY)
    longer = await (await landscape.manager()).generate(config, Options(validity=60 * DAY))
    unlimited = await (await landscape.manager()).generate(config)
    limited = await (await landscape.manager()).generate(config, month)
    landscape.clock.set(NOW + 21 * DAY)
    renewed = await (await landscape.manager()).generate(config, month)

    assert longer.valid_until == NOW + 60 * DAY
    assert unlimited.valid_until is None
    assert limited.uid == unlimited.uid == longer.uid == first.uid
    assert renewed.data["password"] != first.data["password"]


async def test_a_lower_percentage_causes_an_earlier_renewal(landscape: Landscape) -> None:
    options = Options(signed_by=SigningCA("ca"), validity=30 * DAY, renew_at_percent=50)
    manager = await landscape.manager()
    await manager.generate(CA, KEEP)
    first = await manager.generate(CLIENT, options)
    assert first.labels["renew-after-validity-percentage"] == "50"

    landscape.clock.set(NOW + 16 * DAY)
    manager = await landscape.manager()
    await manager.generate(CA, KEEP)
    renewed = await manager.generate(CLIENT, options)

    assert renewed.object_name != first.object_name


async def test_the_bundle_of_a_signing_key_contains_only_public_keys(landscape: Landscape) -> None:
    config = RsaKey("service-account-key", KeyAlgorithm.RSA_3072)
    await (await landscape.manager()).generate(config, KEEP)
    manager = await landscape.manager(service_account_key=NOW + DAY)
    await manager.generate(config, KEEP)

    bundle = manager.get("service-account-key").data["bundle.key"]
    assert bundle.count(b"-----BEGIN PUBLIC KEY-----") == 2
    assert b"PRIVATE" not in bundle


async def test_a_certificate_follows_its_config(landscape: Landscape) -> None:
    await landscape.run()
    manager = await landscape.manager()
    await manager.generate(CA, KEEP)
    changed = Certificate(
        name="server",
        common_name="server",
        hosts=("elsewhere.garden",),
        for_server=True,
        algorithm=KeyAlgorithm.EC_P256,
    )

    secret = await manager.generate(changed, SIGNED)

    names = read_certificate(secret.data["tls.crt"])
    assert "elsewhere.garden" in str(names.extensions)
    assert [s.split("-")[0] for s in await manager.cleanup()] == ["client", "server"]


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        (SERVER, Options(), "secret server needs an authority to sign it"),
        (CA, SIGNED, "secret ca cannot be signed"),
    ],
)
async def test_options_that_do_not_match_the_config_are_refused(
    landscape: Landscape, config: Certificate, options: Options, message: str
) -> None:
    manager = await landscape.manager()

    with pytest.raises(SecretsManagerError, match=message):
        await manager.generate(config, options)


def _renamed(name: str) -> Certificate:
    return Certificate(
        name=name,
        common_name="server",
        hosts=SERVER.hosts,
        for_server=True,
        algorithm=KeyAlgorithm.EC_P256,
    )


async def test_an_irreplaceable_secret_is_generated_only_if_it_is_new_or_given_up(
    landscape: Landscape,
) -> None:
    config, copy = EncryptionKey("key"), {"has": "copy"}
    first = await (await landscape.manager()).generate(config, KEEP)
    key, name = Key(landscape.namespace, first.object_name), first.object_name
    for exists, record, has_copy, given_up in product(
        (True, False), ((), ("a status",)), (True, False), ("", "another", name)
    ):
        irreplaceable = Irreplaceable(
            use="read",
            records=record,
            copies="has=copy",
            remedy="restore it",
            annotation="a",
            given_up=given_up,
        )
        if has_copy:
            await landscape.create("copy", copy, {})
        if not exists:
            await landscape.client.delete(SECRET, key)
        manager = await landscape.manager()
        is_lost = not exists and (bool(record) or has_copy)
        generate = manager.generate(config, replace(KEEP, irreplaceable=irreplaceable))
        if is_lost and given_up != name:
            with pytest.raises(SecretLost, match=f"Secret {key} is lost"):
                await generate
            assert await landscape.secrets("key") == []
            await (await landscape.manager()).generate(config, KEEP)
        else:
            secret = await generate
            assert (secret.data == first.data) is exists
        assert manager.replaced == ({name} if is_lost and given_up == name else set())
        [secret] = map(ManagedSecret.of, await landscape.secrets("key"))
        first = secret
        if has_copy:
            await landscape.client.delete(SECRET, Key(landscape.namespace, "copy"))


async def test_a_damaged_certificate_is_replaced_but_no_authority_is(
    landscape: Landscape,
) -> None:
    for data in ({}, {"tls.crt": b"garbage", "tls.key": b"x", "ca.crt": b"x"}):
        manager = await landscape.run()
        damaged = manager.current("server")
        await landscape.client.delete(SECRET, Key(landscape.namespace, damaged.object_name))
        await landscape.create(damaged.object_name, damaged.labels, data)
        replaced = (await landscape.run()).current("server")
        assert replaced.object_name == damaged.object_name
        assert replaced.data["tls.crt"].startswith(b"-----BEGIN CERTIFICATE-----")

    authority = manager.current("ca")
    await landscape.client.delete(SECRET, Key(landscape.namespace, authority.object_name))
    await landscape.create(authority.object_name, authority.labels, {"ca.crt": b"garbage"})
    with pytest.raises(SecretsManagerError, match=f"{authority.object_name} holds no usable"):
        await landscape.run()


PUBLISHED = Irreplaceable(use="sign", remedy="restore it", annotation="a")


async def test_an_authority_that_its_bundle_still_publishes_is_not_generated_again(
    landscape: Landscape,
) -> None:
    options = replace(KEEP, irreplaceable=PUBLISHED)
    first = (await landscape.run(options)).current("ca")
    [bundle] = await landscape.secrets("ca-bundle")
    key = Key(landscape.namespace, first.object_name)
    await landscape.client.delete(SECRET, key)

    for _ in range(2):
        with pytest.raises(SecretLost, match=f"Secret {key} is lost.*{name_of(bundle)} publishes"):
            await landscape.run(options)
        assert await landscape.secrets("ca") == []

    given_up = replace(KEEP, irreplaceable=replace(PUBLISHED, given_up=first.object_name))
    manager = await landscape.run(given_up)
    assert manager.replaced == {first.object_name}
    assert manager.current("ca").data != first.data
    assert (await landscape.run(given_up)).replaced == set()


async def test_renewals_and_rotations_of_a_published_authority_generate_new_ones(
    landscape: Landscape,
) -> None:
    monthly = replace(RUNTIME, ignore_old_after=None, irreplaceable=PUBLISHED)
    seen = set()
    for _ in range(4):
        seen.add((await landscape.run(monthly)).current("ca").object_name)
        landscape.clock.set(landscape.clock.now() + 29 * DAY)
    assert len(seen) == 4

    options = replace(KEEP, irreplaceable=PUBLISHED)
    for _ in range(2):
        landscape.clock.set(landscape.clock.now() + DAY)
        started = landscape.clock.now()
        seen.add((await landscape.run(options, ca=started)).current("ca").object_name)
        landscape.clock.set(landscape.clock.now() + DAY)
        await landscape.run(replace(options, ignore_old=True), ca=started)
    assert len(seen) == 6


async def test_the_current_authority_of_a_rotation_is_missed_and_the_old_one_is_no_substitute(
    landscape: Landscape,
) -> None:
    options = replace(KEEP, irreplaceable=PUBLISHED)
    await landscape.run(options)
    landscape.clock.set(landscape.clock.now() + DAY)
    started = landscape.clock.now()
    current = (await landscape.run(options, ca=started)).current("ca")
    key = Key(landscape.namespace, current.object_name)
    await landscape.client.delete(SECRET, key)

    with pytest.raises(SecretLost, match=f"Secret {key} is lost"):
        await landscape.run(options, ca=started)


async def test_volumes_prove_that_a_key_existed(landscape: Landscape) -> None:
    config = EncryptionKey("key")
    options = replace(KEEP, irreplaceable=replace(PUBLISHED, volumes="main-etcd-"))
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "main-etcd-0", "namespace": landscape.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    other = {**claim, "metadata": {"name": "other-0", "namespace": landscape.namespace}}
    await landscape.client.create(other)
    await (await landscape.manager()).generate(config, options)
    [secret] = await landscape.secrets("key")
    await landscape.client.create(claim)
    await (await landscape.manager()).generate(config, options)
    await landscape.client.delete(SECRET, Key.of(secret))

    manager = await landscape.manager()
    with pytest.raises(SecretLost, match=symptom("A credential is lost")):
        await manager.generate(config, options)
    assert await landscape.secrets("key") == []


async def test_a_lost_secret_is_recovered_from_its_copy(landscape: Landscape) -> None:
    config, data = EncryptionKey("key"), {"key": b"a", "secret": b"b"}
    await landscape.create("copy", {"has": "copy"}, {"it": b"x"})

    def recover(copies: Sequence[JsonObject], _: Sequence[SecretData]) -> SecretData | None:
        return data if [name_of(copy) for copy in copies] == ["copy"] else None

    known = replace(PUBLISHED, copies="has=copy", recover=recover)
    manager = await landscape.manager()
    secret = await manager.generate(config, replace(KEEP, irreplaceable=known))
    assert secret.data == data
    assert manager.recovered == {secret.object_name}
    assert manager.replaced == set()


async def test_an_incomplete_run_deletes_only_former_secrets_of_what_it_generated(
    landscape: Landscape,
) -> None:
    await landscape.run()
    landscape.clock.set(landscape.clock.now() + DAY)
    started = landscape.clock.now()
    manager = await landscape.manager(ca=started)
    current = await manager.generate(CA, replace(KEEP, ignore_old=True))

    deleted = await manager.cleanup(is_complete=False)

    assert {name.rpartition("-")[0] for name in deleted} == {"ca", "ca-bundle"}
    assert [name_of(each) for each in await landscape.secrets("ca")] == [current.object_name]
    assert len(await landscape.secrets("server")) == 1
    assert len(await landscape.secrets("client")) == 1
