"""Images in the format of the OCI image specification, and archives of them.

Images do not depend on when or where they were built: equal programs give equal digests.
"""

import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.sandbox.images.layers import Entry, pack
from pergola.sandbox.images.store import Blob, Image, Store

_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
_INDEX: Final = "application/vnd.oci.image.index.v1+json"
_CHUNK: Final = 1 << 20
NONROOT: Final = "65532:65532"
_EPOCH: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Recipe:
    """The content and configuration of an image.

    Attributes:
        layers: from the lowest up, starting with those shared by images.
        entrypoint: the command.
        user: the user to run as, in the form `user:group`.
        variables: environment variables.
        labels: the image's labels.
    """

    layers: Sequence[Sequence[Entry]]
    entrypoint: Sequence[str]
    user: str = NONROOT
    variables: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def write(recipe: Recipe, store: Store) -> Image:
    """Write an image to the store.

    Raises:
        SandboxError: the image cannot be stored.
    """
    layers = [store.put(partial(pack, entries)) for entries in recipe.layers]
    config = _put(store, _configuration(recipe, layers))
    manifest: JsonObject = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _descriptor(_CONFIG, config),
        "layers": [_descriptor(_LAYER, layer) for layer in layers],
    }
    return Image(_put(store, manifest), (config, *layers))


def archive(images: Mapping[str, Image], store: Store) -> Iterator[bytes]:
    """Yield an OCI archive of named images, with shared blobs included once.

    Args:
        images: images by full name with tag, such as `registry.k8s.io/pause:3.10`.
    """
    index: JsonObject = {
        "schemaVersion": 2,
        "mediaType": _INDEX,
        "manifests": [
            {
                **_descriptor(_MANIFEST, image.manifest),
                "annotations": {
                    "io.containerd.image.name": name,
                    "org.opencontainers.image.ref.name": name.rpartition(":")[2],
                },
            }
            for name, image in images.items()
        ],
    }
    yield from _file("oci-layout", io.BytesIO(_dump({"imageLayoutVersion": "1.0.0"})))
    yield from _file("index.json", io.BytesIO(_dump(index)))
    blobs = {blob for image in images.values() for blob in (image.manifest, *image.blobs)}
    for blob in sorted(blobs):
        algorithm, _, digest = blob.digest.partition(":")
        with store.path(blob).open("rb") as file:
            yield from _file(f"blobs/{algorithm}/{digest}", file)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _configuration(recipe: Recipe, layers: Sequence[Blob]) -> JsonObject:
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", **recipe.variables}
    return {
        "architecture": "amd64",
        "os": "linux",
        "created": _EPOCH,
        "config": {
            "User": recipe.user,
            "Env": [f"{name}={text}" for name, text in sorted(variables.items())],
            "Entrypoint": list(recipe.entrypoint),
            "WorkingDir": "/",
            "Labels": dict(sorted(recipe.labels.items())),
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
    }


def _put(store: Store, content: JsonObject) -> Blob:
    return store.put(lambda: [_dump(content)])


def _dump(content: JsonObject) -> bytes:
    return json.dumps(content, separators=(",", ":"), sort_keys=True).encode()


def _descriptor(media_type: str, blob: Blob) -> JsonObject:
    return {"mediaType": media_type, "digest": blob.digest, "size": blob.size}


def _file(name: str, file: io.BufferedIOBase) -> Iterator[bytes]:
    header = tarfile.TarInfo(name)
    header.size = file.seek(0, io.SEEK_END)
    file.seek(0)
    yield header.tobuf(tarfile.PAX_FORMAT)
    while chunk := file.read(_CHUNK):
        yield chunk
    yield bytes(-header.size % tarfile.BLOCKSIZE)
