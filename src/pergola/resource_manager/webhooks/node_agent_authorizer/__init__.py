"""Authorization of a node's agent for the objects of its own node only (spec 12 §16).

`decide` is the table, `lookups` reads from the clusters, and `protocol` decodes and answers
SubjectAccessReviews.
"""
