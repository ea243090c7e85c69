// Command oracle answers questions about Gardener by calling Gardener's own exported functions.
//
// It reads a question per line, {"ask": NAME, "input": VALUE}, and writes an answer per line; see
// protocol.go. An answer depends on its question alone, and for a place on the cluster that the question names.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	log.SetLogger(logr.Discard())
	debug.SetGCPercent(400) // memory is cheaper than time here
	asks := map[string]ask{
		"admission":                admitted,
		"critical-components":      criticalComponents,
		"csr":                      signingRequest,
		"evictions":                evictions,
		"garbage":                  garbage,
		"garden-flows":             gardenFlows,
		"garden-made":              gardenMade,
		"health":                   health,
		"managed-objects":          managedObjects,
		"managed-resource":         managedResource,
		"managed-resource-secrets": managedResourceSecrets,
		"network-policies":         networkPolicies,
		"node-delays":              nodeDelays,
		"operator-config":          operatorConfiguration,
		"place/deploy":             placeDeploy,
		"place/wait":               placeWait,
		"resource-manager-config":  resourceManagerConfiguration,
		"rotations":                rotations,
		"schedules":                schedules,
		"secrets-manager":          secretsManager,
		"token-requests":           tokenRequests,
		"unique-names":             uniqueNames,
		"webhook":                  webhookCall,
	}
	if err := serve(asks, "github.com/gardener/gardener"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
