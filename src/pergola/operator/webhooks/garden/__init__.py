"""Admission of Gardens: defaults, all findings at once, and warnings (spec 20 §6, spec 21 §7).

`review` and `defaulting` are the handlers. `validation` is the table of contents of the rules,
which are pure functions from typed Gardens to findings; `changes` has the rules about updates.
"""
