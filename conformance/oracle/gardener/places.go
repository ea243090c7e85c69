package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/autoscaling/vpa"
	"github.com/gardener/gardener/pkg/component/crddeployer"
	"github.com/gardener/gardener/pkg/component/etcd/etcd"
	extensioncrds "github.com/gardener/gardener/pkg/component/extensions/crds"
	"github.com/gardener/gardener/pkg/component/gardener/resourcemanager"
	"github.com/gardener/gardener/pkg/component/networking/istio"
	"github.com/gardener/gardener/pkg/component/nodemanagement/machinecontrollermanager"
	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheusoperator"
	"github.com/gardener/gardener/pkg/component/shared"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	"github.com/gardener/gardener/pkg/utils/gardener/tokenrequest"
	secretsutils "github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
)

// placement is a question about one place.
type placement struct {
	Place      string    `json:"place"`
	Kubeconfig string    `json:"kubeconfig"` // of the administrator of the source cluster
	Version    string    `json:"version"`    // of Kubernetes there
	Image      string    `json:"image"`
	Server     string    `json:"server"` // host and port of the target cluster; empty if it is the source cluster
	Authority  authority `json:"authority"`
	Seconds    float64   `json:"seconds"` // after which the original's code is interrupted
}

// authority signs for servers and clients of the target cluster.
type authority struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// deployed names what was deployed.
type deployed struct {
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment"`
}

// placed is the place of a question, with what its constructors get.
type placed struct {
	place
	server  string
	client  client.Client
	secrets secretsmanager.Interface
	manager resourcemanager.Interface
}

// placeDeploy deploys a resource manager as the original does; it awaits what the original's deployment awaits.
func placeDeploy(input json.RawMessage) (any, error) {
	q, s, err := placedOf(input)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(context.Background(), q.Authority); err != nil {
		return nil, unanswered{fmt.Errorf("cannot prepare the cluster: %w", err)}
	}
	ctx, cancel := q.limited()
	defer cancel()
	deploy := s.manager.Deploy
	if !s.isRuntime {
		deploy = s.deployForTarget
	}
	err = again(ctx, deploy)
	name := s.manager.GetValues().NamePrefix + "gardener-resource-manager"
	return deployed{s.namespace, name}, err
}

// again repeats a step until it succeeds, as the original's reconcilers do. The first deployment in a cluster fails
// because its webhooks are registered before it serves them.
func again(ctx context.Context, step func(context.Context) error) error {
	for {
		err := step(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// placeWait waits for a deployed resource manager as the original does.
func placeWait(input json.RawMessage) (any, error) {
	q, s, err := placedOf(input)
	if err != nil {
		return nil, err
	}
	ctx, cancel := q.limited()
	defer cancel()
	return true, s.manager.Wait(ctx)
}

func (q placement) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Duration(q.Seconds*float64(time.Second)))
}

func placedOf(input json.RawMessage) (q placement, s placed, err error) {
	if err := decode(input, &q); err != nil {
		return q, s, err
	}
	found, ok := places[q.Place]
	if !ok {
		return q, s, unanswered{fmt.Errorf("unknown place %s", q.Place)}
	}
	if (q.Server != "") != found.hasTarget {
		return q, s, unanswered{fmt.Errorf("place %s has another number of clusters", q.Place)}
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(q.Kubeconfig))
	if err != nil {
		return q, s, unanswered{err}
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: kubernetes.SeedScheme})
	if err != nil {
		return q, s, unanswered{err}
	}
	version, err := semver.NewVersion(q.Version)
	if err != nil {
		return q, s, unanswered{err}
	}
	secrets, err := secretsmanager.New(context.Background(), logr.Discard(), clock.RealClock{}, c, found.identity,
		secretsmanager.WithNamespaces(found.namespace))
	if err != nil {
		return q, s, err
	}
	values := found.values()
	values.Image, values.RuntimeKubernetesVersion = q.Image, version
	constructor := shared.NewTargetGardenerResourceManager
	if found.isRuntime {
		constructor = shared.NewRuntimeGardenerResourceManager
	}
	manager, err := constructor(c, found.namespace, secrets, values)
	if err != nil {
		return q, s, err
	}
	if found.bootstraps {
		manager.SetBootstrapControlPlaneNode(true)
	}
	return q, placed{found, q.Server, c, secrets, manager}, nil
}

// prepare creates what other code of the original creates before a resource manager.
func (s placed) prepare(ctx context.Context, existing authority) error {
	if err := s.prepareDefinitions(ctx); err != nil {
		return err
	}
	if err := s.prepareNamespace(ctx); err != nil {
		return err
	}
	class := &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.manager.GetValues().PriorityClassName},
		Value:      999998400,
	}
	if err := client.IgnoreAlreadyExists(s.client.Create(ctx, class)); err != nil {
		return err
	}
	return s.prepareSecrets(ctx, existing)
}

func (s placed) prepareDefinitions(ctx context.Context) error {
	version := s.manager.GetValues().RuntimeKubernetesVersion
	machines, err1 := machinecontrollermanager.NewCRD(s.client)
	extensions, err2 := extensioncrds.NewCRD(s.client, true, true)
	etcds, err3 := etcd.NewCRD(s.client, version)
	gateways, err4 := istio.NewCRD(s.client)
	autoscalers, err5 := vpa.NewCRD(s.client, nil)
	monitors, err6 := prometheusoperator.NewCRDs(s.client)
	// Where a resource manager does not define ManagedResources itself, another one has done so.
	own, err7 := crddeployer.New(s.client, []string{resourcemanager.CRD}, false)
	for _, err := range []error{err1, err2, err3, err4, err5, err6, err7} {
		if err != nil {
			return err
		}
	}
	groups := []interface {
		Deploy(context.Context) error
		Wait(context.Context) error
	}{machines, extensions, etcds, gateways, autoscalers, monitors}
	if !s.isRuntime {
		groups = append(groups, own)
	}
	for _, group := range groups {
		if err := group.Deploy(ctx); err != nil {
			return err
		}
	}
	for _, group := range groups {
		if err := group.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s placed) prepareNamespace(ctx context.Context) error {
	if s.namespace == "garden" {
		return gardenerutils.ReconcileGardenNamespace(ctx, s.client, s.namespace, zones, true, nil)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := client.IgnoreAlreadyExists(s.client.Create(ctx, namespace)); err != nil {
		return err
	}
	before := client.MergeFrom(namespace.DeepCopy())
	metav1.SetMetaDataLabel(&namespace.ObjectMeta, "gardener.cloud/role", "shoot")
	metav1.SetMetaDataLabel(&namespace.ObjectMeta, "high-availability-config.resources.gardener.cloud/consider", "true")
	return s.client.Patch(ctx, namespace, before)
}

// prepareSecrets generates the authorities of the place. That of the target cluster exists already: the secrets manager
// adopts it, as it does for control planes that are restored.
func (s placed) prepareSecrets(ctx context.Context, existing authority) error {
	names := []string{s.manager.GetValues().SecretNameServerCA}
	if s.hasTarget {
		names = append(names, "ca", "ca-client")
	}
	for _, name := range names {
		if strings.HasPrefix(name, "ca-") && name != "ca-client" {
			continue // of the place alone
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name:      "existing-" + name,
				Namespace: s.namespace,
				Labels:    map[string]string{secretsmanager.LabelKeyUseDataForName: name},
			},
			Data: map[string][]byte{
				secretsutils.DataKeyCertificateCA: []byte(existing.Certificate),
				secretsutils.DataKeyPrivateKeyCA:  []byte(existing.Key),
			},
		}
		if err := client.IgnoreAlreadyExists(s.client.Create(ctx, secret)); err != nil {
			return err
		}
	}
	if err := s.generateAuthorities(ctx, names...); err != nil || !s.hasTarget {
		return err
	}
	_, err := tokenrequest.GenerateGenericTokenKubeconfig(ctx, s.secrets, s.namespace, "https://"+s.server)
	return err
}

func (s placed) generateAuthorities(ctx context.Context, names ...string) error {
	for _, name := range names {
		config := &secretsutils.CertificateSecretConfig{Name: name, CommonName: name, CertType: secretsutils.CACert}
		if _, err := s.secrets.Generate(ctx, config, secretsmanager.Persist(),
			secretsmanager.Rotate(secretsmanager.KeepOld)); err != nil {
			return err
		}
	}
	return nil
}

// deployForTarget deploys a resource manager that has to get its first token, and awaits it.
func (s placed) deployForTarget(ctx context.Context) error {
	replicas := func(context.Context) (int32, error) { return 2, nil }
	address := func() string { return s.server }
	return shared.DeployGardenerResourceManager(ctx, s.client, clock.RealClock{}, s.secrets, s.manager, s.namespace,
		replicas, address, !s.hasTarget)
}

// zones are those of the nodes in a seed with several zones, and of a garden.
var zones = []string{"local-a", "local-b", "local-c"}
