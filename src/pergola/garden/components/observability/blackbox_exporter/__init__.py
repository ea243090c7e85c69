"""blackbox-exporter: probes the endpoints of the garden as users reach them (spec 20 §16.8).

`component` runs it, and `probes` defines its targets and modules.
"""
