"""References to images: `repository:tag`, `repository@sha256:…`, or both."""

from typing import NamedTuple


class ImageReference(NamedTuple):
    """The parts of a reference; missing ones are empty."""

    repository: str
    tag: str = ""
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> "ImageReference":
        """Split a reference into its parts, without mistaking a registry's port for a tag."""
        name, _, digest = text.partition("@")
        head, colon, tag = name.rpartition(":")
        if not colon or "/" in tag:
            return cls(name, "", digest)
        return cls(head, tag, digest)

    @property
    def is_pinned(self) -> bool:
        """Whether it always refers to the same image, as far as a tag can guarantee that."""
        return bool(self.digest) or self.tag not in ("", "latest")
