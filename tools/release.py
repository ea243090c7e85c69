"""Write a release into a folder: wheel, charts, bill of materials, licences and checksums.

    python tools/release.py dist

The same commit gives the same bytes. All times are that of the commit, or SOURCE_DATE_EPOCH.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import uuid
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, Final

from pergola import __version__
from pergola.kube.yaml import parse

ROOT: Final = Path(__file__).resolve().parents[1]
UV: Final = Path(sys.executable).with_name("uv")
_NAMESPACE: Final = uuid.UUID("6f1d4c5e-3a5c-5b0e-9d6b-6a0f0f0f7c11")
_CLASSIFIER: Final = "License :: OSI Approved :: "
_LONGEST: Final = 80
"""Some packages put the whole text of their licence where its name belongs."""


def release(folder: Path, epoch: int) -> list[Path]:
    """Write all files of a release, and return them.

    Args:
        folder: Where to; created if missing.
        epoch: The time of everything, in seconds since 1970.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bill = materials(epoch)
    files = [wheel(folder, epoch), *charts(folder, epoch)]
    stem = f"pergola-{__version__}"
    files += [
        _written(folder / f"{stem}.cdx.json", f"{json.dumps(bill, indent=2)}\n"),
        _written(folder / f"{stem}-licences.txt", licence_list(bill)),
    ]
    sums = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files]
    return [*files, _written(folder / "SHA256SUMS", "".join(sums))]


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def wheel(folder: Path, epoch: int) -> Path:
    """Build the wheel, and return it."""
    _uv(
        *("build", "--wheel", "--no-build-isolation", "--python", sys.executable),
        *("--out-dir", str(folder)),
        epoch=epoch,
    )
    return folder / f"pergola-{__version__}-py3-none-any.whl"


def charts(folder: Path, epoch: int) -> list[Path]:
    """Pack all Helm charts, and return the archives."""
    return [
        _packed(path.parent, folder, epoch) for path in sorted(ROOT.glob("charts/*/Chart.yaml"))
    ]


def _packed(chart: Path, folder: Path, epoch: int) -> Path:
    """Pack a chart as Helm does, save that the order and all metadata of its files are fixed."""
    described = parse((chart / "Chart.yaml").read_text())
    if not isinstance(described, dict):
        raise SystemExit(f"error: {chart / 'Chart.yaml'} is not an object")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(chart.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                member = tarfile.TarInfo(f"{described['name']}/{path.relative_to(chart)}")
                content = path.read_bytes()
                member.size, member.mtime, member.mode = len(content), epoch, 0o644
                tar.addfile(member, io.BytesIO(content))
    target = folder / f"{described['name']}-{described['version']}.tgz"
    target.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return target


def materials(epoch: int) -> dict[str, Any]:
    """Return the bill of materials as CycloneDX: all locked packages, those of extras included."""
    found: dict[str, Any] = json.loads(
        _uv(
            *("export", "--frozen", "--no-dev", "--all-extras", "--offline", "--quiet"),
            *("--format", "cyclonedx1.5"),
            epoch=epoch,
        )
    )
    found["metadata"]["component"]["version"] = __version__
    found["metadata"]["timestamp"] = datetime.fromtimestamp(epoch, UTC).isoformat()
    for component in found["components"]:
        if text := licence(component["name"]):
            component["licenses"] = [{"license": {"name": text}}]
    found.pop("serialNumber", None)
    content = json.dumps(found, sort_keys=True)
    return {**found, "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, content)}"}


def licence(name: str) -> str:
    """Return the licence that a package declares; empty if it is not installed here."""
    try:
        declared = metadata(name)
    except PackageNotFoundError:
        return ""
    if "License-Expression" in declared:
        return declared["License-Expression"]
    classifiers = declared.get_all("Classifier") or []
    named = [each.removeprefix(_CLASSIFIER) for each in classifiers if each.startswith(_CLASSIFIER)]
    if named:
        return ", ".join(sorted(named))
    [text, *_] = declared.get_all("License") or [""]
    first = text.strip().partition("\n")[0]
    return first if len(first) <= _LONGEST else ""


def licence_list(bill: dict[str, Any]) -> str:
    """Return a line for each package of a bill of materials."""
    rows = [("pergola", __version__, "Apache-2.0")]
    for component in bill["components"]:
        [known] = component.get("licenses", [{"license": {"name": "only for other platforms"}}])
        rows.append((component["name"], component["version"], known["license"]["name"]))
    return "".join(f"{name:<28} {version:<16} {text}\n" for name, version, text in rows)


def _uv(*arguments: str, epoch: int) -> str:
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    answer = subprocess.run(
        [UV, *arguments], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise SystemExit(f"error: uv {arguments[0]} failed: {answer.stderr.strip()}")
    return answer.stdout


def time_of_commit() -> int:
    """Return SOURCE_DATE_EPOCH, or the time of the commit that is checked out."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    line = ["git", "log", "-1", "--format=%ct"]
    answer = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SystemExit("error: this is not a checkout of git; set SOURCE_DATE_EPOCH")
    return int(answer.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    for written in release(parser.parse_args().folder.resolve(), time_of_commit()):
        print(written)
