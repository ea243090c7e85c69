"""The steps that remove a cluster's infrastructure (spec 30 §9).

`network` has all of them in their order; `removing` says what is removed and how. Each of the
others has one kind of thing, `zones` what there is once in each zone, and `byo` the tags on what
users brought.

What the state knows is removed, and what has this cluster's tags: a flow that was killed may have
created something that the state never learned of. With an empty state nothing is to be removed
(`state.is_empty`): the same tags may be those of a cluster of somebody else. Whoever creates must
therefore have saved a state that is not empty before the first thing is created.
"""
