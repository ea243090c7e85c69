"""Lets a node's agent touch what belongs to its node, and nothing else (spec 12 §16).

An authorization webhook: API servers ask it whether a request may pass before they serve it.
`decide` is the table, over look-ups that are handed in; `lookups` asks the clusters; `protocol`
speaks SubjectAccessReview.
"""
