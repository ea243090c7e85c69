"""Calico: the network plugin `calico` (spec 40 §5).

`config` says what users may say, `checks` what is wrong with it, `advice` what has no effect,
`values` what it means, `render` what runs, `plugin` puts them together.
"""

from pergola.providers.networking.calico.config import NetworkConfig
from pergola.providers.networking.calico.plugin import Calico
from pergola.providers.networking.calico.values import FeatureGates

__all__ = ["Calico", "FeatureGates", "NetworkConfig"]
