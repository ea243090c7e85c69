"""MachineClasses and MachineDeployments of a Worker on AWS, with the hashes in their names."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec
import orjson
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.oracles import Answer
from conformance.strategies.aws_machines import BASE, VARIANTS, some_worker
from conformance.strategies.fields import changed
from conformance.subjects.aws_verdicts import OfAws
from pergola.api.field_errors import sentence
from pergola.api.objects import JsonObject, JsonValue, Key, map_at, maps_at, name_of
from pergola.api.schema.read import Malformed
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.provider_config import read_strict
from pergola.extensions.workers import Pool, WorkerPlan
from pergola.extensions.workers.desired import DesiredMachines, desired_machines
from pergola.providers.aws.worker_config import WORKER_CONFIG, WorkerConfig
from pergola.providers.aws.workers.actuator import AwsWorker
from pergola.providers.aws.workers.hash_inputs import hashes_written
from pergola.providers.aws.workers.machines import machines, problems

_CONFIG: Final = "providerConfig"
_OLD_STATUS: Final = " of an old status"
_OF_IMAGES: Final = re.compile(r"worker|providerStatus\.machineImages|.*\.providerSpec\.ami")
"""The paths at which another image shows."""


class AwsMachines(OfAws):
    """Every MachineClass and MachineDeployment that the extension for AWS makes of a Worker."""

    name = "aws-machines"
    title = "AWS: machines of a Worker, and hashes of pools"
    code = ("pergola.providers.aws.workers",)

    def table(self) -> Iterator[JsonObject]:
        """Yield Workers with each option."""
        for variant in VARIANTS:
            yield changed(BASE, variant)

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Workers with random options."""
        return some_worker()

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the names of the classes, or the outcome."""
        if answer.outcome != "output":
            return answer.outcome
        return [name_of(each) for each in answer.output["machineClasses"]]

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Render the same Worker, and compare every field of every class."""
        is_noted = _has_old_status(question)
        for each in _compared(question, answer):
            note = _OLD_STATUS if is_noted and _OF_IMAGES.match(each.path) else ""
            yield msgspec.structs.replace(each, path=each.path + note)


def _compared(question: JsonObject, answer: Answer) -> Iterator[Difference]:
    theirs = str(answer.value).split("\n", 1)[0]
    try:
        ours = rendered(question)
    except (Malformed, ExtensionError) as error:
        if answer.outcome == "output":
            yield Difference("worker", "machines", str(error))
        return
    if answer.outcome != "output":
        yield Difference("worker", theirs, "machines")
        return
    yield from differences(answer.output, ours)


def _has_old_status(question: JsonObject) -> bool:
    """Return whether images of earlier runs have no capabilities, as the profile has meanwhile."""
    profile = map_at(question["cluster"], "spec", "cloudProfile", "spec")
    used = maps_at(question["worker"], "status", "providerStatus", "machineImages")
    defined = bool(profile.get("machineCapabilities"))
    return defined and any(not image.get("capabilities") for image in used)


def rendered(question: JsonObject) -> JsonObject:
    """Return the objects of a Worker, and its status.

    Args:
        question: `worker`, `cluster`, `secrets`, and `rawProviderConfigs` with the bytes of configs
            that are not sorted and compact, by pool.

    Raises:
        Malformed: a WorkerConfig is wrong.
        ExtensionError: the Worker is refused, or cannot be rendered.
    """
    plan = plan_of(question)
    if findings := list(problems(plan)):
        raise ExtensionError(sentence(findings))
    made = machines(plan)
    found = desired_machines(plan, made, AwsWorker.provider, _user_data(question))
    return {
        "machineClasses": _listed(each.machine_class for each in found),
        "secrets": _listed(each.secret for each in found),
        "wanted": [_deployment(each) for each in found],
        "providerStatus": made.status,
    }


def plan_of(question: JsonObject) -> WorkerPlan[WorkerConfig]:
    """Return the input of rendering.

    Raises:
        Malformed: a WorkerConfig is wrong.
    """
    worker, cluster = question["worker"], Cluster.from_object(question["cluster"])
    spec = map_at(worker, "spec")
    bytes_of = question.get("rawProviderConfigs") or {}
    return WorkerPlan(
        pools=[_pool(raw, bytes_of.get(str(raw.get("name")))) for raw in maps_at(spec, "pools")],
        region=str(spec.get("region") or ""),
        infrastructure=map_at(spec, "infrastructureProviderStatus"),
        status=map_at(worker, "status", "providerStatus"),
        cluster=cluster,
        shoot=cluster.shoot or Shoot({}),
        namespace=Key.of(worker).namespace,
        secret=map_at(spec, "secretRef"),
    )


def _pool(raw: JsonObject, written: str | None) -> Pool[WorkerConfig]:
    value = raw.get(_CONFIG)
    text = b""
    if written is not None:
        text, value = written.encode(), orjson.loads(written)
    elif value is not None:
        text = _as_written(value)
    config = read_strict(
        WorkerConfig,
        value,
        WORKER_CONFIG,
        path=f"spec.pools[{raw.get('name')}].{_CONFIG}",
        needs_type=bool(value),
    )
    pool = Pool(raw=raw, config=config)
    return replace(pool, written=text) if hashes_written(pool) else pool


def _as_written(value: JsonValue) -> bytes:
    """Return a config as an API server writes it."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def _user_data(question: JsonObject) -> Mapping[str, bytes]:
    data = {name_of(each): map_at(each, "data") for each in question["secrets"]}
    found = {}
    for pool in maps_at(question["worker"], "spec", "pools"):
        reference = map_at(pool, "userDataSecretRef")
        encoded = data.get(reference["name"], {}).get(reference["key"])
        if not encoded:
            raise ExtensionError(f"pool {pool['name']}: no user data")
        found[pool["name"]] = base64.b64decode(encoded)
    return found


def _listed(objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Return objects as a list of one kind has them."""
    return [
        {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}
        for obj in sorted(objects, key=name_of)
    ]


def _deployment(machines: DesiredMachines) -> JsonObject:
    """Return the fields that the original keeps of a MachineDeployment."""
    template = machines.template
    node = map_at(template, "nodeTemplate")
    settings = {k: v for k, v in template.items() if k not in ("class", "nodeTemplate")}
    return {
        "name": machines.name,
        "className": template["class"]["name"],
        "secretName": machines.class_name,
        "poolName": machines.pool,
        "minimum": machines.minimum,
        "maximum": machines.maximum,
        "priority": machines.priority,
        "strategy": machines.strategy,
        "labels": map_at(node, "metadata").get("labels"),
        "annotations": map_at(node, "metadata").get("annotations"),
        "taints": map_at(node, "spec").get("taints"),
        "machineConfiguration": settings,
        "clusterAutoscalerAnnotations": {k: v or "" for k, v in machines.options.items()},
    }
