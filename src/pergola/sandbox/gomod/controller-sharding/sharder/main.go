// The sharder, with its webhook on the port that PERGOLA_WEBHOOK_PORT names.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/timebertt/kubernetes-controller-sharding/cmd/sharder/app"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	port, err := strconv.Atoi(os.Getenv("PERGOLA_WEBHOOK_PORT"))
	if err != nil {
		return fmt.Errorf("PERGOLA_WEBHOOK_PORT: %w", err)
	}
	webhook.DefaultPort = port
	return app.NewCommand().ExecuteContext(signals.SetupSignalHandler())
}
