"""One process: signals, endpoints, leader election, listening sockets, profiling."""
