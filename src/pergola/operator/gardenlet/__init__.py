"""The first gardenlet of a Seed, deployed from a Gardenlet of the virtual cluster (spec 21 §14).

decide        the next step for a Gardenlet;  names: kinds and names connection    how gardenlet
reaches the virtual cluster;  bootstrap: its initial token target        the cluster that it is
deployed into: its identity, and the gardenlet that it has values        the values of its chart;
backup: the Secret for the backups of its Seed deploy        rendering and applying the chart;
reconcile: the steps;  unit: the controllers triggers      the events that cause a run;
chart_updates: charts of new versions
"""
