"""The long-term Prometheus: keeps the series for bills and reports of months (spec 20 §16.8)."""
