"""Plutono: shows metrics and logs of the garden on dashboards (spec 20 §16.8).

`component` runs it, and `dashboards` has the built-in dashboards. Plutono also loads dashboards
from ConfigMaps with the label `dashboard.monitoring.gardener.cloud/garden=true`.
"""
