"""The observability of a Garden: metrics, alerts, dashboards and logs (spec 20 §16.8)."""
