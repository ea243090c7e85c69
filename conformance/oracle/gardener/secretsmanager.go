package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sort"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	secretsutils "github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
)

const (
	secretsNamespace = "garden"
	secretsIdentity  = "gardener-operator"
)

// A credential is what a run generates, with its options.
type credential struct {
	Kind          string            `json:"kind"`
	Name          string            `json:"name"`
	CommonName    string            `json:"commonName"`
	Organizations []string          `json:"organizations"`
	Hosts         []string          `json:"hosts"`
	Server        bool              `json:"server"`
	Client        bool              `json:"client"`
	Unpublished   bool              `json:"unpublished"` // without the authority's certificate
	Validity      int64             `json:"validity"`    // seconds
	Provider      string            `json:"provider"`
	Username      string            `json:"username"`
	Length        int               `json:"length"`
	Users         []tokenUser       `json:"users"`
	Host          string            `json:"host"` // in a kubeconfig
	SignedBy      string            `json:"signedBy"`
	Use           string            `json:"use"` // the class of the signing authority
	Persist       bool              `json:"persist"`
	KeepOld       bool              `json:"keepOld"`
	IgnoreOld     bool              `json:"ignoreOld"`
	IgnoreAfter   int64             `json:"ignoreOldAfter"` // seconds
	RenewAt       int               `json:"renewAt"`
	Labels        map[string]string `json:"labels"`
}

type tokenUser struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups"`
}

// An edit is a change that somebody else makes before a run.
type edit struct {
	Edit   string  `json:"edit"`
	Of     string  `json:"of"`    // a config
	Which  string  `json:"which"` // "newest" or "oldest"
	Key    string  `json:"key"`
	Value  *string `json:"value"`
	Copies int     `json:"copies"`
}

// A secretsRun is one run of the manager.
type secretsRun struct {
	Now       time.Time            `json:"now"`
	Edits     []edit               `json:"edits"`
	Initiated map[string]time.Time `json:"initiated"`
	Generate  []credential         `json:"generate"`
	Cleanup   bool                 `json:"cleanup"`
}

// pool holds keys that are generated once: which key it is does not matter, only that each has its own.
var pool []*rsa.PrivateKey

// secretsManager runs the manager several times, and returns the Secrets after each run.
func secretsManager(input json.RawMessage) (any, error) {
	var in struct {
		Secrets []json.RawMessage `json:"secrets"`
		Runs    []secretsRun      `json:"runs"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	builder, err := builderOf(in.Secrets)
	if err != nil {
		return nil, err
	}
	cluster := builder.WithScheme(coreOnly).Build()
	restore := cheapKeys()
	defer restore()
	seen, runs := newSeen(), []any{}
	for number, run := range in.Runs {
		clock := testclock.NewFakeClock(run.Now)
		secretsutils.Clock = clock
		c := createdAt(cluster, metav1.NewTime(run.Now))
		if err := forget(c); err != nil {
			return nil, err
		}
		for _, each := range run.Edits {
			if err := each.apply(c); err != nil {
				return nil, err
			}
		}
		manager, step, failure := run.generate(c, clock, func(step int) error {
			return seen.scan(c, fmt.Sprintf("%d.%d", number, step))
		})
		if failure == nil && run.Cleanup {
			failure = manager.Cleanup(context.Background())
		}
		secrets, err := seen.secrets(c)
		if err != nil {
			return nil, err
		}
		found := map[string]any{"failed": failure != nil, "step": step, "secrets": secrets, "got": seen.got(manager, run)}
		if failure != nil {
			found["why"] = failure.Error()
		}
		runs = append(runs, found)
	}
	return map[string]any{"runs": runs}, nil
}

// cheapKeys replaces the generation of keys, and returns how to restore it.
func cheapKeys() func() {
	generate, clock, next := secretsutils.GenerateKey, secretsutils.Clock, 0
	secretsutils.GenerateKey = func(_ io.Reader, _ int) (*rsa.PrivateKey, error) {
		if next++; next > len(pool) {
			key, err := rsa.GenerateKey(rand.Reader, 1024)
			if err != nil {
				return nil, err
			}
			pool = append(pool, key)
		}
		return pool[next-1], nil
	}
	return func() { secretsutils.GenerateKey, secretsutils.Clock = generate, clock }
}

// createdAt returns a client that notes when objects are created, as an API server does.
func createdAt(cluster client.WithWatch, now metav1.Time) client.Client {
	return interceptor.NewClient(cluster, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			obj.SetCreationTimestamp(now)
			return c.Create(ctx, obj, opts...)
		},
	})
}

// generate starts a run, and generates one credential after another; it returns how many.
func (r secretsRun) generate(c client.Client, clock *testclock.FakeClock, after func(int) error) (secretsmanager.Interface, int, error) {
	ctx := context.Background()
	manager, err := secretsmanager.New(ctx, logr.Discard(), clock, c, secretsIdentity,
		secretsmanager.WithCASecretAutoRotation(),
		secretsmanager.WithNamespaces(secretsNamespace),
		secretsmanager.WithSecretNamesToTimes(r.Initiated))
	if err != nil {
		return nil, -1, err
	}
	for step, each := range r.Generate {
		_, failure := manager.Generate(ctx, each.config(manager), each.options()...)
		if err := after(step); err != nil {
			return nil, step, err
		}
		if failure != nil {
			return manager, step, failure
		}
	}
	return manager, len(r.Generate), nil
}

func (c credential) config(manager secretsmanager.Reader) secretsutils.ConfigInterface {
	switch c.Kind {
	case "authority":
		return &secretsutils.CertificateSecretConfig{Name: c.Name, CertType: secretsutils.CACert, Validity: c.lifetime()}
	case "certificate":
		return c.certificate()
	case "key":
		return &secretsutils.RSASecretConfig{Name: c.Name, Bits: 4096}
	case "encryption":
		return &secretsutils.ETCDEncryptionKeySecretConfig{Name: c.Name, Provider: c.Provider, SecretLength: 32}
	case "password":
		return &secretsutils.BasicAuthSecretConfig{Name: c.Name, Format: secretsutils.BasicAuthFormatNormal, Username: c.Username, PasswordLength: c.Length}
	case "tokens":
		tokens := map[string]secretsutils.TokenConfig{}
		for _, user := range c.Users {
			tokens[user.Name] = secretsutils.TokenConfig{Username: user.Name, UserID: user.Name, Groups: user.Groups}
		}
		return &secretsutils.StaticTokenSecretConfig{Name: c.Name, Tokens: tokens}
	}
	trusted := []byte{}
	if bundle, ok := manager.Get(c.SignedBy); ok {
		trusted = bundle.Data[secretsutils.DataKeyCertificateBundle]
	}
	if c.Kind == "client" {
		return &secretsutils.ControlPlaneSecretConfig{
			Name:                    c.Name,
			CertificateSecretConfig: c.certificate(),
			KubeConfigRequests:      []secretsutils.KubeConfigRequest{{ClusterName: secretsNamespace, APIServerHost: c.Host, CAData: trusted}},
		}
	}
	return &secretsutils.KubeconfigSecretConfig{
		Name:        c.Name,
		ContextName: secretsNamespace,
		Cluster:     clientcmdv1.Cluster{Server: "https://" + c.Host},
		AuthInfo:    clientcmdv1.AuthInfo{TokenFile: "/token"},
	}
}

func (c credential) certificate() *secretsutils.CertificateSecretConfig {
	config := &secretsutils.CertificateSecretConfig{
		Name:                        c.Name,
		CommonName:                  c.CommonName,
		Organization:                c.Organizations,
		CertType:                    secretsutils.ClientCert,
		Validity:                    c.lifetime(),
		SkipPublishingCACertificate: c.Unpublished,
	}
	switch {
	case c.Server && c.Client:
		config.CertType = secretsutils.ServerClientCert
	case c.Server:
		config.CertType = secretsutils.ServerCert
	}
	for _, host := range c.Hosts {
		if address := net.ParseIP(host); address != nil {
			config.IPAddresses = append(config.IPAddresses, address)
		} else {
			config.DNSNames = append(config.DNSNames, host)
		}
	}
	return config
}

func (c credential) lifetime() *time.Duration {
	if c.Validity == 0 {
		return nil
	}
	return new(time.Duration(c.Validity) * time.Second)
}

func (c credential) options() []secretsmanager.GenerateOption {
	found := []secretsmanager.GenerateOption{secretsmanager.WithLabels(c.Labels), secretsmanager.RenewAfterValidityPercentage(c.RenewAt)}
	if c.SignedBy != "" {
		classes := map[string][]secretsmanager.SignedByCAOption{"current": {secretsmanager.UseCurrentCA}, "old": {secretsmanager.UseOldCA}}
		found = append(found, secretsmanager.SignedByCA(c.SignedBy, classes[c.Use]...))
	} else if c.Kind != "authority" {
		found = append(found, secretsmanager.Validity(time.Duration(c.Validity)*time.Second))
	}
	if c.Persist {
		found = append(found, secretsmanager.Persist())
	}
	if c.IgnoreOld {
		found = append(found, secretsmanager.IgnoreOldSecrets())
	}
	if c.IgnoreAfter > 0 {
		found = append(found, secretsmanager.IgnoreOldSecretsAfter(time.Duration(c.IgnoreAfter)*time.Second))
	}
	if c.KeepOld {
		return append(found, secretsmanager.Rotate(secretsmanager.KeepOld))
	}
	return append(found, secretsmanager.Rotate(secretsmanager.InPlace))
}

// apply changes the newest or oldest Secret of a config, if there is one.
func (e edit) apply(c client.Client) error {
	ctx, list := context.Background(), &corev1.SecretList{}
	if err := c.List(ctx, list, client.InNamespace(secretsNamespace), client.MatchingLabels{
		secretsmanager.LabelKeyName:            e.Of,
		secretsmanager.LabelKeyManagedBy:       secretsmanager.LabelValueSecretsManager,
		secretsmanager.LabelKeyManagerIdentity: secretsIdentity,
	}); err != nil || len(list.Items) == 0 {
		return err
	}
	sort.SliceStable(list.Items, func(i, j int) bool {
		return list.Items[i].CreationTimestamp.Before(&list.Items[j].CreationTimestamp)
	})
	secret := &list.Items[0]
	if e.Which == "newest" {
		secret = &list.Items[len(list.Items)-1]
	}
	switch e.Edit {
	case "delete":
		return c.Delete(ctx, secret)
	case "release":
		secret.Immutable = nil
	case "label":
		delete(secret.Labels, e.Key)
		if e.Value != nil {
			secret.Labels[e.Key] = *e.Value
		}
	case "move":
		return move(ctx, c, secret, list.Items, e.Copies)
	default:
		return unanswered{fmt.Errorf("%s is not an edit", e.Edit)}
	}
	return c.Update(ctx, secret)
}

// move keeps the data of a Secret only in new ones, which the manager has to use instead.
func move(ctx context.Context, c client.Client, secret *corev1.Secret, all []corev1.Secret, copies int) error {
	for number := range copies {
		if err := c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("given-%s-%d", secret.Labels[secretsmanager.LabelKeyName], number),
			Namespace: secretsNamespace,
			Labels:    map[string]string{secretsmanager.LabelKeyUseDataForName: secret.Labels[secretsmanager.LabelKeyName]},
		}, Data: secret.Data}); err != nil {
			return err
		}
	}
	for index := range all {
		if err := c.Delete(ctx, &all[index]); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes the Secrets that were moved, as users do once their data is in use.
func forget(c client.Client) error {
	return c.DeleteAllOf(context.Background(), &corev1.Secret{}, client.InNamespace(secretsNamespace), client.HasLabels{secretsmanager.LabelKeyUseDataForName})
}
