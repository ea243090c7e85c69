"""The images of a component, listed in a file that an installation may override.

    images = ImageVector.from_environment(files(package) / "images.yaml")
    images.find("calico-node", version="1.31.2")

An entry applies to the versions of Kubernetes in its `targetVersion` (of the cluster that the image
serves) and `runtimeVersion` (of the cluster that it runs in), and to its `architectures`.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from pergola.bundle.errors import BundleError
from pergola.bundle.image_reference import ImageReference
from pergola.bundle.image_sources import (
    ARCHITECTURES,
    ImageSource,
    ImageVectorError,
    override_sources,
    read_sources,
)
from pergola.bundle.versions import Version, VersionRange

__all__ = ["OVERWRITE", "OWN", "REGISTRY", "ImageNotFound", "ImageVector", "ImageVectorError"]

OVERWRITE: Final = "IMAGEVECTOR_OVERWRITE"
"""The environment variable with the path of the overriding file."""
REGISTRY: Final = "PERGOLA_IMAGE_REGISTRY"
"""The environment variable with the registry that has copies of all images."""
OWN: Final = "PERGOLA_IMAGE"
"""The environment variable with the image that a process of Pergola runs from."""
_IS_REGISTRY: Final = re.compile(r"[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]+)?")


class ImageNotFound(BundleError):
    """An image vector has no matching image; the text says what it has instead."""


@dataclass(frozen=True, slots=True)
class _Desired:
    name: str
    version: str
    runtime_version: str
    architecture: str

    def __str__(self) -> str:
        parts = [f'image "{self.name}"']
        if self.version:
            parts.append(f"for Kubernetes {self.version}")
        if self.runtime_version:
            parts.append(f"running on Kubernetes {self.runtime_version}")
        return " ".join([*parts, *([f"on {self.architecture}"] if self.architecture else [])])


@dataclass(frozen=True, slots=True)
class ImageVector:
    """The images of a component, in the order of the file."""

    sources: tuple[ImageSource, ...]
    origin: str = "image vector"

    @classmethod
    def load(cls, text: str | bytes, origin: str = "image vector") -> "ImageVector":
        """Read a file.

        Args:
            origin: the name of the file for errors, for example its path.

        Raises:
            ImageVectorError: the file is not an image vector; the text lists all findings.
        """
        return cls(tuple(read_sources(text, origin)), origin)

    @classmethod
    def from_environment(
        cls,
        package_file: Path | Traversable,
        environment: Mapping[str, str] = os.environ,
        own: str = "",
    ) -> "ImageVector":
        """Read a file, and override it with the one that `IMAGEVECTOR_OVERWRITE` names, if set.

        The images of the file itself come from the registry that `PERGOLA_IMAGE_REGISTRY` names,
        if set.

        Args:
            own: the name of the image of Pergola itself. `PERGOLA_IMAGE` replaces it, if set.

        Raises:
            ImageVectorError: one of the files is not an image vector.
            BundleError: the overriding file cannot be read, or the registry or the image is not
                one.
        """
        images = cls.load(package_file.read_bytes(), package_file.name)
        if registry := environment.get(REGISTRY, ""):
            images = images.copied_to(registry)
        if own and (image := environment.get(OWN, "")):
            images = images.override(_one_image(own, image), OWN)
        path = environment.get(OVERWRITE, "")
        if not path:
            return images
        try:
            return images.override(Path(path).read_bytes(), path)
        except OSError as error:
            raise BundleError(
                f"cannot read {path}, which {OVERWRITE} names: {error.strerror}"
            ) from None

    def copied_to(self, registry: str) -> "ImageVector":
        """Return a vector of the copies of these images in a registry.

        The name of a copy is that of its image, registry included, below the other registry: in
        `registry.example/copies`, that of `quay.io/calico/node` is
        `registry.example/copies/quay.io/calico/node`.

        Args:
            registry: a host, with a port or a path.

        Raises:
            BundleError: the registry is not one.
        """
        if not _IS_REGISTRY.fullmatch(registry):
            raise BundleError(
                f"{REGISTRY} is {registry!r}: name a host with a port or a path, such as "
                "registry.example/copies"
            )
        sources = (source.below(registry.rstrip("/")) for source in self.sources)
        return ImageVector(tuple(sources), self.origin)

    def override(self, text: str | bytes | None, origin: str = "override") -> "ImageVector":
        """Return a vector in which the entries of a file replace those of this one.

        An entry replaces, field by field, those with the same name and versions (and the same
        architectures, if it specifies any). Without such entries it is added, and takes precedence
        over other matches. `ref` replaces repository and tag, `repository` replaces `ref`.

        Raises:
            ImageVectorError: the file is not an image vector, or leaves an entry without an image.
        """
        if text is None:
            return self
        overrides = read_sources(text, origin, complete=False)
        sources = override_sources(self.sources, overrides, origin)
        return ImageVector(tuple(sources), f"{self.origin} with {origin}")

    def find(
        self,
        name: str,
        *,
        version: str = "",
        runtime_version: str = "",
        architecture: str = "amd64",
    ) -> str:
        """Return the reference of the image, `repository:tag` or `repository@sha256:…`.

        Among matching entries, those limited to versions take precedence, then those with specific
        architectures, then earlier ones. An entry for certain versions matches only if the version
        is known. An entry without a tag uses the version of the cluster as its tag, like the images
        of Kubernetes itself.

        Args:
            version: the Kubernetes version of the cluster that the image serves.
            runtime_version: the Kubernetes version of the cluster that it runs in, if different.
            architecture: the architecture of the machines; empty if irrelevant.

        Raises:
            ImageNotFound: no entry matches.
            VersionError: a given version is not valid.
        """
        desired = _Desired(name, version, runtime_version, architecture)
        return _reference(self._source(desired), desired)

    def version_of(self, name: str, *, version: str = "", runtime_version: str = "") -> str:
        """Return the version of an image: that of its entry or else its tag; empty if unknown.

        Args and errors are those of `find`.
        """
        desired = _Desired(name, version, runtime_version, "")
        source = self._source(desired)
        return source.text("version") or ImageReference.parse(_reference(source, desired)).tag

    def _source(self, desired: _Desired) -> ImageSource:
        candidates = [source for source in self.sources if source.name == desired.name]
        fitting = [source for source in candidates if _fits(source, desired)]
        if not fitting:
            raise ImageNotFound(self._nothing(desired, candidates))
        return max(fitting, key=_rank)

    def _nothing(self, desired: _Desired, candidates: Sequence[ImageSource]) -> str:
        if candidates:
            there = "; ".join(map(_described, candidates))
        else:
            there = _similar(desired.name, {source.name for source in self.sources})
        return (
            f"no {desired} in {self.origin}: there is {there}; add an entry in the file that "
            f"{OVERWRITE} names"
        )


def _fits(source: ImageSource, desired: _Desired) -> bool:
    return (
        _within(source.text("targetVersion"), desired.version)
        and _within(source.text("runtimeVersion"), desired.runtime_version)
        and (not desired.architecture or desired.architecture in _architectures(source))
    )


def _one_image(name: str, reference: str) -> str:
    """Return an image vector with one image.

    Raises:
        BundleError: the reference is not one, or has neither tag nor digest.
    """
    if not ImageReference.is_exact(reference):
        raise BundleError(
            f"{OWN} is {reference!r}: name an image with its tag or digest, such as "
            "registry.example/pergola:0.1.0"
        )
    found = ImageReference.parse(reference)
    image = {"name": name, "repository": found.repository, "tag": found.digest or found.tag}
    return json.dumps({"images": [image]})


def _within(versions: str, version: str) -> bool:
    if not version:
        return not versions
    parsed = Version.parse(version)
    return not versions or parsed in VersionRange.parse(versions)


def _architectures(source: ImageSource) -> Sequence[str]:
    return source.architectures or ARCHITECTURES


def _rank(source: ImageSource) -> tuple[int, bool, bool]:
    """Return how specific an entry is; among equally specific ones, `max` takes the first."""
    target, runtime = bool(source.text("targetVersion")), bool(source.text("runtimeVersion"))
    return target + runtime, target, bool(source.architectures)


def _reference(source: ImageSource, desired: _Desired) -> str:
    if ref := source.text("ref"):
        return ref
    repository, tag = source.text("repository"), source.text("tag")
    if not tag:
        if not desired.version:
            raise ImageNotFound(
                f"{desired} has no tag ({source.place}): name the version of Kubernetes that it"
                " is for, or give it a tag"
            )
        tag = f"v{desired.version.removeprefix('v')}"
    return f"{repository}@{tag}" if tag.startswith("sha256:") else f"{repository}:{tag}"


def _described(source: ImageSource) -> str:
    limits = [
        f'{field} "{source.text(field)}"'
        for field in ("targetVersion", "runtimeVersion")
        if source.text(field)
    ]
    return f"{source.place} ({', '.join([*limits, *_architectures(source)])})"


def _similar(name: str, names: Iterable[str]) -> str:
    close = get_close_matches(name, sorted(names), 3)
    return "only " + ", ".join(close or sorted(names) or ["nothing"])
