package main

import "strconv"

const (
	readyPort = 15021
	statsPort = 15090
	adminPort = 15000
	// istiod holds a request until something changes, but not for longer than 20 s.
	requestTimeout = "30s"
	refreshDelay   = "1s"
)

type object = map[string]any

// bootstrap returns Envoy's static configuration: where istiod is, and the ports for probes and
// statistics. Envoy opens ports only when it has received its first configuration.
func bootstrap(istiod, port string, node object) object {
	number, _ := strconv.Atoi(port)
	return object{
		"node":  node,
		"admin": object{"address": address("127.0.0.1", adminPort)},
		"dynamic_resources": object{
			"lds_config": source(),
			"cds_config": source(),
		},
		"static_resources": object{
			"listeners": []object{
				passage("ready", readyPort, "/healthz/ready", "/ready"),
				passage("stats", statsPort, "/stats/prometheus", "/stats/prometheus"),
			},
			"clusters": []object{
				cluster("admin", "STATIC", address("127.0.0.1", adminPort)),
				secured(cluster("istiod", "STRICT_DNS", address(istiod, number)), istiod),
			},
		},
	}
}

func source() object {
	return object{
		"resource_api_version":  "V3",
		"initial_fetch_timeout": "0s",
		"api_config_source": object{
			"api_type":              "REST",
			"transport_api_version": "V3",
			"cluster_names":         []string{"istiod"},
			"refresh_delay":         refreshDelay,
			"request_timeout":       requestTimeout,
		},
	}
}

// passage returns a listener that gives access to one page of Envoy's administration.
func passage(name string, port int, path, target string) object {
	routes := object{"virtual_hosts": []object{{
		"name":    name,
		"domains": []string{"*"},
		"routes": []object{{
			"match": object{"path": path},
			"route": object{"cluster": "admin", "prefix_rewrite": target},
		}},
	}}}
	manager := object{
		"@type": "type.googleapis.com/envoy.extensions.filters.network" +
			".http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix":  name,
		"route_config": routes,
		"http_filters": []object{{
			"name":         "envoy.filters.http.router",
			"typed_config": object{"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
		}},
	}
	filter := object{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}
	return object{
		"name":          name,
		"address":       address("0.0.0.0", port),
		"filter_chains": []object{{"filters": []object{filter}}},
	}
}

func cluster(name, discovery string, target object) object {
	endpoint := object{"endpoint": object{"address": target}}
	return object{
		"name":              name,
		"type":              discovery,
		"dns_lookup_family": "V4_PREFERRED",
		"load_assignment": object{
			"cluster_name": name,
			"endpoints":    []object{{"lb_endpoints": []object{endpoint}}},
		},
	}
}

// secured adds TLS with the authority that istiod publishes in each namespace.
func secured(cluster object, name string) object {
	cluster["transport_socket"] = object{
		"name": "envoy.transport_sockets.tls",
		"typed_config": object{
			"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
			"sni":   name,
			"common_tls_context": object{"validation_context": object{
				"trusted_ca":                    object{"filename": authorityFile},
				"match_typed_subject_alt_names": []object{{"san_type": "DNS", "matcher": object{"exact": name}}},
			}},
		},
	}
	return cluster
}

func address(host string, port int) object {
	return object{"socket_address": object{"address": host, "port_value": port}}
}
