"""The inputs of a run: the plan of a Worker, and the user data of its machines."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from pergola.api.field_errors import Cause, sentence
from pergola.api.kinds import SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    generation_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.api.schema.read import Malformed
from pergola.extension_api.errors import ExtensionError, RequeueAfter, configuration_problem
from pergola.extensions.actuator import Context
from pergola.extensions.provider_config import read_strict
from pergola.extensions.workers.contract import WorkerContract
from pergola.extensions.workers.plan import WorkerPlan
from pergola.extensions.workers.pool import C, Pool
from pergola.kube.client import Client
from pergola.kube.errors import WrongAnswer
from pergola.runtime.task_group import gathered

_FEW: Final = 5


async def plan_of(provider: WorkerContract[C], context: Context, obj: JsonObject) -> WorkerPlan[C]:
    """Return the checked plan of a Worker.

    Raises:
        ExtensionError: something in the Worker or the Shoot is wrong.
        KubeError: the API server refused, or did not answer.
    """
    cluster, shoot = context.shoot_of(obj)
    pools = pools_of(provider, obj)
    if any(provider.hashes_written(pool) for pool in pools):
        written = await read_written(context.client, obj)
        pools = [replace(pool, written=written.get(pool.name, b"")) for pool in pools]
    spec = map_at(obj, "spec")
    plan = WorkerPlan(
        pools=pools,
        region=str(spec.get("region") or ""),
        infrastructure=map_at(spec, "infrastructureProviderStatus"),
        status=map_at(obj, "status", "providerStatus"),
        cluster=cluster,
        shoot=shoot,
        namespace=context.namespace,
        secret=map_at(spec, "secretRef"),
    )
    if findings := [*_repeated(pools), *provider.check(plan)]:
        raise configuration_problem(f"invalid worker: {sentence(findings)}")
    return plan


async def user_data_of(context: Context, obj: JsonObject) -> dict[str, bytes]:
    """Return the user data of each pool, which its machines run at their start.

    Raises:
        ExtensionError: a Secret is missing, or has no content for a pool.
        KubeError: the API server refused, or did not answer.
    """
    desired = {
        str(pool.get("name") or ""): map_at(pool, "userDataSecretRef")
        for pool in maps_at(obj, "spec", "pools")
    }
    secrets = await _secrets(context, {str(each.get("name") or "") for each in desired.values()})
    return {
        pool: _user_data(pool, reference, secrets, context.namespace)
        for pool, reference in desired.items()
    }


def pools_of(provider: WorkerContract[C], worker: JsonObject) -> list[Pool[C]]:
    """Return the pools of a Worker, without the bytes of their configs.

    Raises:
        ExtensionError: a `providerConfig` is malformed.
    """
    pools = []
    for index, raw in enumerate(maps_at(worker, "spec", "pools")):
        config = raw.get("providerConfig")
        try:
            decoded = read_strict(
                provider.config,
                config,
                provider.config_gvk,
                path=f"spec.pools[{index}].providerConfig",
                needs_type=bool(config),
            )
        except Malformed as error:
            raise configuration_problem(f"invalid worker config: {error}") from error
        pools.append(Pool(raw=raw, config=decoded))
    return pools


async def read_written(client: Client, worker: JsonObject) -> dict[str, bytes]:
    """Return the bytes of each pool's `providerConfig` as the API server writes them, by pool.

    Raises:
        RequeueAfter: the Worker was changed: the bytes would belong to another spec.
        KubeError: the API server refused, or did not answer.
    """
    key = Key.of(worker)
    path = (await client.resource(GroupVersionKind.of(worker))).item(key)
    generation, configs = written_configs(await client.get_raw(path))
    if generation != generation_of(worker):
        raise RequeueAfter(0, ExtensionError(f"Worker {key} was changed while it was read"))
    return configs


def written_configs(worker: bytes) -> tuple[int, dict[str, bytes]]:
    """Return the generation in an answer of the API server, and the bytes of configs by pool.

    A null is none.

    Raises:
        WrongAnswer: the answer is not a Worker.
    """
    try:
        decoded = msgspec.json.decode(worker, type=_WrittenWorker)
    except msgspec.MsgspecError as error:
        raise WrongAnswer(f"the answer of the API server is not a Worker: {error}") from error
    written = {pool.name: bytes(pool.provider_config) for pool in decoded.spec.pools}
    configs = {name: b"" if config == b"null" else config for name, config in written.items()}
    return decoded.metadata.generation, configs


class _WrittenPool(msgspec.Struct, rename="camel"):
    name: str = ""
    provider_config: msgspec.Raw = msgspec.Raw()


class _WrittenSpec(msgspec.Struct):
    pools: list[_WrittenPool] = []


class _WrittenMetadata(msgspec.Struct):
    generation: int = 0


class _WrittenWorker(msgspec.Struct):
    metadata: _WrittenMetadata
    spec: _WrittenSpec


def _repeated(pools: list[Pool[C]]) -> Iterator[Cause]:
    """Yield pools whose machines would have the same names."""
    seen: set[str] = set()
    for index, pool in enumerate(pools):
        if not pool.name:
            yield Cause("FieldValueRequired", f"spec.pools[{index}].name", "must not be empty")
        elif pool.name in seen:
            yield Cause("FieldValueDuplicate", f"spec.pools[{index}].name", f'"{pool.name}"')
        seen.add(pool.name)


async def _secrets(context: Context, names: set[str]) -> dict[str, JsonObject]:
    """Return Secrets by name: many of them with one request."""
    if len(names) > _FEW:
        found = await context.client.list(SECRET, context.namespace)
        return {name_of(secret): secret for secret in found if name_of(secret) in names}
    keys = [Key(context.namespace, name) for name in sorted(names) if name]
    several = await gathered(context.client.find(SECRET, key) for key in keys)
    return {name_of(secret): secret for secret in several if secret is not None}


def _user_data(
    pool: str, reference: JsonObject, secrets: Mapping[str, JsonObject], namespace: str
) -> bytes:
    name, key = str(reference.get("name") or ""), str(reference.get("key") or "")
    secret = secrets.get(name)
    if secret is None:
        raise ExtensionError(
            f'Secret {Key(namespace, name)} with the user data of worker pool "{pool}" '
            "does not exist"
        )
    try:
        data = base64.b64decode(str(map_at(secret, "data").get(key) or ""), validate=True)
    except ValueError:
        data = b""
    if not data:
        raise ExtensionError(
            f'Secret {Key(namespace, name)} has no user data for worker pool "{pool}": '
            f'its key "{key}" is missing or empty'
        )
    return data
