"""The support matrix: the versions of other projects that the tests run, from the lock files."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pergola.api.objects import maps_at
from pergola.kube.yaml import parse

ROOT: Final = Path(__file__).parents[1]
_GO: Final = ROOT / "src" / "pergola" / "sandbox" / "gomod"
_ORACLES: Final = ROOT / "conformance" / "oracle"


class Line(NamedTuple):
    """A line of the matrix.

    Attributes:
        versions: those that the tests run.
        tests: a file or folder of the repository.
    """

    component: str
    role: str
    versions: str
    tests: str


def lines() -> Iterator[Line]:
    """Yield the lines of the matrix."""
    gardener = _module(_GO / "gardener", "github.com/gardener/gardener")
    previous = _module(_GO / "previous-gardenlet", "github.com/gardener/gardener")
    kubernetes = _module(_GO / "kubernetes", "k8s.io/kubernetes")
    cluster_api = _module(_GO / "cluster-api", "sigs.k8s.io/cluster-api")
    capa = _module(_GO / "cluster-api-provider-aws", "sigs.k8s.io/cluster-api-provider-aws/v2")
    aws = "github.com/gardener/gardener-extension-provider-aws"
    yield Line(
        "Gardener",
        "what Pergola does as its parts do, and the API server of a Garden",
        gardener,
        "conformance",
    )
    yield Line(
        "gardenlet", "beside our operator and resource managers", gardener, "tests/landscape"
    )
    yield Line(
        "gardenlet, one release before",
        "upgraded under running Shoots",
        previous,
        "tests/landscape/test_upgrades.py",
    )
    yield Line(
        "Gardener's AWS extension", "compared", _module(_ORACLES / "aws", aws), "conformance"
    )
    yield Line(
        "Gardener's AWS extension, its program",
        "hands networks and machines over, and takes them back",
        _module(_GO / "provider-aws", aws),
        "tests/integration/providers/aws/test_aws_original.py",
    )
    yield Line(
        "Gardener's Calico extension",
        "compared",
        _module(_ORACLES / "calico", "github.com/gardener/gardener-extension-networking-calico"),
        "conformance",
    )
    yield Line(
        "Kubernetes", "runtime cluster, virtual cluster, Seed and Shoot", kubernetes, "tests"
    )
    yield Line(
        "etcd-druid",
        "etcds of a Garden on a real node",
        _module(_GO / "etcd-druid", "github.com/gardener/etcd-druid"),
        "tests/node",
    )
    yield Line(
        "Cluster API",
        "core manager beside the infra manager, contracts v1beta1 and v1beta2",
        cluster_api,
        "tests/integration/externally_managed",
    )
    yield Line(
        "Cluster API provider AWS",
        "kinds of AWSClusters",
        capa,
        "tests/integration/externally_managed",
    )
    yield Line(
        "Calico", "objects compared with its chart", _image("calico", "calico-node"), "tests/unit"
    )
    yield Line(
        "Calico's Felix",
        "enforces NetworkPolicies on a real node",
        _module(_GO / "felix", "github.com/projectcalico/calico"),
        "tests/node/test_network_policies_on_node.py",
    )
    yield Line(
        "Cilium", "objects compared with its chart", _image("cilium", "cilium-agent"), "tests/unit"
    )
    yield Line(
        "Helm",
        "installs the charts",
        _module(_GO / "helm", "helm.sh/helm/v3"),
        "tests/node/test_manager_chart_on_node.py",
    )
    yield Line(
        "Flux",
        "health rules",
        _module(_ORACLES / "flux", "github.com/fluxcd/pkg/runtime"),
        "conformance",
    )
    yield Line(
        "Argo CD",
        "health rules",
        _module(_ORACLES / "argocd", "github.com/argoproj/argo-cd/v3"),
        "conformance",
    )
    oldest, *newer = interpreters()
    yield Line("Python", "interpreter of all tests", oldest, "tests")
    yield Line(
        "Python, newer",
        "interpreter of the unit tests",
        ", ".join(newer),
        "tests/integration/process/test_other_interpreters.py",
    )


def table() -> str:
    """Return the matrix."""
    rows = [
        f"| {each.component} | {each.role} | {each.versions} | `{each.tests}` |" for each in lines()
    ]
    return "\n".join(["| component | role | version | tested by |", "|---|---|---|---|", *rows, ""])


def _module(folder: Path, path: str) -> str:
    """Return the version of a module that a go.mod requires.

    Raises:
        SystemExit: it does not.
    """
    found = re.search(
        rf"^(?:require)?\s*{re.escape(path)} (\S+)", (folder / "go.mod").read_text(), re.MULTILINE
    )
    if found is None:
        raise SystemExit(f"{folder / 'go.mod'} does not require {path}")
    return found[1]


def _image(network: str, name: str) -> str:
    folder = ROOT / "src" / "pergola" / "providers" / "networking" / network
    vector = parse((folder / "images.yaml").read_bytes())
    if not isinstance(vector, dict):
        raise AssertionError("an image vector is an object")
    (tag,) = [each["tag"] for each in maps_at(vector, "images") if each["name"] == name]
    return str(tag)


def interpreters() -> list[str]:
    """Return the versions of Python for which the package is made, the oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [re.fullmatch(r".* :: Python :: (3\.\d+)", each) for each in project["classifiers"]]
    return [match[1] for match in found if match]
