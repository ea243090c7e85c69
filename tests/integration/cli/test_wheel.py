"""The wheel in an empty environment and folder does everything that a checkout does."""

import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from pergola.api.conditions import get_condition
from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.testing.waiting import until
from tests.support.documented import commands

ROOT: Final = Path(__file__).parents[3]
UV: Final = Path(sys.executable).with_name("uv")
PATTERN: Final = "examples/aws/pattern-2-byo.yaml"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    line = ("build", "--wheel", "--no-build-isolation", "--python", sys.executable)
    _uv(*line, "--out-dir", str(folder), str(ROOT))
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the variables of a shell with the wheel and its requirements, without extras."""
    folder = tmp_path_factory.mktemp("environment")
    _uv("venv", "--quiet", "--python", sys.executable, str(folder))
    _uv("sync", "--frozen", "--active", "--no-dev", "--no-install-project", venv=folder)
    _uv("pip", "install", "--offline", "--no-deps", str(wheel), venv=folder)
    kept = {name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME") if name in os.environ}
    return {**kept, "PATH": f"{folder / 'bin'}:/usr/bin:/bin"}


def _uv(*arguments: str, venv: Path | None = None) -> None:
    variables = os.environ | ({"VIRTUAL_ENV": str(venv)} if venv else {})
    answer = subprocess.run(
        [UV, *arguments], env=variables, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr


def ran(line: str, environment: dict[str, str], folder: Path) -> str:
    """Run a shell command line, and return its output."""
    answer = _answer(line, environment, folder)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def _answer(
    line: str, environment: dict[str, str], folder: Path
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/bash", "-c", line],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_wheel_contains_each_example_and_each_file_of_the_charts(wheel: Path) -> None:
    listed = {
        str(path.relative_to(ROOT))
        for folder in ("charts", "docs", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    packed = zipfile.ZipFile(wheel).namelist()

    prefix = "pergola/shipped/"
    found = {name.removeprefix(prefix) for name in packed if name.startswith(prefix)}
    assert found == listed | {"__init__.py"}


def test_commands_that_need_an_extra_name_it(environment: dict[str, str], tmp_path: Path) -> None:
    ran("pergola unpack examples", environment, tmp_path)

    assert "is valid" in ran(f"pergola aws validate -f {PATTERN}", environment, tmp_path)
    refused = _answer(f"pergola aws check -f {PATTERN}", environment, tmp_path)

    assert refused.returncode == 1
    assert refused.stderr == "pergola: this needs pergola[aws]: pip install 'pergola[aws]'\n"


def test_unpacking_does_not_change_files_of_the_user(
    environment: dict[str, str], tmp_path: Path
) -> None:
    assert ran("pergola unpack", environment, tmp_path).split() == ["examples", "charts", "docs"]
    assert ran("pergola unpack", environment, tmp_path).split() == ["examples", "charts", "docs"]
    first = tmp_path / "examples" / "first.yaml"
    first.write_text("mine")

    refused = _answer("pergola unpack", environment, tmp_path)

    assert refused.returncode == 1
    assert "examples/first.yaml exists with other content" in refused.stderr
    assert first.read_text() == "mine"


@pytest.fixture
def run_directory() -> Iterator[Path]:
    """Yield a folder whose path is short enough for sockets."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.soak("commands")
async def test_the_first_steps_of_the_readme_work(
    environment: dict[str, str], tmp_path: Path, run_directory: Path
) -> None:
    steps = commands("../README.md", "Your first ManagedResource")
    unpack, start, crds, manager, apply, watch = steps
    assert (apply, watch) == (
        "kubectl apply -f examples/first.yaml",
        "kubectl get managedresources --watch",
    )
    variables = {**environment, "XDG_RUNTIME_DIR": str(run_directory)}

    ran(unpack, variables, tmp_path)
    try:
        printed = ran(f"{start} && echo $KUBECONFIG", variables, tmp_path)
        variables["KUBECONFIG"] = printed.splitlines()[-1]
        ran(crds, variables, tmp_path)
        with background(manager, variables, tmp_path):
            async with Client.connect(load(Path(variables["KUBECONFIG"]))) as client:
                await _apply(client, (tmp_path / "examples" / "first.yaml").read_bytes())
                key = Key("default", "hello")
                await until(client, MANAGED_RESOURCE, key, _is_applied)
                await _is_reverted_after_an_edit(client, Key("default", "greeting"))
    finally:
        ran("pergola sandbox stop", variables, tmp_path)


@contextmanager
def background(line: str, environment: dict[str, str], folder: Path) -> Iterator[None]:
    """Run a shell command line that ends with `&` while the block lasts."""
    process = subprocess.Popen(
        ["/bin/bash", "-c", f"exec {line.removesuffix('&')}"],
        env=environment,
        cwd=folder,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0


async def _apply(client: Client, manifests: bytes) -> None:
    for document in parse_documents(manifests):
        assert isinstance(document.value, dict)
        metadata = {**map_at(document.value, "metadata"), "namespace": "default"}
        obj = {**document.value, "metadata": metadata}
        await client.apply(obj, manager="kubectl", force=True)


def _is_applied(resource: JsonObject) -> bool:
    condition = get_condition(maps_at(resource, "status", "conditions"), "ResourcesApplied")
    return condition is not None and condition["status"] == "True"


async def _is_reverted_after_an_edit(client: Client, key: Key) -> None:
    before = await until(client, CONFIG_MAP, key, lambda obj: obj["data"] == {"text": "hello"})
    edited = await client.patch(CONFIG_MAP, key, {"data": {"text": "edited"}})
    versions = {before["metadata"]["resourceVersion"], edited["metadata"]["resourceVersion"]}
    await until(
        client,
        CONFIG_MAP,
        key,
        lambda obj: (
            obj["data"] == before["data"] and obj["metadata"]["resourceVersion"] not in versions
        ),
    )
