"""Discovery of the kinds that an API server serves, and of their paths.

Requests are made per group and version, on demand: a manager that uses eight group-versions sends
eight small requests, whatever else the server offers. A missing kind is looked up again at most
every `refresh` seconds, so that CRDs created later become usable without a restart (spec 10
§3.1.5).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

from pergola.api.object_names import name_problem
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.kube.answers import decoded, served_kinds, served_versions
from pergola.kube.errors import InvalidKey, NotFound, UnknownKind, WrongAnswer

BUILT_IN_GROUPS: Final = frozenset(
    {
        *("", "apps", "autoscaling", "batch", "extensions", "policy"),
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"),
        *("authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io"),
        *("coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "networking.k8s.io"),
        *("flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "node.k8s.io"),
        *("rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io"),
        "storagemigration.k8s.io",
    }
)
"""The groups that API servers serve without definitions; autoscaling.k8s.io, for example, has
definitions."""

_LIST_DELAYS: Final = (0.1, 0.2, 0.4, 0.8)
"""The seconds to wait before each new look at a list of groups that may be behind."""


class Resource(NamedTuple):
    """A kind as one API server serves it."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool

    @property
    def root(self) -> str:
        """`/api/v1` or `/apis/<group>/<version>`."""
        return group_version_path(self.gvk.group, self.gvk.version)

    def collection(self, namespace: str | None = None) -> str:
        """Return the path of all objects, or of the objects in one namespace.

        Only None means all namespaces. Cluster-scoped kinds ignore the namespace.

        Raises:
            InvalidKey: no such namespace can exist; an empty name is not one.
        """
        if not self.namespaced or namespace is None:
            return f"{self.root}/{self.plural}"
        check_namespace(self.gvk, namespace)
        return f"{self.root}/namespaces/{quote(namespace, safe='')}/{self.plural}"

    def item(self, key: Key, subresource: str = "") -> str:
        """Return the path of one object or of its subresource, never that of a collection.

        Raises:
            InvalidKey: no object can have this name and namespace.
        """
        if problem := name_problem(key.name):
            raise InvalidKey(self.gvk, f"name {key.name!r} {problem}")
        path = f"{self.collection(key.namespace)}/{quote(key.name, safe='')}"
        return f"{path}/{subresource}" if subresource else path


def group_version_path(group: str, version: str) -> str:
    """Return `/api/v1` for the core group, else `/apis/<group>/<version>`."""
    if not group:
        return f"/api/{quote(version, safe='')}"
    return f"/apis/{quote(group, safe='')}/{quote(version, safe='')}"


class Discovery:
    """The kinds of one API server, learned on demand.

    Args:
        fetch: reads a path of the server; raises the room's errors.
        now: a monotonic clock in seconds.
        refresh: the minimum time in seconds between two lookups of a missing kind.
    """

    def __init__(
        self,
        fetch: Callable[[str], Awaitable[bytes]],
        *,
        now: Callable[[], float],
        refresh: float = 0.25,
    ) -> None:
        self._fetch = fetch
        self._now = now
        self._refresh = refresh
        self._kinds: dict[tuple[str, str], Mapping[str, Resource]] = {}
        self._asked: dict[tuple[str, str], float] = {}
        self._was_served: set[tuple[str, str]] = set()
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    def known(self, gvk: GroupVersionKind) -> Resource | None:
        """Return the kind if an earlier request found it; send none."""
        return self._kinds.get(gvk[:2], {}).get(gvk.kind)

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        """Return how the server serves `gvk`.

        Raises:
            UnknownKind: the server did not serve the kind at the last lookup.
        """
        found = self.known(gvk)
        if found is not None:
            return found
        if not gvk.version or not gvk.kind:
            raise UnknownKind(gvk)
        async with self._locks.setdefault(gvk[:2], asyncio.Lock()):
            if self.known(gvk) is None and self._may_ask(gvk):
                await self._learn(gvk.group, gvk.version)
        found = self.known(gvk)
        if found is None:
            raise UnknownKind(gvk)
        return found

    def forget(self, gvk: GroupVersionKind) -> None:
        """Forget the kind's group and version, because the server contradicted it."""
        self._kinds.pop(gvk[:2], None)
        self._asked.pop(gvk[:2], None)

    def _may_ask(self, gvk: GroupVersionKind) -> bool:
        asked = self._asked.get(gvk[:2])
        return asked is None or self._now() - asked >= self._refresh

    async def _learn(self, group: str, version: str) -> None:
        path = group_version_path(group, version)
        try:
            answer = decoded(await self._fetch(path), path)
            kinds = served_kinds(answer, _group_version(group, version), path)
        except NotFound:
            await self._check_unserved(group, version, path)
            kinds = []
        if kinds:
            self._was_served.add((group, version))
        self._asked[group, version] = self._now()
        self._kinds[group, version] = {
            resource.gvk.kind: resource
            for resource, _ in resources_in({"resources": kinds}, group, version)
        }

    async def _check_unserved(self, group: str, version: str, path: str) -> None:
        """Check a 404, which a proxy may answer as well, against the list of groups.

        A group of definitions is in that list a moment before its kinds are served, and a moment
        after its last definition is deleted.

        Raises:
            WrongAnswer: the server serves the group and version, or does not answer properly.
        """
        root = "/apis" if group else "/api"
        name = _group_version(group, version)
        defined = group not in BUILT_IN_GROUPS
        is_new = defined and (group, version) not in self._was_served
        for wait in (*(_LIST_DELAYS if defined else ()), None):
            try:
                answer = await self._fetch(root)
            except NotFound as error:
                raise WrongAnswer(f"the answers for {path} and {root} are 404") from error
            if is_new or name not in served_versions(decoded(answer, root), root):
                return
            if wait is not None:
                await asyncio.sleep(wait)
        raise WrongAnswer(f"the answer for {path} is 404, but {name} is served")


def resources_in(
    answer: JsonObject, group: str, version: str
) -> Iterator[tuple[Resource, JsonObject]]:
    """Yield the kinds in an APIResourceList, each with its entry, without subresources."""
    for served in maps_at(answer, "resources"):
        name, kind = served.get("name"), served.get("kind")
        if isinstance(name, str) and isinstance(kind, str) and name and "/" not in name:
            gvk = GroupVersionKind(group, version, kind)
            yield Resource(gvk, name, bool(served.get("namespaced"))), served


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def check_namespace(gvk: GroupVersionKind, namespace: str) -> None:
    """Check that a namespace can exist.

    Raises:
        InvalidKey: no such namespace can exist; an empty name is not one.
    """
    if problem := name_problem(namespace):
        raise InvalidKey(gvk, f"namespace {namespace!r} {problem}")
