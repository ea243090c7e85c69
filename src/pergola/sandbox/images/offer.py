"""What the catalogue offers: an image with its names, and how it is made."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pergola.sandbox import binaries
from pergola.sandbox.images.layers import Entry, folder, program
from pergola.sandbox.images.oci import Recipe
from pergola.sandbox.module import OWN, Module
from pergola.sandbox.progress import Progress

_OWN_VERSION: Final = "v1"
# What every program may expect of a system; shared by all images.
BASE: Final[tuple[Entry, ...]] = (
    Entry("etc/group", b"root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"),
    Entry("etc/nsswitch.conf", b"hosts: files dns\n"),
    Entry(
        "etc/passwd",
        b"root:x:0:0:root:/root:/sbin/nologin\n"
        b"nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n"
        b"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
    ),
    folder("home/nonroot", 0o700, 65532),
    folder("root", 0o700),
    folder("run"),
    folder("tmp", 0o1777),
    folder("var/tmp", 0o1777),
)


class Offer(ABC):
    """An image that can be provided.

    Attributes:
        name: its name in commands.
        repository: the repository of the original, with its registry.
        aliases: other repositories that mean the same program.
        stand_in: what it does instead of the original; empty: it is the original program.
    """

    name: str
    repository: str
    aliases: tuple[str, ...]
    stand_in: str

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of the program, e.g. `v1.36.3`."""

    @property
    @abstractmethod
    def source(self) -> str:
        """Where the program comes from."""

    @abstractmethod
    def is_built(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Whether the image can be made without building a program first."""

    @abstractmethod
    def key(self) -> str:
        """Return what changes whenever the content does; empty: look at the content."""

    @abstractmethod
    def recipe(self, progress: Progress, environ: Mapping[str, str] = os.environ) -> Recipe:
        """Return what the image is made of; builds programs that are nowhere.

        Raises:
            SandboxError: a program cannot be had.
        """

    @property
    def reference(self) -> str:
        """The image's full name."""
        return f"{self.repository}:{self.version}"

    def labels(self) -> dict[str, str]:
        """Return the labels of the image."""
        labels = {
            "org.opencontainers.image.source": self.source,
            "org.opencontainers.image.version": self.version,
        }
        return labels | ({"pergola.dev/stand-in": self.stand_in} if self.stand_in else {})


@dataclass(frozen=True)
class Program(Offer):
    """An image with one static program of a Go module.

    Attributes:
        name: also of the program.
        module: from which the program is built.
        requires: the module whose version it has, if that is another one.
        user: who runs it, as `user:group`.
    """

    name: str
    repository: str
    module: Module
    requires: str = ""
    aliases: tuple[str, ...] = ()
    user: str = "65532:65532"
    stand_in: str = ""

    @property
    def version(self) -> str:
        """The version of the Go module."""
        if not (self.requires or self.module.versioned):
            return _OWN_VERSION
        return self.module.version_of(self.requires or self.module.versioned)

    @property
    def source(self) -> str:
        """The Go package, or the folder in Pergola's sources."""
        if self.module is OWN:
            return f"Pergola: sandbox/gomod/node/{self.name}"
        package = self.module.packages[self.name]
        return self.module.versioned if package.startswith(".") else package

    def is_built(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Whether the program is there."""
        return self.name in binaries.present((self.name,), environ)

    def key(self) -> str:
        """Return nothing: a program is one file, which is quickly read."""
        return ""

    def recipe(self, progress: Progress, environ: Mapping[str, str] = os.environ) -> Recipe:
        """Put the program above what all images share."""
        built = binaries.find((self.name,), progress, environ)[self.name]
        path = f"usr/local/bin/{self.name}"
        return Recipe([BASE, [program(path, built)]], [f"/{path}"], self.user, labels=self.labels())
