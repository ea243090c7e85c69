"""Exports of Gardens: the seal, the file, its passphrase, and the Garden in it."""

import io
import stat
import sys
from pathlib import Path

import pytest

from pergola.cli.garden.passphrase import VARIABLE, PassphraseError, new_passphrase, passphrase
from pergola.cli.garden.sealed_files import read_sealed, write_sealed
from pergola.cli.manifest_files import ManifestFileError
from pergola.operator.transfer import Export, TransferError, decode, encode, seal, unseal
from pergola.operator.transfer.collect import as_applied
from tests.support.gardens import MINIMAL, with_values

PASSPHRASE = "correct horse battery"
BACKUP = "spec.virtualCluster.etcd.main.backup"
EXPORT = Export(MINIMAL, ({"metadata": {"name": "ca"}},), (), ("serviceAccountKey: Prepared",))


@pytest.fixture(scope="module")
def sealed() -> bytes:
    return seal(encode(EXPORT), PASSPHRASE)


# The seal


def test_a_sealed_export_is_read_with_its_passphrase_and_shows_nothing(sealed: bytes) -> None:
    assert decode(unseal(sealed, PASSPHRASE)) == EXPORT
    assert sealed.startswith(b"pergola-garden-export 1\n")
    assert b"metadata" not in sealed


def test_the_same_export_is_sealed_differently_each_time(sealed: bytes) -> None:
    assert seal(encode(EXPORT), PASSPHRASE)[24:] != sealed[24:]


def test_a_wrong_passphrase_is_reported(sealed: bytes) -> None:
    with pytest.raises(TransferError, match="the passphrase is not the one"):
        unseal(sealed, "another passphrase")


@pytest.mark.parametrize("length", [24, 91, 100])
def test_a_truncated_file_is_reported(sealed: bytes, length: int) -> None:
    with pytest.raises(TransferError, match="it is truncated"):
        unseal(sealed[:length], PASSPHRASE)


@pytest.mark.parametrize("position", [84, -1])
def test_a_changed_byte_is_detected(sealed: bytes, position: int) -> None:
    damaged = bytearray(sealed)
    damaged[position] ^= 1

    with pytest.raises(TransferError, match=r"it is (damaged|truncated)"):
        unseal(bytes(damaged), PASSPHRASE)


def test_appended_bytes_are_detected(sealed: bytes) -> None:
    with pytest.raises(TransferError, match="it is damaged"):
        unseal(sealed + b"x", PASSPHRASE)


def test_another_file_is_not_an_export() -> None:
    with pytest.raises(TransferError, match="it is not an export of a Garden"):
        unseal(b"apiVersion: v1\n", PASSPHRASE)


def test_a_newer_format_is_reported(sealed: bytes) -> None:
    with pytest.raises(TransferError, match=r'a newer pergola wrote it \(format "2"'):
        unseal(sealed.replace(b" 1\n", b" 2\n", 1), PASSPHRASE)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"garden": {}}'])
def test_content_that_is_not_an_export_is_refused(content: bytes) -> None:
    with pytest.raises(TransferError, match="it contains no Garden"):
        decode(content)


# The file


def test_a_file_is_private_and_replaces_an_older_export(tmp_path: Path) -> None:
    path = tmp_path / "garden.export"

    write_sealed(path, EXPORT, PASSPHRASE)
    write_sealed(path, EXPORT._replace(rotations=()), PASSPHRASE)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_sealed(path, PASSPHRASE).rotations == ()
    assert list(tmp_path.iterdir()) == [path]


def test_another_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "garden.yaml"
    path.write_text("kind: Garden\n")

    with pytest.raises(ManifestFileError, match=r"garden.yaml exists and is not an export"):
        write_sealed(path, EXPORT, PASSPHRASE)

    assert path.read_text() == "kind: Garden\n"


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "garden.export"
    path.write_bytes(b"something")

    with pytest.raises(ManifestFileError, match=f"cannot import {path}: it is not an export"):
        read_sealed(path, PASSPHRASE)
    with pytest.raises(ManifestFileError, match=r"cannot write .*: No such file or directory"):
        write_sealed(tmp_path / "no" / "file", EXPORT, PASSPHRASE)


# The passphrase


def test_a_file_takes_precedence_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERGOLA_PASSPHRASE", "from the environment")
    file = tmp_path / "passphrase"
    file.write_text("from the file \n")

    assert passphrase(file) == new_passphrase(file) == "from the file "
    assert passphrase(None) == new_passphrase(None) == "from the environment"


def test_a_passphrase_is_required_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERGOLA_PASSPHRASE", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    with pytest.raises(PassphraseError, match="--passphrase-file, or set PERGOLA_PASSPHRASE"):
        passphrase(None)


def test_an_unusable_passphrase_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERGOLA_PASSPHRASE", "short")
    with pytest.raises(PassphraseError, match="fewer than 12 characters"):
        new_passphrase(None)
    monkeypatch.setenv("PERGOLA_PASSPHRASE", "")
    with pytest.raises(PassphraseError, match="the passphrase is empty"):
        passphrase(None)
    with pytest.raises(PassphraseError, match=r"cannot read the passphrase in .*: No such file"):
        passphrase(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(PassphraseError, match="is not UTF-8 text"):
        passphrase(tmp_path / "binary")


# The Garden


@pytest.mark.parametrize(
    ("given", "exported"),
    [(None, "garden-1-2-3"), ("", "garden-1-2-3"), ("/path", "garden-1-2-3/path"), ("b/p", "b/p")],
)
def test_the_bucket_named_after_the_old_uid_is_set_in_the_spec(
    given: str | None, exported: str
) -> None:
    garden = with_values(
        MINIMAL,
        {
            "metadata.uid": "1-2-3",
            f"{BACKUP}.provider": "aws",
            f"{BACKUP}.bucketName": ... if given is None else given,
        },
    )

    backup = as_applied(garden)["spec"]["virtualCluster"]["etcd"]["main"]["backup"]

    assert backup == {"provider": "aws", "bucketName": exported}


def test_fields_added_by_the_cluster_and_by_requests_are_not_exported() -> None:
    garden = with_values(MINIMAL, {"metadata.uid": "1", "metadata.resourceVersion": "2"})
    garden["status"] = {"lastOperation": {}}
    garden["metadata"]["finalizers"] = ["gardener.cloud/operator"]
    garden["metadata"]["labels"] = {"team": "a"}
    garden["metadata"]["annotations"] = {
        "team": "b",
        "gardener.cloud/operation": "reconcile",
        "operator.gardener.cloud/ignore": "true",
        "confirmation.gardener.cloud/deletion": "true",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }

    assert as_applied(garden) == {
        **MINIMAL,
        "metadata": {"name": "minimal", "labels": {"team": "a"}, "annotations": {"team": "b"}},
    }


def test_an_environment_variable_that_is_not_utf_8_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "not text: \udcff")

    with pytest.raises(PassphraseError, match="PERGOLA_PASSPHRASE is not UTF-8 text"):
        passphrase(None)
