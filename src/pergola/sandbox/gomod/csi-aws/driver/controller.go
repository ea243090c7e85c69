package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	zone       = "topology.ebs.csi.aws.com/zone"
	device     = "/dev/xvdaa"
	gib        = 1 << 30
	volumeName = "CSIVolumeName"
)

var detached = map[string]bool{
	"IncorrectState": true, "InvalidAttachment.NotFound": true, "InvalidVolume.NotFound": true,
}

// controller creates volumes with the name that the request has, so that a repeated request finds its volume.
type controller struct {
	csi.UnimplementedControllerServer
	ec2     *ec2.Client
	cluster string
}

func (c *controller) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, each := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
	} {
		rpc := &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: each}}
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{Type: rpc})
	}
	return answer, nil
}

func (c *controller) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	found, err := c.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{
		Filters: []types.Filter{{Name: aws.String("tag:" + volumeName), Values: []string{request.Name}}},
	})
	if err != nil {
		return nil, failed(err)
	}
	if len(found.Volumes) > 0 {
		volume := found.Volumes[0]
		return created(*volume.VolumeId, *volume.AvailabilityZone, int64(*volume.Size)*gib), nil
	}
	place := zoneOf(request.GetAccessibilityRequirements())
	if place == "" {
		return nil, status.Error(codes.InvalidArgument, "no zone is requested")
	}
	size := int32((request.GetCapacityRange().GetRequiredBytes() + gib - 1) / gib)
	input := &ec2.CreateVolumeInput{
		AvailabilityZone:  aws.String(place),
		Size:              aws.Int32(size),
		VolumeType:        types.VolumeType(request.Parameters["type"]),
		Encrypted:         aws.Bool(request.Parameters["encrypted"] == "true"),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeVolume, Tags: c.tags(request)}},
	}
	volume, err := c.ec2.CreateVolume(ctx, input)
	if err != nil {
		return nil, failed(err)
	}
	return created(*volume.VolumeId, place, int64(size)*gib), nil
}

func (c *controller) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	_, err := c.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: aws.String(request.VolumeId)})
	if err != nil && code(err) != "InvalidVolume.NotFound" {
		return nil, failed(err)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (c *controller) ControllerPublishVolume(
	ctx context.Context, request *csi.ControllerPublishVolumeRequest,
) (*csi.ControllerPublishVolumeResponse, error) {
	answer := &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"devicePath": device}}
	_, err := c.ec2.AttachVolume(ctx, &ec2.AttachVolumeInput{
		Device:     aws.String(device),
		InstanceId: aws.String(request.NodeId),
		VolumeId:   aws.String(request.VolumeId),
	})
	if err != nil && code(err) != "VolumeInUse" {
		return nil, failed(err)
	}
	return answer, nil
}

func (c *controller) ControllerUnpublishVolume(
	ctx context.Context, request *csi.ControllerUnpublishVolumeRequest,
) (*csi.ControllerUnpublishVolumeResponse, error) {
	_, err := c.ec2.DetachVolume(ctx, &ec2.DetachVolumeInput{
		InstanceId: aws.String(request.NodeId),
		VolumeId:   aws.String(request.VolumeId),
	})
	if err != nil && !detached[code(err)] {
		return nil, failed(err)
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

// tags returns those of the original: the cluster, and what the volume is for.
func (c *controller) tags(request *csi.CreateVolumeRequest) []types.Tag {
	pairs := map[string]string{
		volumeName:                           request.Name,
		name + "/cluster":                    "true",
		"KubernetesCluster":                  c.cluster,
		"Name":                               c.cluster + "-dynamic-" + request.Name,
		"kubernetes.io/cluster/" + c.cluster: "owned",
	}
	for parameter, tag := range map[string]string{
		"csi.storage.k8s.io/pv/name":       "kubernetes.io/created-for/pv/name",
		"csi.storage.k8s.io/pvc/name":      "kubernetes.io/created-for/pvc/name",
		"csi.storage.k8s.io/pvc/namespace": "kubernetes.io/created-for/pvc/namespace",
	} {
		if value := request.Parameters[parameter]; value != "" {
			pairs[tag] = value
		}
	}
	var tags []types.Tag
	for key, value := range pairs {
		tags = append(tags, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	return tags
}

func created(id, place string, size int64) *csi.CreateVolumeResponse {
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId:           id,
		CapacityBytes:      size,
		AccessibleTopology: []*csi.Topology{{Segments: map[string]string{zone: place}}},
	}}
}

func zoneOf(requirements *csi.TopologyRequirement) string {
	for _, each := range append(requirements.GetPreferred(), requirements.GetRequisite()...) {
		if place := each.GetSegments()[zone]; place != "" {
			return place
		}
	}
	return ""
}

// code returns the code of an error of AWS, or none.
func code(err error) string {
	var failure smithy.APIError
	if errors.As(err, &failure) {
		return failure.ErrorCode()
	}
	return ""
}

func failed(err error) error {
	return status.Error(codes.Internal, err.Error())
}
