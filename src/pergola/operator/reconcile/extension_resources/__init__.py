"""Extension resources of the garden itself: DNSRecords, its backup, Extensions (spec 21 §15.3).

They are determined by pure functions (`dns`, `backup`, `extensions`, `required`); `requests` writes
them, `tasks` and `deletion` contain the tasks of flows.
"""
