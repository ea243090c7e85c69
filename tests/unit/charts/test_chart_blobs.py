"""The cache of charts on disk."""

import os
from pathlib import Path

from pergola.charts import Blobs
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
