"""Plutono: shows metrics and logs of the garden on dashboards (spec 20 §16.8).

`component` runs it, `dashboards` holds what it shows from the start. It takes more dashboards from
ConfigMaps with the label `dashboard.monitoring.gardener.cloud/garden=true`.
"""
