"""Networks of Shoots: the common parts of all plugins, and the plugins calico and cilium."""
