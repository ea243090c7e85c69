"""The long-term Prometheus: keeps series for billing and monthly reports (spec 20 §16.8)."""
