"""The validators of the kinds in the garden, other than Shoots."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Final

from pergola.admission.review import Handler, Request, Verdict, allowed, errored, invalid
from pergola.api import field_errors
from pergola.api.field_errors import Cause, unsupported
from pergola.api.kinds import GARDENER_CORE, SECRET
from pergola.api.object_names import name_problem
from pergola.api.objects import GroupVersionKind, JsonObject, Key, deletion_timestamp_of, map_at
from pergola.extensions.garden import Garden
from pergola.providers.aws.admission.parents import Parents
from pergola.providers.aws.validation.backup_bucket import (
    check_changed,
    check_created,
    check_credentials_ref,
)
from pergola.providers.aws.validation.credentials import (
    check_secret,
    check_stored_identity,
    check_workload_identity,
)
from pergola.providers.aws.validation.namespaced_cloud_profile import (
    PARENT,
    check_namespaced_cloud_profile,
    check_parent_kind,
)
from pergola.providers.aws.workload_identity import WORKLOAD_IDENTITY

AWS: Final = "aws"
INTERNAL_SECRET: Final = GroupVersionKind(GARDENER_CORE, "v1beta1", "InternalSecret")

Check = Callable[[JsonObject, JsonObject | None], Iterable[Cause] | Awaitable[Iterable[Cause]]]
"""Finds mistakes in an object; the second one is the stored object, None on creation."""


def checking(check: Check) -> Handler:
    """Return the handler that refuses objects with findings.

    Objects that are being deleted are not checked: their finalizers must come off.
    """

    def handle(request: Request) -> Verdict | Awaitable[Verdict]:
        obj = request.object
        if obj is None:
            return errored(HTTPStatus.BAD_REQUEST, "the review has no object to validate")
        if deletion_timestamp_of(obj) is not None:
            return allowed(because="the object is being deleted")
        found = check(obj, request.old_object)
        return _awaited(request, found) if isinstance(found, Awaitable) else _of(request, found)

    return handle


def check_backup_bucket_object(obj: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Check a BackupBucket; an update may remove its config."""
    spec, path = map_at(obj, "spec"), "spec.providerConfig"
    value = spec.get("providerConfig")
    if value is not None and old is None:
        yield from check_created(value, path=path)
    elif value is not None and old is not None:
        yield from check_changed(value, map_at(old, "spec").get("providerConfig"), path=path)
    yield from check_credentials_ref(spec.get("credentialsRef"), path="spec.credentialsRef")


def check_seed(seed: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Check the backup of a Seed, unless it is kept on another cloud."""
    if _is_elsewhere(seed):
        return
    path, spec = "spec.backup", map_at(seed, "spec")
    backup = map_at(spec, "backup")
    if spec.get("backup") is not None:
        reference = backup.get("credentialsRef")
        yield from check_credentials_ref(reference, path=f"{path}.credentialsRef")
    value = backup.get("providerConfig")
    if old is not None:
        before = None if _is_elsewhere(old) else map_at(old, "spec", "backup").get("providerConfig")
        yield from check_changed(value, before, path=f"{path}.providerConfig")
    elif value is not None:
        yield from check_created(value, path=f"{path}.providerConfig")


def _is_elsewhere(seed: JsonObject) -> bool:
    spec = map_at(seed, "spec")
    return spec.get("backup") is not None and map_at(spec, "backup").get("provider") != AWS


def check_secret_object(secret: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Check a Secret with credentials, unless its data is unchanged."""
    if old is None or map_at(secret, "data") != map_at(old, "data"):
        yield from check_secret(secret)


def check_identity(identity: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Check a WorkloadIdentity."""
    yield from check_workload_identity(identity)
    if old is not None:
        yield from check_stored_identity(old)


class OfGarden:
    """Checks that read other objects of the garden.

    Credentials are not cached: a Secret is read when a binding names it.
    """

    def __init__(self, garden: Garden, parents: Parents) -> None:
        self._client = garden.client
        self._parents = parents

    async def check_namespaced_cloud_profile(
        self, profile: JsonObject, _: JsonObject | None
    ) -> Iterable[Cause]:
        """Check a NamespacedCloudProfile together with its parent."""
        if causes := list(check_parent_kind(profile)):
            return causes
        name = self._parents.name_of(profile)
        parent = await self._parents.find(name)
        if parent is None:
            return [_not_found(f"{PARENT}.name", f"CloudProfile {name}")]
        return check_namespaced_cloud_profile(profile, parent)

    async def check_secret_binding(
        self, binding: JsonObject, old: JsonObject | None
    ) -> Iterable[Cause]:
        """Check the Secret of a SecretBinding, unless its provider is unchanged."""
        if old is not None and _provider_of(binding) == _provider_of(old):
            return ()
        return await self._check_credentials(SECRET, map_at(binding, "secretRef"), "secretRef")

    async def check_credentials_binding(
        self, binding: JsonObject, old: JsonObject | None
    ) -> Iterable[Cause]:
        """Check the credentials of a new CredentialsBinding; they cannot be changed."""
        if old is not None:
            return ()
        path = "credentialsRef"
        reference = map_at(binding, path)
        return await self._check_credentials(GroupVersionKind.of(reference), reference, path)

    async def _check_credentials(
        self, gvk: GroupVersionKind, reference: JsonObject, path: str
    ) -> Iterable[Cause]:
        kinds = (SECRET, INTERNAL_SECRET, WORKLOAD_IDENTITY)
        if gvk not in kinds:
            return [unsupported(path, str(gvk), map(str, kinds))]
        for field in ("namespace", "name"):
            if problem := name_problem(reference.get(field)):
                return [field_errors.invalid(f"{path}.{field}", reference.get(field), problem)]
        key = Key(str(reference["namespace"]), str(reference["name"]))
        found = await self._client.find(gvk, key)
        title = f"{gvk.kind} {key}"
        if found is None:
            return [_not_found(path, title)]
        check = check_workload_identity if gvk == WORKLOAD_IDENTITY else check_secret
        return [each._replace(message=f"{each.message} (in {title})") for each in check(found)]


def _provider_of(binding: JsonObject) -> object:
    return map_at(binding, "provider").get("type")


def _not_found(path: str, what: str) -> Cause:
    return Cause("FieldValueNotFound", f"Not found: {what} does not exist: create it first", path)


async def _awaited(request: Request, waiting: Awaitable[Iterable[Cause]]) -> Verdict:
    return _of(request, await waiting)


def _of(request: Request, found: Iterable[Cause]) -> Verdict:
    causes = tuple(dict.fromkeys(found))
    if causes:
        return invalid(str(request.kind.group_kind), request.name, causes)
    return allowed(because="no finding")
