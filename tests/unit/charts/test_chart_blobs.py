"""The cache of charts on disk."""

import os
from pathlib import Path

import pytest

from pergola.charts import Blobs
from pergola.charts import blobs as blobs_module
from pergola.charts.blobs import digest_of


def test_content_is_found_by_its_digest_even_by_another_process(tmp_path: Path) -> None:
    Blobs(tmp_path / "blobs").write(b"content")

    assert Blobs(tmp_path / "blobs").read(digest_of(b"content")) == b"content"
    assert Blobs(tmp_path / "blobs").read(digest_of(b"other")) is None
    assert (tmp_path / "blobs").stat().st_mode & 0o777 == 0o700


def test_the_least_recently_used_content_is_evicted_at_the_limit(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path, limit=250)
    for age, letter in ((3, b"a"), (2, b"b")):
        blobs.write(letter * 100)
        os.utime(tmp_path / digest_of(letter * 100).removeprefix("sha256:"), (age * -1e6,) * 2)
    assert blobs.read(digest_of(b"a" * 100)) is not None  # used again

    blobs.write(b"c" * 100)

    assert blobs.read(digest_of(b"a" * 100)) is not None
    assert blobs.read(digest_of(b"b" * 100)) is None
    assert blobs.read(digest_of(b"c" * 100)) is not None


def test_corrupt_content_is_removed(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    blobs.write(b"content")
    path = tmp_path / digest_of(b"content").removeprefix("sha256:")
    path.write_bytes(b"c0ntent")

    assert blobs.read(digest_of(b"content")) is None
    assert not path.exists()


def test_nothing_is_cached_if_the_directory_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blobs = Blobs(tmp_path / "file" / "blobs")

    blobs.write(b"content")

    assert blobs.read(digest_of(b"content")) is None


def test_only_own_files_are_evicted(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"n" * 500)
    blobs = Blobs(tmp_path, limit=100)

    blobs.write(b"a" * 90)
    blobs.write(b"b" * 90)

    assert (tmp_path / "notes.txt").exists()
    assert len([*tmp_path.iterdir()]) == 2


def test_the_directory_behind_a_link_is_neither_read_nor_changed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    Blobs(target).write(b"content")
    (tmp_path / "link").symlink_to(target)
    blobs = Blobs(tmp_path / "link", limit=1)

    blobs.write(b"more")

    assert blobs.read(digest_of(b"content")) is None
    assert Blobs(target).read(digest_of(b"content")) == b"content"
    assert len([*target.iterdir()]) == 1


def test_the_directory_of_another_user_is_neither_read_nor_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Blobs(tmp_path).write(b"content")
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(blobs_module, "_ROOT", owner + 1)
    monkeypatch.setattr(os, "getuid", lambda: owner + 2)

    assert Blobs(tmp_path).read(digest_of(b"content")) is None
