// Package api stands in for the types of machine-controller-manager's driver for AWS.
//
// It declares anew the types that the extension fills in, because Go's module proxy does not serve
// the driver. Names and kinds of fields are those that the extension's code needs to compile; JSON
// names are those of the driver, by which MachineClasses are known.
package api

// AWSProviderSpec is what the driver reads of a MachineClass.
type AWSProviderSpec struct {
	AMI                       string                            `json:"ami,omitempty"`
	BlockDevices              []AWSBlockDeviceMappingSpec       `json:"blockDevices,omitempty"`
	CapacityReservationTarget *AWSCapacityReservationTargetSpec `json:"capacityReservation,omitempty"`
	CPUOptions                *CPUOptions                       `json:"cpuOptions,omitempty"`
	IAM                       AWSIAMProfileSpec                 `json:"iam,omitempty"`
	InstanceMarketOptions     *AWSInstanceMarketOptions         `json:"instanceMarketOptions,omitempty"`
	InstanceMetadataOptions   *InstanceMetadataOptions          `json:"instanceMetadataOptions,omitempty"`
	KeyName                   *string                           `json:"keyName,omitempty"`
	MachineType               string                            `json:"machineType,omitempty"`
	NetworkInterfaces         []AWSNetworkInterfaceSpec         `json:"networkInterfaces,omitempty"`
	Placement                 *AWSPlacementSpec                 `json:"placement,omitempty"`
	Region                    string                            `json:"region,omitempty"`
	SrcAndDstChecksEnabled    *bool                             `json:"srcAndDstChecksEnabled,omitempty"`
	Tags                      map[string]string                 `json:"tags,omitempty"`
}

// AWSBlockDeviceMappingSpec is a volume and its device.
type AWSBlockDeviceMappingSpec struct {
	DeviceName string                `json:"deviceName,omitempty"`
	Ebs        AWSEbsBlockDeviceSpec `json:"ebs,omitempty"`
}

// AWSEbsBlockDeviceSpec is a volume.
type AWSEbsBlockDeviceSpec struct {
	DeleteOnTermination *bool   `json:"deleteOnTermination,omitempty"`
	Encrypted           bool    `json:"encrypted,omitempty"`
	Iops                int32   `json:"iops,omitempty"`
	SnapshotID          *string `json:"snapshotID,omitempty"`
	Throughput          *int32  `json:"throughput,omitempty"`
	VolumeSize          int32   `json:"volumeSize,omitempty"`
	VolumeType          string  `json:"volumeType,omitempty"`
}

// AWSCapacityReservationTargetSpec is the reservation from which machines are started.
type AWSCapacityReservationTargetSpec struct {
	CapacityReservationPreference       string  `json:"capacityReservationPreference,omitempty"`
	CapacityReservationID               *string `json:"capacityReservationId,omitempty"`
	CapacityReservationResourceGroupArn *string `json:"capacityReservationResourceGroupArn,omitempty"`
}

// CPUOptions is the processor; its counts are written even if they are absent.
type CPUOptions struct {
	AmdSevSnp      *string `json:"amdSevSnp,omitempty"`
	CoreCount      *int32  `json:"coreCount"`
	ThreadsPerCore *int32  `json:"threadsPerCore"`
}

// AWSIAMProfileSpec is the instance profile.
type AWSIAMProfileSpec struct {
	ARN  string `json:"arn,omitempty"`
	Name string `json:"name,omitempty"`
}

// AWSInstanceMarketOptions is the market on which machines are bought.
type AWSInstanceMarketOptions struct {
	MarketType string `json:"marketType,omitempty"`
}

// InstanceMetadataOptions is the access to the metadata of machines.
type InstanceMetadataOptions struct {
	HTTPProtocolIPv6        string `json:"httpProtocolIpv6,omitempty"`
	HTTPPutResponseHopLimit *int32 `json:"httpPutResponseHopLimit,omitempty"`
	HTTPTokens              string `json:"httpTokens,omitempty"`
}

// AWSNetworkInterfaceSpec is a network interface.
type AWSNetworkInterfaceSpec struct {
	AssociatePublicIPAddress *bool    `json:"associatePublicIPAddress,omitempty"`
	DeleteOnTermination      *bool    `json:"deleteOnTermination,omitempty"`
	Description              *string  `json:"description,omitempty"`
	DeviceIndex              *int32   `json:"deviceIndex,omitempty"`
	InterfaceType            *string  `json:"interfaceType,omitempty"`
	Ipv6AddressCount         *int32   `json:"ipv6AddressCount,omitempty"`
	Ipv6PrefixCount          *int32   `json:"ipv6PrefixCount,omitempty"`
	NetworkCardIndex         *int32   `json:"networkCardIndex,omitempty"`
	SecurityGroupIDs         []string `json:"securityGroupIDs,omitempty"`
	SubnetID                 string   `json:"subnetID,omitempty"`
}

// AWSPlacementSpec is the hardware on which machines are started.
type AWSPlacementSpec struct {
	Affinity        *string `json:"affinity,omitempty"`
	GroupID         *string `json:"groupId,omitempty"`
	HostID          *string `json:"hostId,omitempty"`
	PartitionNumber *int32  `json:"partitionNumber,omitempty"`
	Tenancy         *string `json:"tenancy,omitempty"`
}
