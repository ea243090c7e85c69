package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	retryAfter = time.Second
	// Fetching the configuration waits for the sidecar's attempts to reach other members.
	answerWithin = time.Minute
)

// sidecar is a client of the HTTP API of etcd-backup-restore.
type sidecar struct {
	base   string
	client *http.Client
}

func newSidecar(opts options) (*sidecar, error) {
	scheme, transport := "http", &http.Transport{}
	if opts.backupTLS {
		pool, err := authorities(opts.backupCA)
		if err != nil {
			return nil, err
		}
		scheme = "https"
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	client := &http.Client{Transport: transport, Timeout: answerWithin}
	return &sidecar{base: scheme + "://" + opts.backupRestore, client: client}, nil
}

// initialize returns when the sidecar reports that the data directory is valid or restored. The
// sidecar forgets a result when it has reported it, so that a failed attempt starts again.
func (s *sidecar) initialize(ctx context.Context) error {
	for last := ""; ; {
		status, err := s.get(ctx, "/initialization/status")
		if err != nil {
			status = err.Error()
		}
		if status != last {
			log.Printf("initialization: %s", status)
			last = status
		}
		switch {
		case err == nil && status == "Successful":
			return nil
		case err == nil && status == "New":
			if _, err := s.get(ctx, "/initialization/start?mode=full"); err != nil {
				log.Print(err)
			}
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// config fetches the configuration of this member.
func (s *sidecar) config(ctx context.Context) (*embed.Config, error) {
	for {
		text, err := s.get(ctx, "/config")
		if err == nil {
			return parsed(text)
		}
		log.Print(err)
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *sidecar) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return "", fmt.Errorf("etcd-backup-restore does not answer: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("etcd-backup-restore answers %s to %s", answer.Status, path)
	}
	return strings.TrimSpace(string(text)), nil
}

// parsed has etcd read the configuration, which it only does from a file.
func parsed(text string) (*embed.Config, error) {
	file, err := os.CreateTemp("", "etcd-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	cfg, err := embed.ConfigFromFile(file.Name())
	if err != nil {
		return nil, fmt.Errorf("the configuration from etcd-backup-restore is invalid: %w", err)
	}
	return cfg, nil
}

func authorities(path string) (*x509.CertPool, error) {
	bundle, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read a CA bundle: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("%s contains no certificate", path)
	}
	return pool, nil
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(retryAfter):
		return nil
	}
}
