"""Writing NetworkPolicies: only differences, and only our own (spec 11 §4.9 step 6)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from pergola.api.kinds import NETWORK_POLICY
from pergola.api.objects import JsonObject, Key
from pergola.controllers.network_policy.seen import (
    SeenPolicy,
    digest,
    owner_of,
    written,
)
from pergola.kube.client import Client
from pergola.kube.errors import (
    AlreadyExists,
    ApiError,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
)
from pergola.kube.patches import merge_patch
from pergola.runtime.caching.caches import Caches
from pergola.runtime.controlling.controller import ReconcileError
from pergola.runtime.task_group import TaskGroup

_AT_ONCE: Final = 16


class ForeignPolicy(ReconcileError):
    """A NetworkPolicy of the desired name belongs to another owner."""


class RejectedPolicy(ReconcileError):
    """A NetworkPolicy that the API server rejects, and will reject until something changes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The policies of one Service to write, and those to delete."""

    put: list[JsonObject]
    delete: dict[Key, SeenPolicy]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.put and not self.delete


def plan(
    desired: Mapping[Key, JsonObject],
    present: Mapping[Key, SeenPolicy],
    kept: Iterable[Key] = (),
) -> Plan:
    """Return the differences between the desired and the current policies.

    Args:
        present: the policies with labels that name the Service.
        kept: policies to leave unchanged even if they are not desired.
    """
    staying = {*desired, *kept}
    return Plan(
        put=[
            policy
            for key, policy in desired.items()
            if (known := present.get(key)) is None or known.digest != digest(policy)
        ],
        delete={key: policy for key, policy in present.items() if key not in staying},
    )


class Writer:
    """Writer of policies, up to sixteen at once for each Service."""

    def __init__(self, client: Client, policies: Caches[SeenPolicy]) -> None:
        self._client = client
        self._policies = policies
        self._writing: dict[Key, bytes] = {}
        self._deleted: dict[Key, str] = {}
        self._blocked: dict[Key, set[Key]] = {}

    def is_as_written(self, key: Key, policy: SeenPolicy) -> bool:
        """Return whether a policy equals the one being written right now."""
        return self._writing.get(key) == policy.digest

    def gone(self, key: Key) -> set[Key]:
        """Forget a deleted policy; return the Services that need a policy with its name."""
        self._deleted.pop(key, None)
        return self._blocked.pop(key, set())

    def outstanding(self, plan: Plan) -> Plan:
        """Return the plan without the deletions that were already requested."""
        deleted = self._deleted
        delete = {k: seen for k, seen in plan.delete.items() if deleted.get(k) != seen.uid}
        return Plan(plan.put, delete)

    async def apply(self, service: Key, plan: Plan) -> list[Exception]:
        """Execute the whole plan, even if parts of it fail; return the errors.

        Each error is a `KubeError`, a `ForeignPolicy` or a `RejectedPolicy`.
        """
        gate = asyncio.Semaphore(_AT_ONCE)
        writes = [partial(self._put, service, policy) for policy in plan.put]
        deletions = [partial(self._delete, key, seen) for key, seen in plan.delete.items()]
        async with TaskGroup() as group:
            tasks = [group.create_task(_attempt(gate, one)) for one in (*writes, *deletions)]
        return [error for task in tasks if (error := task.result()) is not None]

    async def _put(self, service: Key, policy: JsonObject) -> None:
        key = Key.of(policy)
        known = self._policies.get(key)
        if known is not None and known.owner != service:
            raise self._foreign(service, key, known.owner)
        self._writing[key] = digest(policy)
        try:
            answer = await self._written(service, policy, is_there=known is not None)
            if answer is not None:
                self._policies.observe(answer)
        except (Invalid, Forbidden) as error:
            raise RejectedPolicy(f"the API server refused NetworkPolicy {key}: {error}") from error
        finally:
            self._writing.pop(key, None)  # two Services may want the same name at once

    async def _written(
        self, service: Key, policy: JsonObject, *, is_there: bool
    ) -> JsonObject | None:
        """Write a policy, and return it; None if its namespace is being deleted."""
        if not is_there:
            try:
                return await self._client.create(policy)
            except AlreadyExists:
                pass  # it lost one of our labels, is foreign, or the watch lags
            except ApiError as error:
                if _is_going(error):
                    return None
                raise
        return await self._patch(service, policy)

    async def _patch(self, service: Key, policy: JsonObject) -> JsonObject:
        """Patch those of our fields that differ; keep other labels and annotations."""
        key = Key.of(policy)
        live = await self._client.get(NETWORK_POLICY, key)
        owner = owner_of(live)
        if owner != service:
            raise self._foreign(service, key, owner)
        patch = merge_patch(written(live), written(policy))
        if not patch:
            return live
        version = {"resourceVersion": live["metadata"]["resourceVersion"]}
        patch["metadata"] = {**patch.get("metadata", {}), **version}
        return await self._client.patch(NETWORK_POLICY, key, patch)

    async def _delete(self, key: Key, seen: SeenPolicy) -> None:
        try:
            version = seen.version
            await self._client.delete(NETWORK_POLICY, key, uid=seen.uid, resource_version=version)
        except NotFound:
            pass
        if self._policies.get(key) is not None:
            self._deleted[key] = seen.uid

    def _foreign(self, service: Key, key: Key, owner: Key | None) -> ForeignPolicy:
        self._blocked.setdefault(key, set()).add(service)
        whose = f"it belongs to the Service {owner}" if owner else "it does not belong to a Service"
        return ForeignPolicy(
            f"NetworkPolicy {key} is needed for this Service, but {whose}; rename one of the "
            "Services, or delete the policy"
        )


async def _attempt(
    gate: asyncio.Semaphore, write: Callable[[], Awaitable[None]]
) -> Exception | None:
    try:
        async with gate:
            await write()
    except (KubeError, ReconcileError) as error:
        return error
    return None


def _is_going(error: ApiError) -> bool:
    """Return whether a namespace is terminating or gone, which an event will report anyway."""
    return isinstance(error, NotFound) or error.is_namespace_terminating
