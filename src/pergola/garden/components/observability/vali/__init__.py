"""Vali: stores the logs of the garden (spec 20 §16.8)."""
