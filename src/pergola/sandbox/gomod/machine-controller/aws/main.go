// A machine controller for AWS: a stand-in for gardener's machine-controller-manager-provider-aws, which
// cannot be had as a Go module. It starts, finds and terminates instances as a MachineClass says, on
// machine-controller-manager's own library.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	_ "github.com/gardener/machine-controller-manager/pkg/util/client/metrics/prometheus"
	_ "github.com/gardener/machine-controller-manager/pkg/util/reflector/prometheus"
	_ "github.com/gardener/machine-controller-manager/pkg/util/workqueue/prometheus"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
)

const nameTag = "Name"

// providerSpec is what this driver reads of a MachineClass's providerSpec.
type providerSpec struct {
	AMI               string            `json:"ami"`
	Region            string            `json:"region"`
	MachineType       string            `json:"machineType"`
	KeyName           *string           `json:"keyName"`
	IAM               iam               `json:"iam"`
	Tags              map[string]string `json:"tags"`
	BlockDevices      []blockDevice     `json:"blockDevices"`
	NetworkInterfaces []struct {
		SubnetID         string   `json:"subnetID"`
		SecurityGroupIDs []string `json:"securityGroupIDs"`
		DeviceIndex      *int32   `json:"deviceIndex"`
		NetworkCardIndex *int32   `json:"networkCardIndex"`
	} `json:"networkInterfaces"`
	Placement *struct {
		Tenancy *string `json:"tenancy"`
	} `json:"placement"`
}

type iam struct {
	Name string `json:"name"`
	ARN  string `json:"arn"`
}

type blockDevice struct {
	DeviceName string `json:"deviceName"`
	Ebs        struct {
		VolumeSize int32  `json:"volumeSize"`
		VolumeType string `json:"volumeType"`
		Encrypted  *bool  `json:"encrypted"`
	} `json:"ebs"`
}

type machines struct{}

func main() {
	server := options.NewMCServer()
	server.AddFlags(pflag.CommandLine)
	flag.InitFlags()
	logs.InitLogs()
	defer logs.FlushLogs()
	if err := app.Run(server, &machines{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// CreateMachine starts an instance, unless there is one for the machine.
func (m *machines) CreateMachine(ctx context.Context, request *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	spec, client, err := connect(ctx, request.MachineClass, request.Secret)
	if err != nil {
		return nil, err
	}
	found, err := find(ctx, client, spec, request.Machine.Name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		started := runInstances{}
		if err := client.call(ctx, "RunInstances", instances(spec, request), &started); err != nil {
			return nil, explained(err)
		}
		found = started.Instances
	}
	return &driver.CreateMachineResponse{ProviderID: providerID(spec, found[0]), NodeName: found[0].NodeName}, nil
}

// InitializeMachine has nothing to do.
func (m *machines) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "nothing to initialize")
}

// DeleteMachine terminates the instances of a machine, if there are any.
func (m *machines) DeleteMachine(ctx context.Context, request *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	spec, client, err := connect(ctx, request.MachineClass, request.Secret)
	if err != nil {
		return nil, err
	}
	found, err := find(ctx, client, spec, request.Machine.Name)
	if err != nil {
		return nil, err
	}
	for _, instance := range found {
		parameters := url.Values{"InstanceId.1": {instance.ID}}
		if err := client.call(ctx, "TerminateInstances", parameters, nil); err != nil {
			return nil, explained(err)
		}
	}
	return &driver.DeleteMachineResponse{}, nil
}

// GetMachineStatus returns the instance of a machine.
func (m *machines) GetMachineStatus(ctx context.Context, request *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	spec, client, err := connect(ctx, request.MachineClass, request.Secret)
	if err != nil {
		return nil, err
	}
	found, err := find(ctx, client, spec, request.Machine.Name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, status.Error(codes.NotFound, "no instance of machine "+request.Machine.Name)
	}
	return &driver.GetMachineStatusResponse{ProviderID: providerID(spec, found[0]), NodeName: found[0].NodeName}, nil
}

// ListMachines returns the names of all instances that a MachineClass may have started, by their ID.
func (m *machines) ListMachines(ctx context.Context, request *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	spec, client, err := connect(ctx, request.MachineClass, request.Secret)
	if err != nil {
		return nil, err
	}
	found, err := find(ctx, client, spec, "")
	if err != nil {
		return nil, err
	}
	list := map[string]string{}
	for _, instance := range found {
		list[providerID(spec, instance)] = instance.tag(nameTag)
	}
	return &driver.ListMachinesResponse{MachineList: list}, nil
}

// GetVolumeIDs returns the IDs of volumes of the EBS driver.
func (m *machines) GetVolumeIDs(_ context.Context, request *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	names := []string{}
	for _, spec := range request.PVSpecs {
		if spec.CSI != nil && spec.CSI.Driver == "ebs.csi.aws.com" {
			names = append(names, spec.CSI.VolumeHandle)
		}
	}
	return &driver.GetVolumeIDsResponse{VolumeIDs: names}, nil
}

func connect(_ context.Context, class *v1alpha1.MachineClass, secret *corev1.Secret) (*providerSpec, *ec2, error) {
	spec := &providerSpec{}
	if err := json.Unmarshal(class.ProviderSpec.Raw, spec); err != nil {
		return nil, nil, status.Error(codes.InvalidArgument, "providerSpec: "+err.Error())
	}
	key, password := value(secret, "accessKeyID", "providerAccessKeyId"), value(secret, "secretAccessKey", "providerSecretAccessKey")
	if key == "" || password == "" {
		return nil, nil, status.Error(codes.InvalidArgument, "the Secret has no accessKeyID or no secretAccessKey")
	}
	return spec, newEC2(spec.Region, key, password), nil
}

func value(secret *corev1.Secret, keys ...string) string {
	for _, key := range keys {
		if found := strings.TrimSpace(string(secret.Data[key])); found != "" {
			return found
		}
	}
	return ""
}

// find returns the living instances of a machine, or of all machines without a name.
func find(ctx context.Context, client *ec2, spec *providerSpec, machine string) ([]instance, error) {
	filters := [][]string{{"instance-state-name", "pending", "running", "stopping", "stopped"}}
	for key, text := range spec.Tags {
		if strings.HasPrefix(key, "kubernetes.io/cluster/") {
			filters = append(filters, []string{"tag:" + key, text})
		}
	}
	if machine != "" {
		filters = append(filters, []string{"tag:" + nameTag, machine})
	}
	parameters := url.Values{}
	for index, filter := range filters {
		prefix := fmt.Sprintf("Filter.%d.", index+1)
		parameters.Set(prefix+"Name", filter[0])
		for number, text := range filter[1:] {
			parameters.Set(fmt.Sprintf("%sValue.%d", prefix, number+1), text)
		}
	}
	found := []instance{}
	for {
		page := describeInstances{}
		if err := client.call(ctx, "DescribeInstances", parameters, &page); err != nil {
			return nil, explained(err)
		}
		for _, reservation := range page.Reservations {
			found = append(found, reservation.Instances...)
		}
		if page.NextToken == "" {
			return found, nil
		}
		parameters.Set("NextToken", page.NextToken)
	}
}

// instances returns the parameters of RunInstances.
func instances(spec *providerSpec, request *driver.CreateMachineRequest) url.Values {
	parameters := url.Values{
		"ImageId":                         {spec.AMI},
		"InstanceType":                    {spec.MachineType},
		"MinCount":                        {"1"},
		"MaxCount":                        {"1"},
		"ClientToken":                     {string(request.Machine.UID)},
		"UserData":                        {base64.StdEncoding.EncodeToString(request.Secret.Data["userData"])},
		"TagSpecification.1.ResourceType": {"instance"},
		"TagSpecification.1.Tag.1.Key":    {nameTag},
		"TagSpecification.1.Tag.1.Value":  {request.Machine.Name},
	}
	number := 1
	for key, text := range spec.Tags {
		number++
		parameters.Set(fmt.Sprintf("TagSpecification.1.Tag.%d.Key", number), key)
		parameters.Set(fmt.Sprintf("TagSpecification.1.Tag.%d.Value", number), text)
	}
	if spec.KeyName != nil {
		parameters.Set("KeyName", *spec.KeyName)
	}
	if spec.IAM.Name != "" {
		parameters.Set("IamInstanceProfile.Name", spec.IAM.Name)
	} else if spec.IAM.ARN != "" {
		parameters.Set("IamInstanceProfile.Arn", spec.IAM.ARN)
	}
	for index, each := range spec.NetworkInterfaces {
		prefix := fmt.Sprintf("NetworkInterface.%d.", index+1)
		device := index
		if each.DeviceIndex != nil {
			device = int(*each.DeviceIndex)
		}
		parameters.Set(prefix+"DeviceIndex", strconv.Itoa(device))
		parameters.Set(prefix+"SubnetId", each.SubnetID)
		parameters.Set(prefix+"DeleteOnTermination", "true")
		for number, group := range each.SecurityGroupIDs {
			parameters.Set(fmt.Sprintf("%sSecurityGroupId.%d", prefix, number+1), group)
		}
		if each.NetworkCardIndex != nil {
			parameters.Set(prefix+"NetworkCardIndex", strconv.Itoa(int(*each.NetworkCardIndex)))
		}
	}
	for index, each := range spec.BlockDevices {
		prefix := fmt.Sprintf("BlockDeviceMapping.%d.", index+1)
		name := each.DeviceName
		if name == "" || name == "/root" {
			name = "/dev/xvda"
		}
		parameters.Set(prefix+"DeviceName", name)
		parameters.Set(prefix+"Ebs.VolumeSize", strconv.Itoa(int(each.Ebs.VolumeSize)))
		parameters.Set(prefix+"Ebs.DeleteOnTermination", "true")
		if each.Ebs.VolumeType != "" {
			parameters.Set(prefix+"Ebs.VolumeType", each.Ebs.VolumeType)
		}
		if each.Ebs.Encrypted != nil {
			parameters.Set(prefix+"Ebs.Encrypted", strconv.FormatBool(*each.Ebs.Encrypted))
		}
	}
	if spec.Placement != nil && spec.Placement.Tenancy != nil {
		parameters.Set("Placement.Tenancy", *spec.Placement.Tenancy)
	}
	return parameters
}

func providerID(spec *providerSpec, found instance) string {
	return fmt.Sprintf("aws:///%s/%s", spec.Region, found.ID)
}

// explained gives an error of AWS the code by which machine-controller-manager decides when to try again.
func explained(err error) error {
	failure, ok := err.(*apiError)
	if !ok {
		return status.Error(codes.Unavailable, err.Error())
	}
	switch failure.Code {
	case "InsufficientInstanceCapacity", "InstanceLimitExceeded", "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", "InsufficientFreeAddressesInSubnet":
		return status.Error(codes.ResourceExhausted, err.Error())
	case "UnauthorizedOperation", "AuthFailure":
		return status.Error(codes.PermissionDenied, err.Error())
	default:
		return status.Error(codes.Internal, err.Error())
	}
}
