"""Offers of the catalogue: images with their names and recipes."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pergola.sandbox import binaries
from pergola.sandbox.images.layers import Entry, folder, program
from pergola.sandbox.images.oci import NONROOT, Recipe
from pergola.sandbox.module import Module
from pergola.sandbox.progress import Progress

_OWN_VERSION: Final = "v1"
# The files that programs expect of a system, shared by all images.
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
        name: the name in commands.
        repository: the repository of the original, with its registry.
        aliases: other repositories of the same program.
        stand_in: the behaviour of a substitute; empty if the image has the original program.
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
        """The origin of the program."""

    @abstractmethod
    def is_built(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Return whether the image can be built without compiling a program first."""

    @abstractmethod
    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return a key that changes with the content; if empty, the content itself is hashed."""

    @abstractmethod
    def recipe(self, progress: Progress, environ: Mapping[str, str] = os.environ) -> Recipe:
        """Return the image's recipe, building missing programs.

        Raises:
            SandboxError: a program can be neither found nor built.
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
        name: the name of the image and of the program.
        module: the module that the program is built from.
        requires: the required module whose version is reported, if not the module itself.
        user: the user to run as, in the form `user:group`.
        also: other paths of the program that manifests use as commands, without leading slashes.
    """

    name: str
    repository: str
    module: Module
    requires: str = ""
    aliases: tuple[str, ...] = ()
    user: str = NONROOT
    stand_in: str = ""
    also: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The version of the Go module."""
        if not (self.requires or self.module.versioned):
            return _OWN_VERSION
        return self.module.version_of(self.requires or self.module.versioned)

    @property
    def source(self) -> str:
        """The Go package, or the folder in Pergola's sources."""
        package = self.module.packages[self.name]
        if package.startswith("./"):
            return f"Pergola: sandbox/gomod/{self.module.directory.name}/{package[2:]}"
        return self.module.versioned if package == "." else package

    def is_built(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Return whether the program exists already."""
        return self.name in binaries.present((self.name,), environ)

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return an empty key: reading one program is fast."""
        return ""

    def recipe(self, progress: Progress, environ: Mapping[str, str] = os.environ) -> Recipe:
        """Return a recipe with the program in a layer above the shared base."""
        built = binaries.find((self.name,), progress, environ)[self.name]
        path = f"usr/local/bin/{self.name}"
        layer = [program(path, built), *(Entry(other, target=f"/{path}") for other in self.also)]
        return Recipe([BASE, layer], [f"/{path}"], self.user, labels=self.labels())
