// A controller for volumes in EBS: a stand-in for kubernetes-sigs' aws-ebs-csi-driver, which cannot be had
// as a Go module. It creates, deletes, attaches and detaches volumes as the controllers of CSI ask, with the
// tags of the original, and takes those of its arguments and variables that this needs.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

const (
	name    = "ebs.csi.aws.com"
	version = "v1.0.0"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != "controller" {
		log.Fatal("the mode must be controller")
	}
	flags := flag.NewFlagSet("controller", flag.ExitOnError)
	endpoint := flags.String("endpoint", "", "the socket, such as unix:///csi.sock")
	cluster := flags.String("k8s-tag-cluster-id", "", "the cluster, for tags")
	for _, each := range []string{"v", "http-endpoint"} {
		flags.String(each, "", "has no effect")
	}
	for _, each := range []string{"logtostderr", "batching"} {
		flags.Bool(each, false, "has no effect")
	}
	if err := flags.Parse(os.Args[2:]); err != nil {
		log.Fatal(err)
	}
	settings, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	path := strings.TrimPrefix(*endpoint, "unix://")
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, identity{})
	csi.RegisterControllerServer(server, &controller{ec2: ec2.NewFromConfig(settings), cluster: *cluster})
	log.Fatal(server.Serve(listener))
}

type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: name, VendorVersion: version}, nil
}

func (identity) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	answer := &csi.GetPluginCapabilitiesResponse{}
	for _, each := range []csi.PluginCapability_Service_Type{
		csi.PluginCapability_Service_CONTROLLER_SERVICE,
		csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	} {
		service := &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: each}}
		answer.Capabilities = append(answer.Capabilities, &csi.PluginCapability{Type: service})
	}
	return answer, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}
