package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	route53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/aws/smithy-go/middleware"
	extensionsv1alpha1helper "github.com/gardener/gardener/pkg/api/extensions/v1alpha1/helper"
	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	awsclient "github.com/gardener/gardener-extension-provider-aws/pkg/aws/client"
)

// A recordSet is one of Route 53: values, or an alias.
type recordSet struct {
	Type   string   `json:"type"`
	TTL    int64    `json:"ttl"`
	Values []string `json:"values"`
	Alias  *alias   `json:"alias"`
}

type alias struct {
	Zone    string `json:"zone"`
	Name    string `json:"name"`
	Healthy bool   `json:"healthy"`
}

// dnsRecords returns the record sets that the extension writes for a DNSRecord, and those that are
// left of the live ones after its deletion.
func dnsRecords(input json.RawMessage) (any, error) {
	var in struct {
		Name   string      `json:"name"`
		Type   string      `json:"recordType"`
		Values []string    `json:"values"`
		TTL    *int64      `json:"ttl"`
		Stack  string      `json:"stack"`
		Live   []recordSet `json:"live"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	ttl, stack := extensionsv1alpha1helper.GetDNSRecordTTL(in.TTL), awsclient.IPStack(in.Stack)
	created, client := (&hostedZone{name: in.Name}).client()
	if err := client.CreateOrUpdateDNSRecordSet(context.Background(), "Z1", in.Name, in.Type, in.Values, ttl, stack); err != nil {
		return nil, err
	}
	left, client := (&hostedZone{name: in.Name, records: in.Live}).client()
	if err := client.DeleteDNSRecordSet(context.Background(), "Z1", in.Name, in.Type, in.Values, ttl, stack); err != nil {
		return nil, err
	}
	return map[string]any{"created": created.records, "left": left.records}, nil
}

// A hostedZone answers requests with the records of one name, as Route 53 would.
type hostedZone struct {
	name    string
	records []recordSet
}

// client returns the zone, and the extension's client for it.
func (z *hostedZone) client() (*hostedZone, *awsclient.Client) {
	if z.records == nil {
		z.records = []recordSet{}
	}
	answer := middleware.InitializeMiddlewareFunc("hosted zone", z.answer)
	options := route53.Options{Region: "eu-west-1", Retryer: aws.NopRetryer{}}
	options.APIOptions = append(options.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(answer, middleware.Before)
	})
	return z, &awsclient.Client{
		Route53:                       *route53.New(options),
		Route53RateLimiter:            rate.NewLimiter(rate.Inf, 0),
		Route53RateLimiterWaitTimeout: time.Second,
		Logger:                        logr.Discard(),
	}
}

func (z *hostedZone) answer(
	_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler,
) (out middleware.InitializeOutput, _ middleware.Metadata, err error) {
	switch request := in.Parameters.(type) {
	case *route53.ListResourceRecordSetsInput:
		out.Result = &route53.ListResourceRecordSetsOutput{ResourceRecordSets: z.list(request)}
	case *route53.ChangeResourceRecordSetsInput:
		out.Result, err = &route53.ChangeResourceRecordSetsOutput{}, z.change(request.ChangeBatch)
	default:
		panic("an unexpected request")
	}
	return out, middleware.Metadata{}, err
}

// list returns the records from the requested type on; the zone keeps them in the order of types.
func (z *hostedZone) list(request *route53.ListResourceRecordSetsInput) []route53types.ResourceRecordSet {
	var found []route53types.ResourceRecordSet
	for _, each := range z.records {
		if each.Type >= string(request.StartRecordType) && len(found) < int(aws.ToInt32(request.MaxItems)) {
			found = append(found, z.described(each))
		}
	}
	return found
}

func (z *hostedZone) change(batch *route53types.ChangeBatch) error {
	records := append([]recordSet{}, z.records...)
	for _, change := range batch.Changes {
		changed := observed(change.ResourceRecordSet)
		if change.Action != route53types.ChangeActionDelete {
			records = append(records, changed)
			continue
		}
		place := -1
		for index, each := range records {
			if equal(each, changed) {
				place = index
			}
		}
		if place < 0 {
			return &route53types.InvalidChangeBatch{Messages: []string{"Tried to delete a record, but it was not found"}}
		}
		records = append(records[:place], records[place+1:]...)
	}
	z.records = records
	return nil
}

func (z *hostedZone) described(record recordSet) route53types.ResourceRecordSet {
	name := strings.Replace(z.name, "*", "\\052", 1) + "."
	found := route53types.ResourceRecordSet{Name: &name, Type: route53types.RRType(record.Type)}
	if record.Alias != nil {
		found.AliasTarget = &route53types.AliasTarget{
			HostedZoneId:         &record.Alias.Zone,
			DNSName:              aws.String(record.Alias.Name + "."),
			EvaluateTargetHealth: record.Alias.Healthy,
		}
		return found
	}
	found.TTL = &record.TTL
	for _, value := range record.Values {
		found.ResourceRecords = append(found.ResourceRecords, route53types.ResourceRecord{Value: &value})
	}
	return found
}

func observed(record *route53types.ResourceRecordSet) recordSet {
	found := recordSet{Type: string(record.Type), TTL: aws.ToInt64(record.TTL), Values: []string{}}
	if target := record.AliasTarget; target != nil {
		name := strings.TrimSuffix(aws.ToString(target.DNSName), ".")
		found.Alias = &alias{aws.ToString(target.HostedZoneId), name, target.EvaluateTargetHealth}
	}
	for _, each := range record.ResourceRecords {
		found.Values = append(found.Values, aws.ToString(each.Value))
	}
	return found
}

// equal returns whether two record sets are the same; the order of values is irrelevant.
func equal(one, other recordSet) bool {
	if one.Type != other.Type || one.TTL != other.TTL || len(one.Values) != len(other.Values) {
		return false
	}
	for _, value := range one.Values {
		if !strings.Contains("\n"+strings.Join(other.Values, "\n")+"\n", "\n"+value+"\n") {
			return false
		}
	}
	if one.Alias == nil || other.Alias == nil {
		return one.Alias == other.Alias
	}
	return *one.Alias == *other.Alias
}
