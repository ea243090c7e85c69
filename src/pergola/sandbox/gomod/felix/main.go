// felix runs Calico's Felix on a sandbox's node: it turns NetworkPolicies into nftables rules.
//
// Like calico-node in a cluster, it first creates the objects without which Felix and the CNI
// plugin wait forever: the ClusterInformation and the tiers. Felix takes everything but its
// connection from the configuration file.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/projectcalico/calico/felix/daemon"
	"github.com/projectcalico/calico/libcalico-go/lib/apiconfig"
	"github.com/projectcalico/calico/libcalico-go/lib/clientv3"
)

const (
	patience = 30 * time.Second
	interval = 100 * time.Millisecond
)

var version = "unknown" // set by the linker

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the kubeconfig of Felix's identity")
	configuration := flag.String("config-file", "", "Felix's configuration file")
	flag.Parse()
	// Felix reads these from the environment only.
	os.Setenv("KUBECONFIG", *kubeconfig)
	// It would remove BPF programs of an earlier run, for which it needs libbpf, that is C code.
	os.Setenv("FELIX_DebugSkipCTLBCleanup", "true")
	if err := initialize(); err != nil {
		fmt.Fprintln(os.Stderr, "felix: cannot create its first objects:", err)
		os.Exit(1)
	}
	daemon.Run(*configuration, version, "", "")
}

// initialize creates missing objects, waiting until the API server serves their kinds.
func initialize() error {
	settings, err := apiconfig.LoadClientConfigFromEnvironment()
	if err != nil {
		return err
	}
	client, err := clientv3.New(*settings)
	if err != nil {
		return err
	}
	defer client.Close()
	for deadline := time.Now().Add(patience); ; time.Sleep(interval) {
		err := client.EnsureInitialized(context.Background(), version, "k8s")
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
