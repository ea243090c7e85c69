"""The content of the page, kept up to date by watching.

kinds     which kinds are watched, and how they are judged
verdicts  whether an object needs attention, since when and why; pure
cards     an object as the page lists it
failures  since when an object fails, across retries
moments   an entry of the time line: an Event, or a condition that changed
feed      numbered changes of cards and moments, so that a page can resume
board     the caches that fill the feed
"""
