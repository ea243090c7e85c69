"""Controllers that several programs run.

Not for: controllers of a single product.
"""
