"""The API group and kinds of the operator."""

from typing import Final

from pergola.api.objects import GroupVersionKind

GROUP: Final = "operator.gardener.cloud"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
GARDEN: Final = GroupVersionKind(GROUP, VERSION, "Garden")
EXTENSION: Final = GroupVersionKind(GROUP, VERSION, "Extension")
