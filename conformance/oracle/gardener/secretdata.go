package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"regexp"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener/gardener/pkg/utils"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	secretsutils "github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
)

// hashed is the part of a name that depends on the implementation.
var hashed = regexp.MustCompile(`-[0-9a-f]{8}(-[0-9a-f]{5})?$`)

// seen names what random values and hashes stand for after the step in which they appeared first.
type seen struct {
	objects     map[string]string            // by name
	data        map[[32]byte]string          // by the hash of all data
	checksums   map[string]string            // of data, as the manager computes them
	configs     map[string]string            // the checksums of configs
	authorities map[string]*x509.Certificate // by the name of their data
	keys        map[string]string            // keys that sign tokens
}

func newSeen() *seen {
	return &seen{map[string]string{}, map[[32]byte]string{}, map[string]string{}, map[string]string{}, map[string]*x509.Certificate{}, map[string]string{}}
}

// scan names what a step made.
func (s *seen) scan(c client.Client, step string) error {
	list, err := secretsOf(c)
	if err != nil {
		return err
	}
	for _, secret := range list {
		if secret.Labels[secretsmanager.LabelKeyChecksumConfig] == "" {
			continue // others made it
		}
		config := secret.Labels[secretsmanager.LabelKeyName]
		name := step + " " + config
		if _, ok := s.objects[secret.Name]; !ok {
			s.objects[secret.Name] = name
		}
		if value := checksumsOf(secret); s.configs[value] == "" {
			s.configs[value] = name
		}
		if hash := hashOf(secret.Data); s.data[hash] == "" {
			s.data[hash] = name
			s.checksums[kubernetesutils.TruncateLabelValue(utils.ComputeSecretChecksum(secret.Data))] = name
			s.learn(secret.Data, name)
		}
	}
	return nil
}

// learn notes an authority, or a key that signs tokens.
func (s *seen) learn(data map[string][]byte, name string) {
	if certificate, err := utils.DecodeCertificate(data[secretsutils.DataKeyCertificateCA]); err == nil && data[secretsutils.DataKeyPrivateKeyCA] != nil {
		s.authorities[name] = certificate
	}
	if key := data[secretsutils.DataKeyRSAPrivateKey]; key != nil {
		s.keys[string(key)] = name
	}
}

// secrets describes all Secrets by name.
func (s *seen) secrets(c client.Client) (map[string]any, error) {
	list, err := secretsOf(c)
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for _, secret := range list {
		labels := map[string]string{}
		for key, value := range secret.Labels {
			labels[key] = value
		}
		relabel(labels, secretsmanager.LabelKeyChecksumConfig, s.configs[checksumsOf(secret)])
		relabel(labels, secretsmanager.LabelKeyChecksumSigningCA, s.checksums[labels[secretsmanager.LabelKeyChecksumSigningCA]])
		data := map[string]any{}
		for key, value := range secret.Data {
			data[key] = s.described(key, value)
		}
		name := s.objects[secret.Name]
		if name == "" {
			name = secret.Name
		}
		found[name] = map[string]any{
			"name":      shape(secret.Name),
			"labels":    labels,
			"type":      string(secret.Type),
			"immutable": secret.Immutable != nil && *secret.Immutable,
			"created":   secret.CreationTimestamp.Unix(),
			"from":      s.data[hashOf(secret.Data)],
			"data":      data,
		}
	}
	return found, nil
}

// relabel replaces the value of a label that is there.
func relabel(labels map[string]string, key, value string) {
	if _, ok := labels[key]; ok && value != "" {
		labels[key] = value
	}
}

// got returns which Secrets the manager returns for each config.
func (s *seen) got(manager secretsmanager.Interface, run secretsRun) map[string]any {
	found := map[string]any{}
	if manager == nil {
		return found
	}
	classes := map[string][]secretsmanager.GetOption{"any": {}, "current": {secretsmanager.Current}, "old": {secretsmanager.Old}, "bundle": {secretsmanager.Bundle}}
	for _, each := range run.Generate {
		of := map[string]string{}
		for class, options := range classes {
			if secret, ok := manager.Get(each.Name, options...); ok {
				of[class] = s.objects[secret.Name]
			}
		}
		found[each.Name] = of
	}
	return found
}

// described returns the meaning of a value.
func (s *seen) described(key string, value []byte) any {
	switch key {
	case secretsutils.DataKeyPassword, secretsutils.DataKeyEncryptionSecret:
		return len(value)
	case secretsutils.DataKeyAuth:
		user, _, _ := strings.Cut(string(value), ":")
		return user
	case secretsutils.DataKeyStaticTokenCSV:
		return tokenUsers(string(value))
	case secretsutils.DataKeyKubeconfig:
		return s.kubeconfig(value)
	}
	block, rest := pem.Decode(value)
	if block == nil {
		return string(value)
	}
	found := []any{}
	for ; block != nil; block, rest = pem.Decode(rest) {
		found = append(found, s.block(key, block))
	}
	return found
}

// tokenUsers returns the lines of a file with tokens in order, with the length of each token.
func tokenUsers(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for index, line := range lines {
		token, user, _ := strings.Cut(line, ",")
		lines[index] = fmt.Sprintf("%s,%d", strings.TrimRight(user, ","), len(token))
	}
	sort.Strings(lines)
	return lines
}

func (s *seen) kubeconfig(text []byte) any {
	found := map[string]any{}
	if err := yaml.Unmarshal(text, &found); err != nil {
		return err.Error()
	}
	return s.decoded(found)
}

// decoded describes the embedded files of a kubeconfig.
func (s *seen) decoded(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, each := range value {
			value[key] = s.decoded(each)
			if text, ok := each.(string); ok && strings.HasSuffix(key, "-data") {
				file, _ := base64.StdEncoding.DecodeString(text)
				value[key] = s.described(key, file)
			}
		}
	case []any:
		for index, each := range value {
			value[index] = s.decoded(each)
		}
	}
	return value
}

// block describes a certificate or key. Private keys take long to read, so only those that sign tokens are.
func (s *seen) block(key string, block *pem.Block) any {
	switch {
	case key == secretsutils.DataKeyRSAPrivateKey || key == secretsutils.DataKeyPrivateKeyBundle:
		return "key " + s.keys[string(pem.EncodeToMemory(block))]
	case block.Type != "CERTIFICATE":
		return "a private key"
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err.Error()
	}
	found := map[string]any{
		"commonName":    shape(certificate.Subject.CommonName),
		"organizations": append([]string{}, certificate.Subject.Organization...),
		"hosts":         hostsOf(certificate),
		"server":        allows(certificate, x509.ExtKeyUsageServerAuth),
		"client":        allows(certificate, x509.ExtKeyUsageClientAuth),
		"authority":     certificate.IsCA,
		"from":          certificate.NotBefore.Unix(),
		"until":         certificate.NotAfter.Unix(),
	}
	for name, authority := range s.authorities {
		if certificate.CheckSignatureFrom(authority) == nil {
			found["issuer"] = name
		}
		if certificate.Equal(authority) {
			return map[string]any{"authority": name, "details": found}
		}
	}
	return found
}

func hostsOf(certificate *x509.Certificate) []string {
	hosts := append([]string{}, certificate.DNSNames...)
	for _, address := range certificate.IPAddresses {
		hosts = append(hosts, address.String())
	}
	sort.Strings(hosts)
	return hosts
}

func allows(certificate *x509.Certificate, use x509.ExtKeyUsage) bool {
	for _, each := range certificate.ExtKeyUsage {
		if each == use {
			return true
		}
	}
	return false
}

func shape(name string) string { return hashed.ReplaceAllString(name, "-#$1") }

// checksumsOf returns what the first hash in a name depends on: an authority may be a part of the config.
func checksumsOf(secret corev1.Secret) string {
	return fmt.Sprintf("%q", []string{
		secret.Labels[secretsmanager.LabelKeyName],
		secret.Labels[secretsmanager.LabelKeyChecksumConfig],
		secret.Labels[secretsmanager.LabelKeyChecksumSigningCA],
	})
}

func hashOf(data map[string][]byte) [32]byte {
	var all bytes.Buffer
	names := []string{}
	for name := range data {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(&all, "%q=%q", name, data[name])
	}
	return sha256.Sum256(all.Bytes())
}

// secretsOf returns all Secrets by the name of their config.
func secretsOf(c client.Client) ([]corev1.Secret, error) {
	list := &corev1.SecretList{}
	if err := c.List(context.Background(), list); err != nil {
		return nil, err
	}
	sort.SliceStable(list.Items, func(i, j int) bool {
		return list.Items[i].Labels[secretsmanager.LabelKeyName] < list.Items[j].Labels[secretsmanager.LabelKeyName]
	})
	return list.Items, nil
}
