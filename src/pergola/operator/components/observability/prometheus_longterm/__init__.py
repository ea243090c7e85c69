"""The long-term Prometheus: keeps what is billed and reported over months (spec 20 §16.8)."""
