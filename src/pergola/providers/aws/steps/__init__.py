"""The steps that create and keep a cluster's infrastructure (spec 30 §3, §4).

`network` has those of the network in their order; `names` says what they are called, `finding` how
something is found again, `waiting` how AWS is waited for. Each of the others has one kind of thing.
"""
