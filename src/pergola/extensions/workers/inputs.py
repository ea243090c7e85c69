"""What a run reads: the plan of a Worker, and what its machines run at their start."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from pergola.api.field_errors import Cause, sentence
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of
from pergola.api.schema.read import Malformed
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import ExtensionError, configuration_problem
from pergola.extensions.actuator import Context
from pergola.extensions.provider_config import read_strict
from pergola.extensions.workers.contract import WorkerContract
from pergola.extensions.workers.plan import WorkerPlan
from pergola.extensions.workers.pool import C, Pool
from pergola.kube.errors import NotFound
from pergola.runtime.task_group import gathered

_FEW: Final = 5


async def plan_of(provider: WorkerContract[C], context: Context, obj: JsonObject) -> WorkerPlan[C]:
    """Return the checked plan of a Worker.

    Raises:
        ExtensionError: something in the Worker or the Shoot is wrong.
        KubeError: the API server refused, or did not answer.
    """
    cluster, shoot = _shoot_of(context, obj)
    pools = _pools_of(provider, obj)
    if any(provider.hashes_written(pool) for pool in pools):
        path = (await context.client.resource(provider.gvk())).item(Key.of(obj))
        written = written_configs(await context.client.get_raw(path))
        pools = [_with_written(pool, written) for pool in pools]
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
    """Return what the machines of each pool run at their start, by pool.

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


def written_configs(worker: bytes) -> dict[str, bytes]:
    """Return the bytes of each pool's `providerConfig` in an answer of the API server, by pool.

    A null is none.
    """
    decoded = msgspec.json.decode(worker, type=_WrittenWorker)
    written = {pool.name: bytes(pool.provider_config) for pool in decoded.spec.pools}
    return {name: b"" if config == b"null" else config for name, config in written.items()}


class _WrittenPool(msgspec.Struct, rename="camel"):
    name: str = ""
    provider_config: msgspec.Raw = msgspec.Raw()


class _WrittenSpec(msgspec.Struct):
    pools: list[_WrittenPool] = []


class _WrittenWorker(msgspec.Struct):
    spec: _WrittenSpec


def _shoot_of(context: Context, obj: JsonObject) -> tuple[Cluster, Shoot]:
    cluster = context.cluster
    if cluster is None or cluster.shoot is None:
        raise ExtensionError(
            f"Worker {Key.of(obj)} belongs to no Shoot: Cluster {context.namespace} has none"
        )
    return cluster, cluster.shoot


def _pools_of(provider: WorkerContract[C], obj: JsonObject) -> list[Pool[C]]:
    pools = []
    for index, raw in enumerate(maps_at(obj, "spec", "pools")):
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


def _with_written(pool: Pool[C], written: Mapping[str, bytes]) -> Pool[C]:
    return Pool(raw=pool.raw, config=pool.config, written=written.get(pool.name, b""))


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
    several = await gathered(_secret(context, name) for name in sorted(names) if name)
    return {name_of(secret): secret for secret in several if secret is not None}


async def _secret(context: Context, name: str) -> JsonObject | None:
    try:
        return await context.client.get(SECRET, Key(context.namespace, name))
    except NotFound:
        return None


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
    except binascii.Error:
        data = b""
    if not data:
        raise ExtensionError(
            f'Secret {Key(namespace, name)} has no user data for worker pool "{pool}": '
            f'its key "{key}" is missing or empty'
        )
    return data
