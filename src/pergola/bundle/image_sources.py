"""The entries of an image vector file: parsing, validating, and overriding them by field."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NamedTuple

from pergola.api.field_errors import Cause, duplicate, forbidden, invalid, required, unsupported
from pergola.api.objects import JsonObject, JsonValue
from pergola.bundle.errors import BundleError
from pergola.bundle.image_reference import ImageReference
from pergola.bundle.versions import VersionError, VersionRange
from pergola.kube.yaml import YamlError, parse

ARCHITECTURES: Final = ("amd64", "arm64")

_STRINGS: Final = (
    "name",
    "sourceRepository",
    "repository",
    "tag",
    "ref",
    "runtimeVersion",
    "targetVersion",
    "version",
)
_FIELDS: Final = (*_STRINGS, "architectures", "resourceId", "labels")
_RANGES: Final = ("runtimeVersion", "targetVersion")
_RANGE_SIGNS: Final = frozenset("<>=!~^*|, ")


class ImageVectorError(BundleError):
    """An image vector file cannot be used.

    Attributes:
        causes: all problems, with field paths such as `images[3].tag`.
    """

    def __init__(self, origin: str, causes: Sequence[Cause]) -> None:
        self.causes = tuple(causes)
        super().__init__(f"{origin}: {'; '.join(map(str, causes))}")


@dataclass(frozen=True, slots=True)
class ImageSource:
    """An entry: the location of an image, and its versions and architectures.

    Attributes:
        fields: the known fields of the entry.
        place: the place of the entry in its file, such as `images[3]`.
    """

    fields: JsonObject
    place: str

    def text(self, field: str) -> str:
        """Return the value of a string field; empty if it is absent."""
        value = self.fields.get(field)
        return value if isinstance(value, str) else ""

    @property
    def name(self) -> str:
        """The name for lookups by components; several entries may share it."""
        return self.text("name")

    @property
    def architectures(self) -> tuple[str, ...]:
        """The specified architectures; empty means all."""
        return tuple(self.fields.get("architectures") or ())

    @property
    def identity(self) -> "Identity":
        """The key of the entry, unique in a file."""
        return Identity(
            self.name,
            _range(self.text("runtimeVersion")),
            _range(self.text("targetVersion")),
            frozenset(self.architectures),
        )

    def with_fields_of(self, other: "ImageSource") -> "ImageSource":
        """Return this entry overridden by another; `ref` and `repository` replace each other.

        Architectures are kept: they are part of the entry's identity.
        """
        dropped: set[str] = set()
        if "ref" in other.fields:
            dropped = {"repository", "tag"}
        elif "repository" in other.fields:
            dropped = {"ref"}
        kept = {name: value for name, value in self.fields.items() if name not in dropped}
        return ImageSource(kept | other.fields, other.place)

    def below(self, registry: str) -> "ImageSource":
        """Return this entry with its image below a registry."""
        moved = {
            name: f"{registry}/{self.text(name)}"
            for name in ("ref", "repository")
            if self.text(name)
        }
        return ImageSource(self.fields | moved, self.place)


class Identity(NamedTuple):
    """The identity of an entry within its file."""

    name: str
    runtime_version: VersionRange | None
    target_version: VersionRange | None
    architectures: frozenset[str]

    def is_overridden_by(self, other: "Identity") -> bool:
        """Return whether an entry of another file overrides it; no architecture means all."""
        return self[:3] == other[:3] and other.architectures in (frozenset(), self.architectures)


def read_sources(text: str | bytes, origin: str, *, complete: bool = True) -> list[ImageSource]:
    """Return the entries of a file.

    Args:
        origin: the name of the file, for errors.
        complete: whether each entry must have the location of its image; overriding ones need not.

    Raises:
        ImageVectorError: the file is not an image vector; the text lists all findings.
    """
    try:
        content = parse(text)
    except YamlError as error:
        raise ImageVectorError(origin, [Cause("FieldValueInvalid", str(error), "file")]) from None
    entries = content.get("images") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise ImageVectorError(origin, [required("images", "must be a list of images")])
    causes = [cause for i, entry in enumerate(entries) for cause in _check(entry, f"images[{i}]")]
    if causes:
        raise ImageVectorError(origin, causes)
    sources = [
        ImageSource(_known(entry), f"{origin}, images[{i}]")
        for i, entry in enumerate(entries)
        if isinstance(entry, dict)
    ]
    causes = [*_duplicates(sources), *(_incomplete(sources) if complete else ())]
    if causes:
        raise ImageVectorError(origin, causes)
    return sources


def override_sources(
    sources: Sequence[ImageSource], overrides: Sequence[ImageSource], origin: str
) -> list[ImageSource]:
    """Return the entries overridden by those of another file; added entries come first.

    Raises:
        ImageVectorError: an entry lacks the location of its image after the override.
    """
    merged = list(sources)
    added = []
    for override in overrides:
        places = [
            i
            for i, source in enumerate(sources)
            if source.identity.is_overridden_by(override.identity)
        ]
        for i in places:
            merged[i] = merged[i].with_fields_of(override)
        if not places:
            added.append(override)
    if causes := [*_incomplete(added), *_moved(sources, merged), *_incomplete(merged)]:
        raise ImageVectorError(origin, causes)
    return added + merged


def _known(entry: JsonObject) -> JsonObject:
    fields = {name: entry[name] for name in _FIELDS if entry.get(name) not in (None, "", [])}
    version = fields.get("version", "")
    if "targetVersion" not in fields and _is_range(version):
        # The previous name of the field, which overriding files still use.
        fields["targetVersion"] = fields.pop("version")
    return fields


def _range(text: str) -> VersionRange | None:
    return VersionRange.parse(text) if text else None


def _is_range(version: str) -> bool:
    return not _RANGE_SIGNS.isdisjoint(version) or version.endswith((".x", ".X"))


def _check(entry: JsonValue, path: str) -> Iterator[Cause]:
    if not isinstance(entry, dict):
        yield invalid(path, entry, "must be a map")
        return
    yield from _check_names(entry, path)
    yield from _check_strings(entry, path)
    if not entry.get("name"):
        yield required(f"{path}.name")
    yield from _check_place(entry, path)
    yield from _check_architectures(entry.get("architectures"), f"{path}.architectures")


def _check_names(entry: JsonObject, path: str) -> Iterator[Cause]:
    """Ignore unknown fields, which a later version may define, except for likely typos."""
    for name in entry:
        if name not in _FIELDS and (meant := get_close_matches(name, _FIELDS, 1, 0.8)):
            yield forbidden(f"{path}.{name}", f"unknown field; did you mean {meant[0]}?")


def _check_strings(entry: JsonObject, path: str) -> Iterator[Cause]:
    for name in _STRINGS:
        value = entry.get(name)
        if value is not None and not isinstance(value, str):
            yield invalid(f"{path}.{name}", value, "must be a string; put it in quotes")
        elif value and (name in _RANGES or (name == "version" and _is_range(value))):
            yield from _check_range(value, f"{path}.{name}")


def _check_range(text: str, path: str) -> Iterator[Cause]:
    try:
        VersionRange.parse(text)
    except VersionError as error:
        yield invalid(path, text, str(error))


def _check_place(entry: JsonObject, path: str) -> Iterator[Cause]:
    ref, repository, tag = (entry.get(name) for name in ("ref", "repository", "tag"))
    if ref and (repository or tag):
        yield forbidden(f"{path}.ref", "excludes repository and tag; keep one of the two")
    if isinstance(ref, str) and ref and not ImageReference.parse(ref).is_pinned:
        yield invalid(f"{path}.ref", ref, "needs a tag other than latest, or a digest")
    if isinstance(repository, str) and any(ImageReference.parse(repository)[1:]):
        yield invalid(f"{path}.repository", repository, "move its tag or digest to the field tag")
    if tag == "latest":
        yield invalid(f"{path}.tag", tag, "may refer to another image tomorrow; use a version")


def _check_architectures(value: JsonValue, path: str) -> Iterator[Cause]:
    if value is None:
        return
    if not isinstance(value, list):
        yield invalid(path, value, "must be a list")
        return
    for i, name in enumerate(value):
        if name not in ARCHITECTURES:
            yield unsupported(f"{path}[{i}]", name, ARCHITECTURES)
        elif name in value[:i]:
            yield duplicate(f"{path}[{i}]", name)


def _duplicates(sources: Sequence[ImageSource]) -> Iterator[Cause]:
    seen: set[Identity] = set()
    for source in sources:
        if source.identity in seen:
            path = f"{_path(source)}.name"
            yield Cause(
                "FieldValueDuplicate",
                f'Duplicate value: "{source.name}": an entry before has the same versions and'
                " architectures",
                path,
            )
        seen.add(source.identity)


def _incomplete(sources: Iterable[ImageSource]) -> Iterator[Cause]:
    for source in sources:
        if source.text("ref"):
            if source.text("tag"):
                detail = f"has no effect on {source.name}, which has a ref; give ref or repository"
                yield forbidden(f"{_path(source)}.tag", detail)
        elif not source.text("repository"):
            detail = f"{source.name} needs a repository and a tag, or a ref"
            yield required(f"{_path(source)}.repository", detail)


def _moved(before: Sequence[ImageSource], after: Sequence[ImageSource]) -> Iterator[Cause]:
    """Yield a finding for each entry whose `ref` was replaced by a repository without a tag."""
    for old, new in zip(before, after, strict=True):
        if old.text("ref") and new.text("repository") and not new.text("tag"):
            detail = f"repository replaces the ref of {new.name}, and with it the tag"
            yield required(f"{_path(new)}.tag", detail)


def _path(source: ImageSource) -> str:
    return source.place.rpartition(", ")[2]
