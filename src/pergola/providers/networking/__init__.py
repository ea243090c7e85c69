"""Networks of Shoots: what all plugins share, and the plugins calico and cilium."""
