"""Names of BackupEntries, which identify the etcd and its backups."""

import pytest

from pergola.api.objects import Key
from pergola.extensions.backups import entry_of

UID = "2039f2f6-cfb5-4880-9421-9c214edcc241"


@pytest.mark.parametrize(
    ("name", "technical_id", "prefix", "secret"),
    [
        (f"garden--{UID}", "garden", f"garden--{UID}/", "etcd-backup"),
        (f"shoot--dev--web--{UID}", "shoot--dev--web", f"shoot--dev--web--{UID}/", "etcd-backup"),
        (
            f"source-shoot--dev--web--{UID}",
            "shoot--dev--web",
            f"shoot--dev--web--{UID}/",
            "source-etcd-backup",
        ),
        ("plain", "plain", "plain/", "etcd-backup"),
    ],
)
def test_a_name_contains_the_namespace_of_the_etcd_and_the_prefix_of_its_backups(
    name: str, technical_id: str, prefix: str, secret: str
) -> None:
    entry = entry_of(name)

    assert entry.technical_id == technical_id
    assert entry.prefix == prefix
    assert entry.secret == Key(technical_id, secret)


def test_no_prefix_starts_with_the_prefix_of_another_entry() -> None:
    one, other = entry_of("garden--1").prefix, entry_of("garden--12").prefix

    assert not other.startswith(one)
