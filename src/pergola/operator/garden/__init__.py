"""Reconciling a Garden: what it is rendered from, the flows, and its status (spec 20 §8 to §12)."""
