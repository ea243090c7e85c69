"""Reconciling a Garden: the inputs of rendering, the flows, and its status (spec 20 §8 to §12)."""
