"""Images in the format of the OCI image specification, and archives of them.

Images do not depend on when or where they were built: equal programs give equal digests.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

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
        architecture: of its programs, as Go names it.
        is_compressed: whether layers are compressed, for a registry.
    """

    layers: Sequence[Sequence[Entry]]
    entrypoint: Sequence[str]
    user: str = NONROOT
    variables: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "amd64"
    is_compressed: bool = False


class _Layer(NamedTuple):
    """A layer in the store, and the digest of its tar stream."""

    blob: Blob
    digest: str


def write(recipe: Recipe, store: Store) -> Image:
    """Write an image to the store.

    Raises:
        SandboxError: the image cannot be stored.
    """
    layers = [_write_layer(recipe, entries, store) for entries in recipe.layers]
    config = _put(store, _configuration(recipe, layers))
    media_type = f"{_LAYER}+gzip" if recipe.is_compressed else _LAYER
    manifest: JsonObject = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _descriptor(_CONFIG, config),
        "layers": [_descriptor(media_type, layer.blob) for layer in layers],
    }
    return Image(_put(store, manifest), (config, *(layer.blob for layer in layers)))


def write_index(images: Mapping[str, Image], store: Store) -> Blob:
    """Write the index of one image for several architectures, and return it.

    Args:
        images: by architecture.
    """
    manifests = [
        {
            **_descriptor(_MANIFEST, image.manifest),
            "platform": {"architecture": architecture, "os": "linux"},
        }
        for architecture, image in images.items()
    ]
    return _put(store, _index(manifests))


def archive(images: Mapping[str, Image], store: Store) -> Iterator[bytes]:
    """Yield an OCI archive of named images, with shared blobs included once.

    Args:
        images: images by full name with tag, such as `registry.k8s.io/pause:3.10`.
    """
    manifests = [
        _named(_descriptor(_MANIFEST, image.manifest), name) for name, image in images.items()
    ]
    return _archive(manifests, images.values(), (), store)


def index_archive(
    name: str, index: Blob, images: Collection[Image], store: Store
) -> Iterator[bytes]:
    """Yield an OCI archive of one image for several architectures.

    Args:
        name: of the image, with its tag.
        index: of its images.
    """
    return _archive([_named(_descriptor(_INDEX, index), name)], images, (index,), store)


def _archive(
    manifests: list[JsonObject], images: Collection[Image], more: Collection[Blob], store: Store
) -> Iterator[bytes]:
    yield from _file("oci-layout", io.BytesIO(_dump({"imageLayoutVersion": "1.0.0"})))
    yield from _file("index.json", io.BytesIO(_dump(_index(manifests))))
    blobs = {blob for image in images for blob in (image.manifest, *image.blobs)}
    for blob in sorted({*blobs, *more}):
        algorithm, _, digest = blob.digest.partition(":")
        with store.path(blob).open("rb") as file:
            yield from _file(f"blobs/{algorithm}/{digest}", file)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _write_layer(recipe: Recipe, entries: Sequence[Entry], store: Store) -> _Layer:
    stream = partial(pack, entries)
    if not recipe.is_compressed:
        blob = store.put(stream)
        return _Layer(blob, blob.digest)
    content = b"".join(stream())
    packed = gzip.compress(content, mtime=0)
    return _Layer(store.put(lambda: [packed]), f"sha256:{hashlib.sha256(content).hexdigest()}")


def _index(manifests: list[JsonObject]) -> JsonObject:
    return {"schemaVersion": 2, "mediaType": _INDEX, "manifests": manifests}


def _named(descriptor: JsonObject, name: str) -> JsonObject:
    names = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name.rpartition(":")[2],
    }
    return {**descriptor, "annotations": names}


def _configuration(recipe: Recipe, layers: Sequence[_Layer]) -> JsonObject:
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", **recipe.variables}
    return {
        "architecture": recipe.architecture,
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
