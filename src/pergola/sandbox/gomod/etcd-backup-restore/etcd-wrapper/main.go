// Command etcd-wrapper runs etcd beside an etcd-backup-restore sidecar: it has the sidecar validate
// or restore the data, fetches the configuration from it, and runs etcd with that configuration in
// this process. It takes the arguments that etcd-druid passes to the original.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

type options struct {
	backupRestore string
	backupTLS     bool
	backupCA      string
	serverName    string
	clientPort    int
	clientCert    string
	clientKey     string
	port          int
}

func main() {
	log.SetFlags(log.LstdFlags | log.Lmsgprefix)
	log.SetPrefix("etcd-wrapper: ")
	opts, err := parse(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, opts); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func parse(args []string) (options, error) {
	var opts options
	if len(args) == 0 || args[0] != "start-etcd" {
		return opts, errors.New("the first argument must be start-etcd")
	}
	flags := flag.NewFlagSet("start-etcd", flag.ContinueOnError)
	flags.StringVar(&opts.backupRestore, "backup-restore-host-port", "", "address of the sidecar")
	flags.BoolVar(&opts.backupTLS, "backup-restore-tls-enabled", false, "whether the sidecar serves TLS")
	flags.StringVar(&opts.backupCA, "backup-restore-ca-cert-bundle-path", "", "CA bundle of the sidecar")
	flags.StringVar(&opts.serverName, "etcd-server-name", "localhost", "host name of this etcd member")
	flags.IntVar(&opts.clientPort, "etcd-client-port", 2379, "client port of this etcd member")
	flags.StringVar(&opts.clientCert, "etcd-client-cert-path", "", "client certificate for etcd")
	flags.StringVar(&opts.clientKey, "etcd-client-key-path", "", "key of the client certificate")
	flags.IntVar(&opts.port, "etcd-wrapper-port", 9095, "port of /readyz and /stop")
	if err := flags.Parse(args[1:]); err != nil {
		return opts, err
	}
	if opts.backupRestore == "" {
		return opts, errors.New("--backup-restore-host-port is missing: give the address of etcd-backup-restore")
	}
	return opts, nil
}

func run(ctx context.Context, opts options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sidecar, err := newSidecar(opts)
	if err != nil {
		return err
	}
	if err := sidecar.initialize(ctx); err != nil {
		return err
	}
	cfg, err := sidecar.config(ctx)
	if err != nil {
		return err
	}
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("cannot start etcd: %w", err)
	}
	defer etcd.Close()
	failed, err := serve(opts, cfg, cancel)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		log.Print("stopping etcd")
		return nil
	case err := <-etcd.Err():
		return fmt.Errorf("etcd failed: %w", err)
	case err := <-failed:
		return fmt.Errorf("cannot serve /readyz on port %d: %w", opts.port, err)
	case <-etcd.Server.StopNotify():
		return errors.New("etcd stopped by itself; its log has the reason")
	}
}

// serve answers readiness probes of the kubelet and restart requests of etcd-backup-restore, over
// TLS if the sidecar does.
func serve(opts options, cfg *embed.Config, stop func()) (<-chan error, error) {
	member, err := newMember(opts, cfg)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(answer http.ResponseWriter, request *http.Request) {
		if err := member.ready(request.Context()); err != nil {
			http.Error(answer, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /stop", func(http.ResponseWriter, *http.Request) {
		log.Print("etcd-backup-restore requests a restart")
		stop()
	})
	server := &http.Server{
		Addr:              fmt.Sprintf(":%d", opts.port),
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
	}
	failed := make(chan error, 1)
	go func() {
		if opts.backupTLS {
			failed <- server.ListenAndServeTLS(cfg.ClientTLSInfo.CertFile, cfg.ClientTLSInfo.KeyFile)
		} else {
			failed <- server.ListenAndServe()
		}
	}()
	return failed, nil
}
