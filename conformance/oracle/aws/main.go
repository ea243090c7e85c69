// Command oracle answers questions about Gardener on AWS by calling the exported functions of its
// extension.
//
// It reads a question per line, {"ask": NAME, "input": VALUE}, and writes an answer per line; see
// protocol.go. An answer depends on its question alone.
package main

import (
	"fmt"
	"os"
)

func main() {
	asks := map[string]ask{
		"aws-backup-bucket":         backupBucket,
		"aws-control-plane":         controlPlane,
		"aws-control-plane-objects": controlPlaneObjects,
		"aws-credentials":           credentials,
		"aws-dns-records":           dnsRecords,
		"aws-garden-objects":        gardenObject,
		"aws-image":                 image,
		"aws-image-flavors":         imageFlavors,
		"aws-infrastructure":        infrastructure,
		"aws-machines":              machines,
		"aws-shoot":                 shoot,
		"aws-shoot-defaults":        shootDefaults,
		"aws-webhooks":              webhooks,
		"aws-worker":                worker,
	}
	if err := serve(asks, "github.com/gardener/gardener-extension-provider-aws"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
