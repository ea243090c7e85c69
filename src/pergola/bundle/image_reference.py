"""References to images: `repository:tag`, `repository@sha256:…`, or both."""

import re
from typing import Final, NamedTuple

_HOST: Final = r"(?:\[[0-9a-fA-F:]+\]|[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?)(?::[0-9]+)?"
_PART: Final = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_TAG: Final = r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
_DIGEST: Final = r"sha256:[0-9a-f]{64}"
_EXACT: Final = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG}(?:@{_DIGEST})?|@{_DIGEST})", re.ASCII
)


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

    @staticmethod
    def is_exact(text: str) -> bool:
        """Return whether a text is a reference with a tag or digest, as container runtimes read."""
        return _EXACT.fullmatch(text) is not None

    @property
    def is_pinned(self) -> bool:
        """Whether it always refers to the same image, as far as a tag can guarantee that."""
        return bool(self.digest) or self.tag not in ("", "latest")
