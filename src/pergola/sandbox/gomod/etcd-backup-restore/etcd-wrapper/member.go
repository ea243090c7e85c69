package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

const readWithin = 5 * time.Second

// member is a client of this etcd member.
type member struct {
	client *clientv3.Client
}

func newMember(opts options, cfg *embed.Config) (*member, error) {
	settings := clientv3.Config{
		Endpoints:   []string{fmt.Sprintf("http://%s:%d", opts.serverName, opts.clientPort)},
		DialTimeout: readWithin,
	}
	if opts.clientCert != "" {
		pool, err := authorities(cfg.ClientTLSInfo.TrustedCAFile)
		if err != nil {
			return nil, err
		}
		settings.Endpoints = []string{fmt.Sprintf("https://%s:%d", opts.serverName, opts.clientPort)}
		settings.TLS = &tls.Config{
			RootCAs:    pool,
			MinVersion: tls.VersionTLS12,
			// Read for each connection, because certificates are renewed.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				certificate, err := tls.LoadX509KeyPair(opts.clientCert, opts.clientKey)
				return &certificate, err
			},
		}
	}
	client, err := clientv3.New(settings)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of etcd: %w", err)
	}
	return &member{client}, nil
}

// ready returns an error unless a linearizable read succeeds, which needs a quorum.
func (m *member) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	_, err := m.client.Get(ctx, "ready")
	return err
}
