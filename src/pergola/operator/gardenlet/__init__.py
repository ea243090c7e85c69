"""The first gardenlet of a Seed, deployed from a Gardenlet of the virtual cluster (spec 21 §14).

decide          the next step for a Gardenlet
names           kinds and names
connection      how gardenlet reaches the virtual cluster
bootstrap       gardenlet's initial token
target          the target cluster: its identity, and the gardenlet that it already has
values          the values of gardenlet's chart
backup          the Secret for the backups of the Seed
deploy          rendering and applying the chart
reconcile       the steps
unit            the controllers
triggers        the events that cause a run
chart_updates   charts of new versions
"""
