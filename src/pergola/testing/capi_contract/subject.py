"""The subject of a run: a kind, two manifests, and time limits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pergola.api.cluster_api import MANAGED_BY
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject
from pergola.externally_managed.contract import ContractError
from pergola.externally_managed.kinds import parse_kind
from pergola.externally_managed.predicate import is_externally_managed
from pergola.kube.yaml import parse_documents

_SUFFIX: Final = "Cluster"


class SubjectError(Exception):
    """The suite cannot be run with these options; the text says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An InfraCluster, and objects that it requires, such as credentials."""

    infra_cluster: JsonObject
    before: tuple[JsonObject, ...] = ()

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind, in the version of the manifest."""
        return GroupVersionKind.of(self.infra_cluster)


@dataclass(frozen=True, slots=True)
class Subject:
    """The provider under test.

    Attributes:
        machines: a template of machine objects; None to skip that case.
        kubeconfig: None for the one that kubectl would use.
        namespace: an existing namespace; if empty, each case gets a new one.
        settle_seconds: the time within which the provider reacts to anything, if at all.
        resync_seconds: the provider's resync period.
        patience_seconds: how long to wait for expected writes.
        ready_by_hand: whether to expect that annotation to work.
    """

    kind: GroupKind
    managed: Manifest
    external: Manifest
    machines: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = ""
    settle_seconds: float = 5.0
    resync_seconds: float = 30.0
    patience_seconds: float = 60.0
    ready_by_hand: bool = False


def read_manifests(managed: Path, external: Path, kind: str = "") -> tuple[Manifest, Manifest]:
    """Return both manifests, checked.

    Args:
        kind: the kind with its group; if empty, the only kind that ends in `Cluster`.

    Raises:
        SubjectError: a manifest cannot be read, or is not valid.
    """
    parsed = _parsed(kind) if kind else None
    ours, theirs = _read(managed, parsed), _read(external, parsed)
    if ours.gvk.group_kind != theirs.gvk.group_kind:
        raise SubjectError(
            f"{managed} has a {ours.gvk.group_kind}, but {external} has a {theirs.gvk.group_kind}: "
            "both must be of one kind"
        )
    if is_externally_managed(ours.infra_cluster):
        raise SubjectError(
            f"{managed}: {ours.gvk.kind} has the annotation {MANAGED_BY}; remove it there, or "
            "exchange the two manifests"
        )
    if not is_externally_managed(theirs.infra_cluster):
        raise SubjectError(f"{external}: {theirs.gvk.kind} needs the annotation {MANAGED_BY}")
    return ours, theirs


def _parsed(kind: str) -> GroupKind:
    try:
        return parse_kind(kind)
    except ContractError as error:
        raise SubjectError(f"--capi-kind: {error}") from None


def _read(path: Path, desired: GroupKind | None) -> Manifest:
    documents = objects(read_text(path), str(path))
    found = [obj for obj in documents if _is_desired(obj, desired)]
    if len(found) != 1:
        what = str(desired) if desired else f"object whose kind ends in {_SUFFIX}"
        raise SubjectError(f"{path}: exactly one {what} is expected, but there are {len(found)}")
    return Manifest(found[0], tuple(obj for obj in documents if obj is not found[0]))


def _is_desired(obj: JsonObject, desired: GroupKind | None) -> bool:
    found = GroupVersionKind.of(obj).group_kind
    return found == desired if desired else found.kind.endswith(_SUFFIX)


def read_text(path: Path) -> str:
    """Return a file's text.

    Raises:
        SubjectError: the file cannot be read.
    """
    try:
        return path.read_text()
    except OSError as error:
        raise SubjectError(f"{path} cannot be read: {error.strerror}") from None


def objects(text: str, name: str) -> list[JsonObject]:
    """Return the Kubernetes objects in a text.

    Raises:
        SubjectError: a document is broken, or is not an object.
    """
    found = []
    for document in parse_documents(text):
        if document.error is not None:
            raise SubjectError(f"{name}: not valid YAML: {document.error}")
        if document.value is None:
            continue
        if not isinstance(document.value, dict) or "kind" not in document.value:
            raise SubjectError(f"{name}, document {document.index}: not a Kubernetes object")
        found.append(document.value)
    return found
