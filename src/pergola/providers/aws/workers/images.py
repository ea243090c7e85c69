"""The machine image of a pool, from the CloudProfile or from earlier runs (spec 31 §3)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pergola.api.objects import GroupVersionKind, JsonObject, maps_at, name_of
from pergola.api.schema.declare import Value
from pergola.api.schema.read import Malformed
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.provider_config import read_leniently, read_strict
from pergola.extensions.workers import Pool, WorkerPlan
from pergola.providers.aws.cloud_profile_config import (
    AMD64,
    ARCHITECTURE,
    CLOUD_PROFILE_CONFIG,
    Capabilities,
    CloudProfileConfig,
    effective_spec,
)
from pergola.providers.aws.config import GROUP
from pergola.providers.aws.image_selection import definitions, fit, flavor, machine_capabilities
from pergola.providers.aws.worker_config import WorkerConfig
from pergola.providers.aws.workers.problems import Problem, plain, unusable

WORKER_STATUS: Final = GroupVersionKind(GROUP, "v1alpha1", "WorkerStatus")


class StatusImage(Value):
    """An image that machines of a Worker use, with an architecture or with capabilities."""

    name: str = ""
    """The name of the image in the CloudProfile."""
    version: str = ""
    """Its version."""
    ami: str = ""
    """Its id in the region."""
    architecture: str | None = None
    """The processor architecture; `amd64` if absent."""
    capabilities: dict[str, list[str]] = {}
    """The capabilities of the machines that it fits, if the CloudProfile defines capabilities."""


class WorkerStatus(Value):
    """The images that machines of a Worker use."""

    machine_images: list[StatusImage] = []
    """Each image once."""


class Image(NamedTuple):
    """The image of a pool.

    Attributes:
        capabilities: of the flavor; older ones have just their architecture.
    """

    name: str
    version: str
    ami: str
    capabilities: Capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The images that pools may have.

    Attributes:
        profile: the spec of the CloudProfile.
        profile_name: for messages.
        region: of the Worker.
        used: the images of earlier runs; None before the first one.
    """

    profile: JsonObject
    profile_name: str
    config: CloudProfileConfig
    region: str
    used: Sequence[StatusImage] | None

    @classmethod
    def of(cls, plan: WorkerPlan[WorkerConfig]) -> "Images":
        """Return the images of a plan.

        Raises:
            ExtensionError: the CloudProfile's config or the Worker's status is malformed.
        """
        profile = plan.cluster.cloud_profile or {}
        spec, name = effective_spec(profile), name_of(profile)
        path = f"CloudProfile {plain(name)}: spec.providerConfig"
        given, old = spec.get("providerConfig"), plan.status
        try:
            config = read_leniently(CloudProfileConfig, given, CLOUD_PROFILE_CONFIG, path=path)
            status = read_strict(
                WorkerStatus, old, WORKER_STATUS, path="status.providerStatus", needs_type=bool(old)
            )
        except Malformed as error:
            raise configuration_problem(str(error)) from None
        used = status.machine_images if old else None
        return cls(profile=spec, profile_name=name, config=config, region=plan.region, used=used)

    def of_pool(self, pool: Pool[WorkerConfig]) -> Image:
        """Return the image of a pool.

        Raises:
            Problem: the CloudProfile lacks the machine type, or the image is unknown.
        """
        known = definitions(self.profile)
        machine = machine_capabilities(self._machine(pool), pool.architecture, known)
        found = flavor(self.config, *pool.image, self.region, machine, known)
        if found is None:
            return self._of_earlier_runs(pool, machine, known)
        capabilities = found.capabilities
        if not capabilities.get(ARCHITECTURE):
            capabilities = {**capabilities, ARCHITECTURE: machine[ARCHITECTURE]}
        return Image(*pool.image, found.ami, capabilities)

    def status(self, images: Iterable[Image]) -> JsonObject:
        """Return the WorkerStatus with the images of all pools, each once, in their order."""
        found: dict[object, Image] = {}
        for image in images:
            found.setdefault((image.name, image.version, self._identity(image)), image)
        status: JsonObject = {"apiVersion": WORKER_STATUS.api_version, "kind": WORKER_STATUS.kind}
        if found:
            status["machineImages"] = [self._entry(image) for image in found.values()]
        return status

    def _of_earlier_runs(
        self, pool: Pool[WorkerConfig], machine: Capabilities, known: Capabilities
    ) -> Image:
        name, version, architecture, region = map(
            plain, (*pool.image, pool.architecture, self.region)
        )
        if self.used is None:
            raise _no_image(
                pool,
                f"could not find machine image for {name}/{version}/{architecture}/{region} "
                "neither in cloud profile nor in worker status",
            )
        for image in map(self._converted, self.used):
            fits = (
                fit(image.capabilities, machine, known)
                if self._has_capabilities
                else image.capabilities[ARCHITECTURE] == [pool.architecture]
            )
            if (image.name, image.version) == pool.image and fits:
                return image
        needed = f'architecture "{architecture}"'
        if self._has_capabilities:
            needed = "the capabilities of the machine type"
        raise _no_image(
            pool,
            f'no machine image found for image "{name}" with version "{version}" and {needed}',
        )

    @property
    def _has_capabilities(self) -> bool:
        return bool(maps_at(self.profile, "machineCapabilities"))

    def _machine(self, pool: Pool[WorkerConfig]) -> JsonObject:
        for machine in maps_at(self.profile, "machineTypes"):
            if machine.get("name") == pool.machine_type:
                return machine
        detail = f'machine type not found in cloud profile "{plain(self.profile_name)}"'
        raise unusable("machineType", pool.machine_type, detail)

    def _converted(self, image: StatusImage) -> Image:
        """Return an image of an earlier run, in which the profile may have had another format."""
        capabilities: Capabilities = {ARCHITECTURE: [image.architecture or AMD64]}
        if self._has_capabilities and image.capabilities:
            capabilities = image.capabilities
        return Image(image.name, image.version, image.ami, capabilities)

    def _identity(self, image: Image) -> object:
        if not self._has_capabilities:
            return image.capabilities[ARCHITECTURE][0]
        known = definitions(self.profile)
        return frozenset(
            (name, frozenset(image.capabilities.get(name, values)))
            for name, values in known.items()
        )

    def _entry(self, image: Image) -> JsonObject:
        entry: JsonObject = {"name": image.name, "version": image.version, "ami": image.ami}
        if self._has_capabilities:
            capabilities = {name: [*values] for name, values in image.capabilities.items()}
            return {**entry, "capabilities": capabilities}
        return {**entry, "architecture": image.capabilities[ARCHITECTURE][0]}


def _no_image(pool: Pool[WorkerConfig], detail: str) -> Problem:
    return unusable("machineImage", "/".join(pool.image), detail)
