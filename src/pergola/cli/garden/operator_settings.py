"""The settings for rendering: those in a file, or of the running operator."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pergola.cli.manifest_files import ManifestFileError, content

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.api.operator_config import OperatorConfiguration
    from pergola.bundle.image_vector import ImageVector
    from pergola.kube.client import Client

_NAMESPACE: Final = "garden"
_NAME: Final = "gardener-operator"


class OperatorSettings(NamedTuple):
    """The settings of an operator that affect rendering.

    Attributes:
        source: The origin of the configuration, as a noun phrase.
    """

    config: "OperatorConfiguration"
    images: "ImageVector"
    source: str


class SettingsError(Exception):
    """The settings of the running operator cannot be used; the text says why and what to do."""


def settings_of(config: Path | None) -> OperatorSettings:
    """Return the settings of a configuration file, or the defaults.

    Raises:
        ManifestFileError: The file cannot be read, or is not valid YAML.
        ConfigurationInvalid: It is not a configuration of the operator.
        BundleError: The image vector cannot be read.
    """
    from pergola.api.operator_config import OperatorConfiguration
    from pergola.kube.yaml import YamlError
    from pergola.operator.template import images

    if config is None:
        return OperatorSettings(OperatorConfiguration(), images(os.environ), "the defaults")
    try:
        parsed = _configuration(content(str(config)), str(config))
    except YamlError as error:
        raise ManifestFileError(f"{config} is not valid YAML: {error}") from None
    return OperatorSettings(parsed, images(os.environ), f"file {config}")


async def settings_in(client: "Client") -> OperatorSettings:
    """Return the settings of a cluster's operator; the defaults if it runs none.

    This process's `IMAGEVECTOR_OVERWRITE` takes precedence over the operator's.

    Raises:
        SettingsError: The operator's configuration cannot be used.
        KubeError: The API server did not answer.
    """
    from pergola.api.kinds import DEPLOYMENT
    from pergola.api.objects import Key
    from pergola.kube.errors import Forbidden, NotFound

    try:
        deployment = await client.get(DEPLOYMENT, Key(_NAMESPACE, _NAME))
        return await _running(client, deployment)
    except (Forbidden, NotFound) as error:
        return settings_of(None)._replace(source=f"the defaults, because {error}")


async def _running(client: "Client", deployment: "JsonObject") -> OperatorSettings:
    """Return the settings in the files of a Deployment's pods."""
    from pergola.api.component_config import ConfigurationInvalid
    from pergola.bundle import BundleError
    from pergola.bundle.image_vector import OVERWRITE, OWN, REGISTRY
    from pergola.cli.garden.operator_deployment import configuration_file, mounted, variable
    from pergola.kube.yaml import YamlError
    from pergola.operator.template import images

    where = f"Deployment {_NAMESPACE}/{_NAME}"
    file = mounted(deployment, configuration_file(deployment))
    if file is None:
        raise SettingsError(f"{where} does not mount a ConfigMap as --config: give --config")
    vector = mounted(deployment, variable(deployment, OVERWRITE))
    source = f"ConfigMap {_NAMESPACE}/{file.name}, used by {where}"
    try:
        config = _configuration(await _read(client, file.name, file.key), source)
        own = {name: variable(deployment, name) for name in (OWN, REGISTRY)}
        found = images({**own, **os.environ})
        if vector is not None and not os.environ.get(OVERWRITE):
            found = found.override(await _read(client, vector.name, vector.key), vector.name)
    except (BundleError, ConfigurationInvalid, YamlError) as error:
        raise SettingsError(f"{where} is not usable here: {error}; give --config") from None
    return OperatorSettings(config, found, source)


async def _read(client: "Client", name: str, key: str) -> bytes:
    from pergola.api.kinds import CONFIG_MAP
    from pergola.api.objects import Key, map_at

    found = await client.get(CONFIG_MAP, Key(_NAMESPACE, name))
    return str(map_at(found, "data").get(key, "")).encode()


def _configuration(text: bytes, source: str) -> "OperatorConfiguration":
    from pergola.api.operator_config import configuration_from
    from pergola.kube.yaml import parse

    return configuration_from(parse(text), source=source).config
