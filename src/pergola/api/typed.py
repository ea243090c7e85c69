"""The kinds of Pergola and of Gardener that have types: read a live object with its fields.

```python
resource = typed(ManagedResource, await client.get(MANAGED_RESOURCE, key))
names = [each.name for each in resource.spec.secret_refs]
```

Write with patches, or change the JSON that you have read: a type drops fields that it does not
know.
"""

from typing import TypeVar

from pergola.api.bastion_v1alpha1 import Bastion
from pergola.api.extensions_v1alpha1 import Cluster, Network
from pergola.api.infrastructure_v1alpha1 import Infrastructure
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1.extension import Extension
from pergola.api.operator_v1alpha1.garden import Garden
from pergola.api.resources_v1alpha1 import ManagedResource
from pergola.api.schema.declare import Object
from pergola.api.schema.read import read

__all__ = [
    "Bastion",
    "Cluster",
    "Extension",
    "Garden",
    "Infrastructure",
    "ManagedResource",
    "Network",
    "typed",
]

K = TypeVar("K", bound=Object)


def typed(cls: type[K], obj: JsonObject) -> K:
    """Return an object as its type; unknown fields are left out, and defaults are not filled in.

    Raises:
        Malformed: A field has another type; the message names the object and lists all fields.
    """
    return read(cls, obj, of=f"{cls.resource.name} {Key.of(obj)}")
