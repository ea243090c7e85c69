"""The Secrets that outlive their cluster."""

from datetime import UTC, datetime, timedelta

from pergola.secrets_manager import ManagedSecret, durable

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def secret(name: str, suffix: str = "", *, created: datetime = NOW, **labels: str) -> ManagedSecret:
    written = {"name": name} | {label.replace("_", "-"): value for label, value in labels.items()}
    metadata = {
        "name": f"{name}{suffix}",
        "labels": written,
        "creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return ManagedSecret({"metadata": metadata}, {})


def test_only_authorities_keys_and_persistent_secrets_are_durable() -> None:
    found = durable(
        [
            secret("ca"),
            secret("ca-bundle", bundle_for="ca", persist="true"),
            secret("server", checksum_of_signing_ca="1"),
            secret("signing-key"),
            secret("signing-key-bundle", bundle_for="signing-key"),
            secret("password", persist="true"),
            secret("session", persist="false"),
        ]
    )

    assert [each.object_name for each in found] == ["ca", "password", "signing-key"]


def test_old_durable_secrets_are_included_and_come_first() -> None:
    later = NOW + timedelta(seconds=1)
    rotated = secret("ca", "-new", created=later, last_rotation_initiation_time="5")
    same_second = secret("ca", "-newer", created=later, last_rotation_initiation_time="6")

    found = durable([same_second, rotated, secret("ca"), secret("ca-bundle", bundle_for="ca")])

    assert [each.object_name for each in found] == ["ca", "ca-new", "ca-newer"]
