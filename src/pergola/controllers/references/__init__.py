"""Protection of referenced objects: they stay as long as they are in use (spec 21 §4).

A referrer is an object that names Secrets or ConfigMaps, such as a Garden. Each referenced object
that exists has a finalizer, and so does the referrer, which outlives the finalizers of the objects
it named. One index covers the referrers of all kinds: an object is released when its last referrer
is gone.

To protect the objects that another kind names, add one `Referrer` to the table of
`reference_protection`: the kind, the name of its controller, a function that returns an object's
references (`names_at` and `resources_at` build it from field paths), and the finalizer that the
object keeps for as long as its controller needs the named objects.

`fields` finds names in objects, `referrers` is the index, `named` the objects, `reconcile` decides
about finalizers, `finalizers` writes them, and `unit` contains the controllers and their triggers.

Not for: using the named objects, or checking their content.
"""

from pergola.controllers.references.fields import (
    CONFIG_MAP,
    SECRET,
    Reference,
    names_at,
    resources_at,
)
from pergola.controllers.references.referrers import Referrer
from pergola.controllers.references.unit import reference_protection

__all__ = [
    "CONFIG_MAP",
    "SECRET",
    "Reference",
    "Referrer",
    "names_at",
    "reference_protection",
    "resources_at",
]
