"""The Containerfile, compared with the image that the sandbox makes.

Building it needs an engine and base images from a registry, which tests do not have.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from pergola.sandbox.images import installation, pergola
from pergola.sandbox.images.oci import Recipe
from pergola.sandbox.images.offer import BASE
from pergola.sandbox.images.pergola import PergolaImage
from pergola.sandbox.on_demand import CHARTS, HELM

ROOT = Path(__file__).parents[3]
UV = Path(sys.executable).with_name("uv")


class Instruction(NamedTuple):
    """An instruction of a Containerfile, and its arguments as one text."""

    word: str
    rest: str


def stages() -> list[list[Instruction]]:
    """Return the instructions of each stage, which starts with its FROM."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE)
    found: list[list[Instruction]] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        if found and word:
            found[-1].append(Instruction(word, rest))
    return found


def of(stage: list[Instruction], word: str) -> list[str]:
    return [found.rest for found in stage if found.word == word]


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recipe:
    """The recipe of the sandbox's image, with unmodified files."""
    monkeypatch.setattr(pergola, "_slim", list)
    monkeypatch.setattr(pergola, "_compiled", list)
    monkeypatch.setattr(pergola, "system_libraries", lambda binaries: [])
    helm = tmp_path / "helm"
    helm.write_text("#!/bin/sh")
    helm.chmod(0o755)
    environ = {"PERGOLA_SANDBOX_BIN": str(tmp_path), "HOME": str(tmp_path)}
    return PergolaImage().recipe(lambda line: None, environ)


def test_both_images_have_the_same_entry_point_user_and_variables(recipe: Recipe) -> None:
    *_, final = stages()

    (entrypoint,) = of(final, "ENTRYPOINT")
    assert json.loads(entrypoint) == list(recipe.entrypoint)
    assert of(final, "USER") == [recipe.user]
    variables = dict(text.split("=", 1) for text in of(final, "ENV"))
    # The loader of the sandbox's image has no cache that names this folder.
    assert variables | {"LD_LIBRARY_PATH": "/usr/local/lib"} == recipe.variables


def test_both_images_have_the_same_layout(recipe: Recipe) -> None:
    _, build, final = stages()
    paths = {f"/{entry.path}" for layer in recipe.layers for entry in layer}

    copied = [text.split() for text in of(final, "COPY")]
    assert {source for source, *_ in copied} == {"--from=build", "--from=helm"}
    targets = {path.removeprefix("/installed"): target for _, path, target in copied}
    programs = {f"/bin/{name}": f"/usr/local/bin/{name}" for name in ("pergola", "helm")}
    assert targets == {"/lib": "/usr/local/lib", **programs}
    assert set(programs.values()) <= paths
    packages = f"/usr/local/lib/python3.{sys.version_info.minor}/site-packages"
    assert {f"{packages}/pergola/py.typed", f"{packages}/aiohttp/__init__.py"} <= paths
    shipped = f"{packages}/pergola/shipped"
    assert {f"{shipped}/charts/operator/Chart.yaml", f"{shipped}/examples/first.yaml"} <= paths
    installs = [line for line in of(build, "RUN") if line.startswith("uv pip install")]
    assert all("--prefix /installed" in line for line in installs)
    assert all("--python /usr/local/bin/python3" in line for line in installs)


def test_all_modules_are_compiled_at_their_final_path() -> None:
    *_, final = stages()
    words = [found.word for found in final]
    compiles = [number for number, found in enumerate(final) if "compileall" in found.rest]
    assert compiles == [number for number in compiles if number > words.index("COPY")]
    (line,) = (final[number].rest for number in compiles)
    assert "--invalidation-mode unchecked-hash" in line
    assert line.endswith(" /usr/local/lib/python3*")
    assert max(compiles) < words.index("USER")


def test_both_images_have_the_user_nonroot(recipe: Recipe) -> None:
    created, *_ = of(stages()[-1], "RUN")
    (users,) = (e.content for e in BASE if e.path == "etc/passwd")

    uid, _, gid = recipe.user.partition(":")
    assert f"--gid {gid} nonroot" in created
    assert f"useradd --uid {uid} --gid {gid} " in created
    assert f"nonroot:x:{uid}:{gid}:".encode() in bytes(users)  # type: ignore[arg-type]


def test_both_images_have_the_packages_of_the_lock_file() -> None:
    export = "export --frozen --no-dev --extra aws --extra otel --no-emit-project --quiet"
    _, build, _ = stages()
    assert f"uv {export} --output-file requirements.txt" in of(build, "RUN")
    (install,) = (line for line in of(build, "RUN") if "--requirement" in line)
    assert "--require-hashes" in install

    answer = subprocess.run(
        [UV, *export.split(), "--offline", "--format", "requirements.txt"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    lines = answer.stdout.replace("\\\n", "").splitlines()
    locked = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    assert all("--hash=sha256:" in line for line in locked)
    names = {line.partition("==")[0].lower() for line in locked if "== 'win32'" not in line}
    assert names == installation.required("pergola") - {"pergola"}


def test_every_copied_file_is_in_the_build_context() -> None:
    ignored = (ROOT / ".containerignore").read_text().splitlines()
    helm, build, _ = stages()

    assert ignored[0] == "*"
    for line in (*of(helm, "COPY"), *of(build, "COPY")):
        *sources, _ = line.split()
        for source in sources:
            assert {f"!{source}", f"!{source.partition('/')[0]}"} & {*ignored}
            assert (ROOT / source).exists()


def test_the_base_has_the_oldest_supported_version_of_python() -> None:
    containerfile = (ROOT / "Containerfile").read_text()
    (base,) = re.findall(r"^ARG PYTHON=.*python:(\S+?)-slim", containerfile, re.MULTILINE)
    (required,) = re.findall(r'requires-python = ">=(\S+)"', (ROOT / "pyproject.toml").read_text())

    assert base == required


def test_helm_is_built_from_the_version_that_the_sandbox_pins() -> None:
    helm, *_ = stages()

    (source,) = (line.split()[0] for line in of(helm, "COPY"))
    assert ROOT / source == CHARTS.directory
    (line,) = of(helm, "RUN")
    assert CHARTS.packages[HELM] in line
    (version,) = re.findall(
        r"^ARG GO=.*golang:(\d+)\.(\d+)-", (ROOT / "Containerfile").read_text(), re.MULTILINE
    )
    assert tuple(map(int, version)) >= CHARTS.go_version[:2]
