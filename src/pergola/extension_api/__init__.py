"""Extension resources as the SDK and their callers see them: kinds, error codes, predicates.

Not for: implementing an extension, which is `pergola.extensions`.
"""
