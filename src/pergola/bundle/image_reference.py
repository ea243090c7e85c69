"""The name of an image: `repository:tag`, `repository@sha256:…`, or both."""

from typing import NamedTuple


class ImageReference(NamedTuple):
    """Parts of a reference; what is missing is empty."""

    repository: str
    tag: str = ""
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> "ImageReference":
        """Take a reference apart; a port of the registry is not taken for a tag."""
        name, _, digest = text.partition("@")
        head, colon, tag = name.rpartition(":")
        if not colon or "/" in tag:
            return cls(name, "", digest)
        return cls(head, tag, digest)

    @property
    def is_pinned(self) -> bool:
        """Whether it always means the same image, as far as a tag can promise that."""
        return bool(self.digest) or self.tag not in ("", "latest")
