"""Import of images into a node's containerd."""

import asyncio
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.images import build, oci
from pergola.sandbox.images.catalogue import qualified
from pergola.sandbox.images.offer import Offer
from pergola.sandbox.images.store import Image
from pergola.sandbox.module import CTR
from pergola.sandbox.progress import Progress, silent

_NAMESPACE: Final = "k8s.io"  # the namespace that the kubelet uses


async def import_offers(
    directory: Path, offers: Iterable[Offer], progress: Progress = silent
) -> None:
    """Build missing images, and import them under the names of the catalogue.

    Args:
        directory: the sandbox's directory.

    Raises:
        SandboxError: an image cannot be built or imported.
    """
    images = await asyncio.to_thread(build.build, offers, progress)
    await asyncio.to_thread(_import, directory, images)


async def import_as(directory: Path, reference: str, offer: Offer) -> None:
    """Import an image under the name that a pod uses.

    Raises:
        SandboxError: the image cannot be built or imported.
    """
    images = await asyncio.to_thread(build.build, [offer])
    await asyncio.to_thread(_import, directory, {qualified(reference): images[offer.reference]})


def _import(directory: Path, images: Mapping[str, Image]) -> None:
    line = [
        *(str(directory / "bin" / CTR), "--address", str(directory / "containerd.sock")),
        *("--namespace", _NAMESPACE, "images", "import", "-"),
    ]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as ctr:
        if ctr.stdin is None or ctr.stderr is None:
            raise AssertionError("both are pipes")
        try:
            for chunk in oci.archive(images, build.store()):
                ctr.stdin.write(chunk)
            ctr.stdin.close()
        except BrokenPipeError:
            pass  # it has exited; stderr has the reason
        complaint = ctr.stderr.read().decode(errors="replace").strip()
    if ctr.returncode:
        raise SandboxError(f"cannot import {', '.join(images)}: {_explain(complaint, directory)}")


def _explain(complaint: str, directory: Path) -> str:
    if "no space left on device" in complaint:
        return (
            f"the disk of {directory} is full; make room, or set XDG_RUNTIME_DIR to a folder on"
            " another disk"
        )
    return complaint
