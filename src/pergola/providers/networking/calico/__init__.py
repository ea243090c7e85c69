"""Calico: the network plugin `calico` (spec 40 §5).

`config` has the settings, `checks` finds errors in them, `advice` finds settings without effect,
`values` applies defaults, `render` returns the objects, `plugin` combines them.
"""

from pergola.providers.networking.calico.config import NetworkConfig
from pergola.providers.networking.calico.plugin import Calico
from pergola.providers.networking.calico.values import FeatureGates

__all__ = ["Calico", "FeatureGates", "NetworkConfig"]
