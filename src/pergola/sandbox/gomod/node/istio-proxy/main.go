// Command istio-proxy starts Envoy as an Istio gateway: it takes the arguments and variables of the
// gateway's container, and has Envoy fetch its listeners and clusters from istiod.
//
// Unlike the original it gets them by Envoy's REST protocol, and has no certificates of its own.
package main

import (
	"encoding/json"
	"errors"
	"log"
	"net"
	"os"
	"strings"
	"syscall"
)

const (
	labelsFile    = "/etc/istio/pod/labels" // written by the downward API
	authorityFile = "/var/run/secrets/istio/root-cert.pem"
	defaultIstiod = "istiod.istio-system.svc:15012"
	logLevelFlag  = "--proxyLogLevel="
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("istio-proxy: ")
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run replaces this process by Envoy, which therefore gets the container's signals.
func run(args []string) error {
	if len(args) < 2 || args[0] != "proxy" || args[1] != "router" {
		return errors.New("the first arguments must be proxy router: this stand-in runs gateways only")
	}
	level := "info"
	for _, arg := range args[2:] {
		if value, found := strings.CutPrefix(arg, logLevelFlag); found {
			level = value
		}
	}
	host, port, err := net.SplitHostPort(variable("CA_ADDR", defaultIstiod))
	if err != nil {
		return err
	}
	labels, err := os.ReadFile(labelsFile)
	if err != nil {
		return err
	}
	config, err := json.Marshal(bootstrap(host, port, node(parse(string(labels)))))
	if err != nil {
		return err
	}
	line := []string{"envoy", "--config-yaml", string(config), "--log-level", level, "--disable-hot-restart"}
	return syscall.Exec("/usr/local/bin/envoy", line, os.Environ())
}

// node describes this gateway to istiod, which selects the configuration by namespace and labels.
func node(labels map[string]any) map[string]any {
	namespace := variable("POD_NAMESPACE", "default")
	name := variable("POD_NAME", "gateway") + "." + namespace
	return map[string]any{
		"id":       strings.Join([]string{"router", variable("INSTANCE_IP", ""), name, namespace + ".svc"}, "~"),
		"cluster":  variable("ISTIO_META_WORKLOAD_NAME", "gateway"),
		"metadata": map[string]any{"NAMESPACE": namespace, "LABELS": labels},
	}
}

// parse reads lines of the form key="value".
func parse(text string) map[string]any {
	labels := map[string]any{}
	for _, line := range strings.Split(text, "\n") {
		if key, quoted, found := strings.Cut(line, "="); found {
			var value string
			if json.Unmarshal([]byte(quoted), &value) == nil {
				labels[key] = value
			}
		}
	}
	return labels
}

func variable(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
