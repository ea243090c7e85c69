"""Rotation of a Garden's credentials (spec 20 §17, spec 21 §10)."""
