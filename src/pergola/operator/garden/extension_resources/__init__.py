"""Extension resources of the garden itself: DNSRecords, its backup, Extensions (spec 21 §15.3).

What they are is decided by pure functions (`dns`, `backup`, `extensions`, `required`); `requests`
writes them, `tasks` and `deletion` are the tasks of flows.
"""
