import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.sandbox.images.layers import Entry, folder, pack, program, tree

NAMES = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=120)


def packed(*entries: Entry) -> bytes:
    return b"".join(pack(entries))


def members(layer: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        return archive.getmembers()


def test_parent_folders_come_before_an_entry() -> None:
    layer = packed(Entry("usr/local/bin/etcd", b"program", 0o755))

    assert [(m.name, oct(m.mode)) for m in members(layer)] == [
        ("usr", "0o755"),
        ("usr/local", "0o755"),
        ("usr/local/bin", "0o755"),
        ("usr/local/bin/etcd", "0o755"),
    ]


def test_modes_and_owners_come_from_the_entries() -> None:
    (found,) = members(packed(folder("tmp", 0o1777, owner=65532)))

    assert (found.mode, found.uid, found.gid, found.mtime) == (0o1777, 65532, 65532, 0)


@given(st.dictionaries(NAMES, st.binary(max_size=2000), min_size=1, max_size=8), st.randoms())
def test_a_layer_does_not_depend_on_the_order_of_its_files(
    files: dict[str, bytes], random: object
) -> None:
    entries = [Entry(name, content) for name, content in files.items()]

    layer = packed(*entries)

    assert layer == packed(*reversed(entries))
    assert len(layer) % tarfile.BLOCKSIZE == 0
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        found = {m.name: archive.extractfile(m).read() for m in archive}  # type: ignore[union-attr]
    assert found == files


def test_a_layer_does_not_depend_on_build_times(tmp_path: Path) -> None:
    built = tmp_path / "etcd"
    built.write_bytes(b"program")
    first = packed(program("bin/etcd", built))
    os.utime(built, (1, 1))
    built.chmod(0o700)

    assert packed(program("bin/etcd", built)) == first


def test_a_tree_keeps_links_and_executable_bits_but_not_owners(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "run").write_bytes(b"#!")
    (tmp_path / "bin" / "run").chmod(0o700)
    (tmp_path / "text").write_bytes(b"text")
    (tmp_path / "text").chmod(0o600)
    (tmp_path / "link").symlink_to("bin/run")

    found = {m.name: m for m in members(packed(*tree(tmp_path, "app")))}

    assert list(found) == ["app", "app/bin", "app/bin/run", "app/link", "app/text"]
    assert (found["app/bin/run"].mode, found["app/text"].mode) == (0o755, 0o644)
    assert found["app/link"].linkname == "bin/run"


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    growing = tmp_path / "file"
    growing.write_bytes(b"x" * 1000)
    stream = pack([Entry("file", growing)])
    next(stream)
    growing.write_bytes(b"")

    with pytest.raises(OSError, match="changed while it was read"):
        list(stream)
