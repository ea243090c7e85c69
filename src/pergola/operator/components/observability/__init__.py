"""The components that watch a Garden: metrics, alerts, dashboards and logs (spec 20 §16.8)."""
