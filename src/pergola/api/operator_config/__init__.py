"""The operator's configuration file (spec 20 §3): its type, defaults and validation.

`configuration_from` turns a parsed file into an `OperatorConfiguration`. It reads neither files nor
the environment.
"""

from pergola.api.component_config import ConfigurationInvalid
from pergola.api.operator_config.feature_gates import FEATURE_GATES, feature_gates_of
from pergola.api.operator_config.load import Loaded, configuration_from
from pergola.api.operator_config.v1alpha1 import API_VERSION, KIND, OperatorConfiguration

__all__ = [
    "API_VERSION",
    "FEATURE_GATES",
    "KIND",
    "ConfigurationInvalid",
    "Loaded",
    "OperatorConfiguration",
    "configuration_from",
    "feature_gates_of",
]
