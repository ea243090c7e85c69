"""Writes the CustomResourceDefinitions of other projects that Pergola ships, and their notice.

They come from Go modules at pinned versions and checksums, so every run writes the same
bytes: `.venv/bin/python tools/definitions.py`. It needs Go, and the Go module proxy once.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import brotli
import orjson

from pergola.api.marks import DELETION_PROTECTED
from pergola.api.objects import JsonObject, name_of
from pergola.garden.components.definitions import GROUPS, SHOOT_EXTENSIONS
from pergola.kube.yaml import parse_documents
from pergola.manifests.definitions import Group
from pergola.providers.aws.control_plane.render import definitions as of_aws

SOURCE: Final = Path(__file__).parents[1] / "src" / "pergola"
FOLDERS: Final = {
    SOURCE / "garden" / "components" / "definitions": (*GROUPS, SHOOT_EXTENSIONS),
    Path(of_aws.__file__).parent: of_aws.GROUPS,
}
"""The groups in each folder."""


@dataclass(frozen=True)
class Module:
    """A Go module at the version to take definitions from, with its checksum as in a go.sum."""

    path: str
    version: str
    checksum: str

    def __str__(self) -> str:
        return f"{self.path} {self.version}"


GARDENER: Final = Module(
    "github.com/gardener/gardener",
    "v1.150.0",
    "h1:/saUAvvyfGasVxTZWREyaMDBXH6fFnS632K067zqC4c=",
)
DRUID: Final = Module(
    "github.com/gardener/etcd-druid/api",
    "v0.38.1",
    "h1:D5KDvXrnlkZCkEWDvJ2qUNjrhow71sD7GxGioh9i+D0=",
)
AWS: Final = Module(
    "github.com/gardener/gardener-extension-provider-aws",
    "v1.73.0",
    "h1:rGqiZJEyEuWIZWBw7YxS8H7cEwgoh2IogCEguo9rCvs=",
)


@dataclass(frozen=True)
class Source:
    """Where the definitions of a group are.

    Attributes:
        folder: Of the module.
        module: With files that start with `crd`, or with the name of the API group.
        project: The Go module of the project that they were generated from, if it is another one.
        protected: Whether the label that protects them from deletion is added, as the original
            does when it applies them.
    """

    folder: str
    module: Module = GARDENER
    project: str = ""
    protected: bool = False


_COMPONENT: Final = "pkg/component"
_AWS_CHARTS: Final = "charts/internal/shoot-crds/charts"
_OBSERVABILITY: Final = f"{_COMPONENT}/observability"
SOURCES: Final = {
    "fluent-operator": Source(
        f"{_OBSERVABILITY}/logging/fluentoperator/assets",
        project="github.com/fluent/fluent-operator/v3",
    ),
    "prometheus-operator": Source(
        f"{_OBSERVABILITY}/monitoring/prometheusoperator/templates",
        project="github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring",
    ),
    "perses-operator": Source(
        f"{_OBSERVABILITY}/monitoring/persesoperator/templates",
        project="github.com/perses/perses-operator",
    ),
    "victoria-operator": Source(
        f"{_OBSERVABILITY}/logging/victoria/operator/templates",
        project="github.com/VictoriaMetrics/operator/api",
    ),
    "extensions": Source(f"{_COMPONENT}/extensions/crds/assets"),
    "shoot-extensions": Source(f"{_COMPONENT}/extensions/crds/assets"),
    "etcd": Source("core/v1alpha1/crds", module=DRUID, protected=True),
    "vpa": Source(
        f"{_COMPONENT}/autoscaling/vpa/templates",
        project="k8s.io/autoscaler/vertical-pod-autoscaler",
    ),
    "istio": Source(
        f"{_COMPONENT}/networking/istio/charts/istio/istio-crds", project="istio.io/api"
    ),
    "opentelemetry": Source(
        f"{_OBSERVABILITY}/opentelemetry/operator/assets",
        project="github.com/open-telemetry/opentelemetry-operator/apis",
    ),
    "pvc-autoscaler": Source(
        f"{_COMPONENT}/autoscaling/pvcautoscaler/assets",
        project="github.com/gardener/pvc-autoscaler",
    ),
    "snapshots": Source(
        f"{_AWS_CHARTS}/volumesnapshots/templates",
        module=AWS,
        project="github.com/kubernetes-csi/external-snapshotter v8",
    ),
    "load-balancers": Source(
        f"{_AWS_CHARTS}/aws-load-balancer-controller/templates",
        module=AWS,
        project="sigs.k8s.io/aws-load-balancer-controller",
    ),
}
# For API servers without rules in CEL, which Pergola does not support.
_WITHOUT_RULES: Final = "_without_cel.yaml"

NOTICE: Final = """\
# Definitions of other projects

Each file is a JSON list of CustomResourceDefinitions, compressed with Brotli.
`tools/definitions.py` writes the files and this notice. All of it is licensed under the Apache
License 2.0, whose text is Pergola's own LICENSE. The definitions are those of their authors;
Pergola adds the label `gardener.cloud/deletion-protected` where the table says so, and changes
nothing else.

| file | definitions | module | generated from | label added |
|---|---|---|---|---|
{rows}
"""
REQUIRED: Final = {
    "prometheus-operator": """
prometheus-operator requires this notice:

> CoreOS Project
> Copyright 2015 CoreOS, Inc
>
> This product includes software developed at CoreOS, Inc. (http://www.coreos.com/).
"""
}
"""The notices that the licenses of projects require, by group."""


def main() -> None:
    """Write the files and the notices."""
    modules = {module: downloaded(module) for module in (GARDENER, DRUID, AWS)}
    for folder, groups in FOLDERS.items():
        folder.mkdir(exist_ok=True)
        rows = [write(folder, group, modules) for group in groups]
        notice = NOTICE.format(rows="\n".join(rows))
        required = "".join(REQUIRED.get(group.key, "") for group in groups)
        (folder / "NOTICE.md").write_text(notice + required)


def write(folder: Path, group: Group, modules: Mapping[Module, Path]) -> str:
    """Write the file of a group; return its row in the notice."""
    source = SOURCES[group.key]
    found = definitions(group, modules[source.module] / source.folder, source.protected)
    content = brotli.compress(orjson.dumps(found, option=orjson.OPT_SORT_KEYS))
    (folder / group.file_name).write_bytes(content)
    print(f"{group.file_name}: {len(found)} definitions, {len(content) / 1000:.0f} kB")
    return row(group, source, (modules[source.module] / "go.mod").read_text())


def downloaded(module: Module) -> Path:
    """Return the folder of a module in Go's module cache, after checking its checksum."""
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    command = ["go", "mod", "download", "-json", f"{module.path}@{module.version}"]
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, check=False)
    answer = orjson.loads(done.stdout or b"{}")
    if done.returncode:
        sys.exit(f"{module} cannot be downloaded: {answer.get('Error') or done.stderr.decode()}")
    if answer["Sum"] != module.checksum:
        sys.exit(f"{module} has the checksum {answer['Sum']}, not {module.checksum}")
    return Path(answer["Dir"])


def definitions(group: Group, folder: Path, protected: bool) -> list[JsonObject]:
    """Return the definitions of a group by name."""
    found = {name_of(each): each for each in read(folder)}
    missing = group.names - found.keys()
    if missing:
        sys.exit(f"{folder} lacks {', '.join(sorted(missing))}")
    chosen = [found[name] for name in sorted(group.names)]
    return [labelled(each) for each in chosen] if protected else chosen


def read(folder: Path) -> Iterator[JsonObject]:
    """Yield all definitions in a folder."""
    for file in sorted(folder.glob("*.yaml")):
        if file.name.endswith(_WITHOUT_RULES):
            continue
        for document in parse_documents(file.read_bytes()):
            if document.error is not None:
                sys.exit(f"{file} is not valid YAML: {document.error}")
            if isinstance(document.value, dict):
                yield document.value


def labelled(definition: JsonObject) -> JsonObject:
    """Return a definition with the label that protects it from deletion."""
    metadata = definition["metadata"]
    labels = {**metadata.get("labels", {}), DELETION_PROTECTED: "true"}
    return {**definition, "metadata": {**metadata, "labels": labels}}


def row(group: Group, source: Source, requirements: str) -> str:
    """Return the row of a group in the notice."""
    project = "the same"
    if source.project:
        required = re.findall(
            rf"^\s*{re.escape(source.project)} (v\S+)", requirements, re.MULTILINE
        )
        # Charts contain definitions of projects that the module does not require.
        project = " ".join([source.project, *required])
    added = "yes" if source.protected else "no"
    return f"| {group.file_name} | {len(group.names)} | {source.module} | {project} | {added} |"


if __name__ == "__main__":
    main()
