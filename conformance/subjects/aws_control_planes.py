"""Every object of a control plane on AWS, on the seed and in the Shoot."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

import orjson
from hypothesis.strategies import SearchStrategy

from conformance.comparison import ABSENT, Difference
from conformance.oracles import Answer
from conformance.strategies.aws_control_planes import BASE, VARIANTS, some_control_plane
from conformance.strategies.fields import changed
from conformance.subjects.aws_verdicts import OfAws
from pergola.api.field_errors import sentence
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, Key, map_at, name_of
from pergola.api.schema.read import Malformed
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.control_planes import Plan, Rendered
from pergola.extensions.provider_config import read_strict
from pergola.kube.equality import differences, shape_of
from pergola.providers.aws.control_plane.actuator import AwsControlPlane
from pergola.providers.aws.control_plane_config import CONTROL_PLANE_CONFIG, ControlPlaneConfig
from pergola.secrets_manager import Generated, ManagedSecret

_PARTS: Final = ("configuration", "seed", "shoot", "definitions", "storageClasses")


class AwsControlPlaneObjects(OfAws):
    """Every object that the extension for AWS makes of a ControlPlane."""

    name = "aws-control-plane-objects"
    title = "AWS: objects of a control plane"
    code = ("pergola.providers.aws.control_plane",)

    def table(self) -> Iterator[JsonObject]:
        """Yield control planes with each option."""
        for variant in VARIANTS:
            yield changed(BASE, variant)

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return control planes with random options."""
        return some_control_plane()

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the identities of all objects, and the arguments and sizes of the workloads."""
        return {
            f"{part} {each['kind']} {name_of(each)}": _shape_of_workload(each)
            for part, objects in answer.output.items()
            for each in objects
        }

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Render the same control plane, and compare every field of every object."""
        try:
            ours = _rendered(question)
        except (Malformed, ExtensionError) as error:
            if answer.outcome == "output":
                yield Difference("control plane", "objects", str(error))
            return
        if answer.outcome != "output":
            yield Difference("control plane", str(answer.value).split("\n", 1)[0], "objects")
            return
        for part, made in zip(_PARTS, _parts_of(ours), strict=True):
            yield from _compared(part, answer.output.get(part) or [], made)


def _rendered(question: JsonObject) -> Rendered:
    """Return the objects of a ControlPlane.

    Raises:
        Malformed: its config is wrong.
        ExtensionError: the control plane is refused, or cannot be rendered.
    """
    provider, spec = _provider(), map_at(question["controlPlane"], "spec")
    cluster = Cluster.from_object(question["cluster"])
    shoot = cluster.shoot or Shoot({})
    namespace = Key.of(question["controlPlane"]).namespace
    plan = Plan(
        config=read_strict(
            ControlPlaneConfig,
            spec.get("providerConfig"),
            CONTROL_PLANE_CONFIG,
            needs_type=bool(spec.get("providerConfig")),
        ),
        infrastructure=map_at(spec, "infrastructureProviderStatus"),
        region=spec["region"],
        cluster=cluster,
        shoot=shoot,
        namespace=namespace,
        credentials=question["secret"],
        is_awake=not (
            shoot.hibernation_enabled and not shoot.is_deleting and question["scaledDown"]
        ),
        generated={
            config.name: _generated(config.name) for config, _ in provider.credentials(namespace)
        },
    )
    if findings := list(provider.check(plan)):
        raise ExtensionError(sentence(findings))
    return provider.render(plan)


@cache
def _provider() -> AwsControlPlane:
    return AwsControlPlane()


def _generated(name: str) -> Generated:
    """Return the credential that the oracle generates."""
    obj: JsonObject = {"metadata": {"name": name}}
    secret = ManagedSecret(obj, {"bundle.crt": name.encode()})
    return Generated(secret, bundle=secret)


def _parts_of(rendered: Rendered) -> Sequence[Sequence[JsonObject]]:
    return (
        rendered.configuration,
        rendered.seed,
        rendered.shoot,
        rendered.definitions,
        rendered.storage_classes,
    )


def _compared(
    part: str, theirs: Sequence[JsonObject], ours: Sequence[JsonObject]
) -> Iterator[Difference]:
    made, desired = _by_name(theirs), _by_name(ours)
    for name in sorted(made.keys() | desired.keys()):
        path = f"{part} {name}"
        if name not in made or name not in desired:
            yield Difference(path, _text(made.get(name)), _text(desired.get(name)))
            continue
        shape = shape_of(GroupVersionKind.of(desired[name]).group_kind)
        for each in differences(made[name], desired[name], shape):
            yield Difference(f"{path}: {each.path}", _text(each.one), _text(each.other))


def _by_name(objects: Sequence[JsonObject]) -> dict[str, JsonObject]:
    return {f"{each['kind']} {name_of(each)}": each for each in objects}


def _text(value: JsonValue) -> str:
    return ABSENT if value is None else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _shape_of_workload(obj: JsonObject) -> JsonValue:
    containers = map_at(obj, "spec", "template", "spec").get("containers")
    if not isinstance(containers, list):
        return None
    arguments = [each.get("args") or each.get("command") for each in containers]
    return [map_at(obj, "spec").get("replicas"), arguments]
