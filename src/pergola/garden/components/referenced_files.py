"""YAML files in ConfigMaps that a Garden names."""

from pergola.api.objects import JsonObject
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import ReferenceMalformed
from pergola.kube.yaml import YamlError, parse


def referenced_map(
    landscape: Landscape, name: str, key: str, *, may_be_empty: bool = False
) -> JsonObject:
    """Return the YAML map at one key of a ConfigMap.

    Raises:
        ReferenceMissing: The ConfigMap does not exist or lacks the key.
        ReferenceMalformed: The file is not a YAML map, or is empty but may not be.
    """
    text = landscape.referenced_value("ConfigMap", name, key).decode(errors="replace")
    of = ("ConfigMap", NAMESPACE, name, key)
    try:
        found = parse(text)
    except YamlError as error:
        raise ReferenceMalformed(*of, str(error)) from None
    if found is None and may_be_empty:
        return {}
    if not isinstance(found, dict):
        raise ReferenceMalformed(*of, "it is not a map")
    return found
