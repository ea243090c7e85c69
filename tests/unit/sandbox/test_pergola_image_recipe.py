import sys
from pathlib import Path

import pytest

from pergola.sandbox.images import installation
from pergola.sandbox.images.compiled import compiled
from pergola.sandbox.images.layers import Entry
from pergola.sandbox.images.pergola import PergolaImage
from pergola.sandbox.images.store import Blob, Image, Store


def paths(entries: list[Entry]) -> set[str]:
    return {entry.path for entry in entries}


def test_the_image_contains_requirements_but_not_development_tools() -> None:
    required = installation.required("pergola")

    assert {"pergola", "aiohttp", "aiobotocore", "botocore", "multidict"} <= required
    assert not {"pytest", "mypy", "moto", "hypothesis", "uv"} & required


def test_the_image_omits_the_tests_of_the_standard_library() -> None:
    found = paths(list(installation.interpreter()))
    library = f"usr/local/lib/python{sys.version_info.major}.{sys.version_info.minor}"

    assert {f"{library}/os.py", f"{library}/asyncio/__init__.py"} <= found
    assert not [path for path in found if "/test/" in path or "__pycache__" in path]
    assert not [path for path in found if "site-packages" in path]


def test_the_image_contains_the_data_and_version_of_the_package() -> None:
    found = {path.partition("site-packages/")[2] for path in paths(list(installation.package()))}

    assert {"pergola/cli/__init__.py", "pergola/py.typed"} <= found
    assert "pergola-0.1.0.dist-info/METADATA" in found


def test_compiled_modules_depend_only_on_their_source(tmp_path: Path) -> None:
    content = "VALUE = 1\n"
    file = tmp_path / "one.py"
    file.write_text(content)
    sources = (file, content.encode())
    first, second = ([*compiled([Entry("lib/module.py", source)])] for source in sources)

    assert first[0] == Entry("lib/module.py", file)
    assert first[1] == second[1]
    assert first[1].path == f"lib/__pycache__/module.{sys.implementation.cache_tag}.pyc"


def test_a_module_that_does_not_compile_is_kept_unchanged(tmp_path: Path) -> None:
    template = tmp_path / "template.py"
    template.write_text("{{ name }} = \n")
    entries = [Entry("lib/template.py", template)]

    assert [*compiled(entries)] == entries


def test_the_key_changes_with_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("VALUE = 1\n")
    monkeypatch.setattr(installation, "package", lambda: [Entry("module.py", source)])
    before = PergolaImage().key()
    assert PergolaImage().key() == before
    source.write_text("VALUE = 10\n")

    assert PergolaImage().key() != before


def test_a_recorded_image_is_returned_only_while_it_is_complete(tmp_path: Path) -> None:
    store = Store(tmp_path)
    blob = store.put(lambda: [b"layer"])
    image = Image(blob, (blob,))
    assert store.recall("key") is None
    store.remember("key", image)
    assert store.recall("key") == image

    store.remember("key", Image(blob, (Blob("sha256:00", 1),)))
    assert store.recall("key") is None
