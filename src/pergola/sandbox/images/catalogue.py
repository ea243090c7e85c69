"""The images that a sandbox can provide: their names, programs and sources.

Manifests name images as they do in any other cluster. A name is looked up by its repository,
without registry prefix where that is enough; the tag never matters, because there is one version of
each program.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pergola.sandbox.components import APISERVER, CONTROLLER_MANAGER, ETCD, KUBE_PROXY, SCHEDULER
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.images.layers import Entry, folder, program
from pergola.sandbox.images.oci import Recipe
from pergola.sandbox.module import (
    COREDNS,
    DNS,
    KUBERNETES_NODE,
    LOCAL_PATH,
    LOCAL_PATH_HELPER,
    LOCAL_PATH_PROVISIONER,
    METRICS,
    METRICS_SERVER,
    OWN,
    PAUSE,
    SANDBOX,
    Module,
)

_OWN_VERSION: Final = "v1"
_ROOT: Final = "0:0"


@dataclass(frozen=True)
class Offer:
    """An image that can be provided.

    Attributes:
        name: its name in commands, and the name of its program.
        repository: the repository of the original, with its registry.
        module: from which the program is built.
        requires: the module whose version it has, if that is another one.
        aliases: other repositories that mean the same program.
        user: as whom it runs; empty: an ordinary user.
        stand_in: what it does instead of the original; empty: it is the original program.
    """

    name: str
    repository: str
    module: Module
    requires: str = ""
    aliases: tuple[str, ...] = ()
    user: str = ""
    stand_in: str = ""

    @property
    def version(self) -> str:
        """The version of the program, e.g. `v1.36.3`."""
        if not (self.requires or self.module.versioned):
            return _OWN_VERSION
        return self.module.version_of(self.requires or self.module.versioned)

    @property
    def reference(self) -> str:
        """The image's full name."""
        return f"{self.repository}:{self.version}"

    @property
    def source(self) -> str:
        """Where the program comes from."""
        if self.module is OWN:
            return f"Pergola: sandbox/gomod/node/{self.name}"
        package = self.module.packages[self.name]
        return self.module.versioned if package.startswith(".") else package

    def recipe(self, built: Path) -> Recipe:
        """Return how the image is made of the built program."""
        layer = [program(f"usr/local/bin/{self.name}", built)]
        entrypoint = [f"/usr/local/bin/{self.name}"]
        recipe = Recipe([BASE, layer], entrypoint, labels=self._labels())
        return (
            Recipe(recipe.layers, entrypoint, self.user, labels=self._labels())
            if self.user
            else recipe
        )

    def _labels(self) -> dict[str, str]:
        labels = {
            "org.opencontainers.image.source": self.source,
            "org.opencontainers.image.version": self.version,
        }
        return labels | ({"pergola.dev/stand-in": self.stand_in} if self.stand_in else {})


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

CATALOGUE: Final[tuple[Offer, ...]] = (
    Offer(PAUSE, "registry.k8s.io/pause", OWN, stand_in="sleeps and reaps, as the original does"),
    Offer(COREDNS, "registry.k8s.io/coredns/coredns", DNS),
    Offer(LOCAL_PATH_PROVISIONER, "docker.io/rancher/local-path-provisioner", LOCAL_PATH),
    Offer(
        LOCAL_PATH_HELPER,
        "pergola.local/local-path-helper",
        OWN,
        user=_ROOT,
        stand_in="makes and removes folders, without a shell",
    ),
    Offer(METRICS_SERVER, "registry.k8s.io/metrics-server/metrics-server", METRICS),
    Offer(ETCD, "registry.k8s.io/etcd", SANDBOX, requires="go.etcd.io/etcd/server/v3"),
    Offer(APISERVER, "registry.k8s.io/kube-apiserver", SANDBOX),
    Offer(CONTROLLER_MANAGER, "registry.k8s.io/kube-controller-manager", SANDBOX),
    Offer(SCHEDULER, "registry.k8s.io/kube-scheduler", SANDBOX),
    Offer(KUBE_PROXY, "registry.k8s.io/kube-proxy", KUBERNETES_NODE, user=_ROOT),
)


def named(names: Iterable[str]) -> list[Offer]:
    """Return the offers of these names.

    Raises:
        SandboxError: there is none of a name.
    """
    offers = {offer.name: offer for offer in CATALOGUE}
    wanted = list(names)
    for name in wanted:
        if name not in offers:
            raise SandboxError(f'there is no image "{name}"; `pergola sandbox images` lists all')
    return [offers[name] for name in wanted]


def resolve(reference: str) -> Offer | None:
    """Return the offer for an image that a manifest names, whatever its tag or digest."""
    repository = repository_of(reference)
    for offer in CATALOGUE:
        if repository in (offer.repository, *offer.aliases):
            return offer
    return None


def repository_of(reference: str) -> str:
    """Return the repository in an image reference, with the registry that is meant."""
    name = reference.partition("@")[0]
    head, slash, last = name.rpartition("/")
    repository = f"{head}{slash}{last.partition(':')[0]}"
    first = repository.partition("/")[0]
    if "/" not in repository:
        return f"docker.io/library/{repository}"
    if "." not in first and ":" not in first and first != "localhost":
        return f"docker.io/{repository}"
    return repository
