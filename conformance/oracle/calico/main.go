// Command oracle answers questions about Gardener's extension for Calico by calling its exported
// functions.
//
// It reads a question per line, {"ask": NAME, "input": VALUE}, and writes an answer per line; see
// protocol.go. An answer depends on its question alone.
package main

import (
	"fmt"
	"os"

	"github.com/gardener/gardener-extension-networking-calico/pkg/features"
)

func main() {
	features.RegisterFeatureGates()
	asks := map[string]ask{
		"calico-config":  networkConfig,
		"calico-objects": networkObjects,
	}
	if err := serve(asks, "github.com/gardener/gardener-extension-networking-calico"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
