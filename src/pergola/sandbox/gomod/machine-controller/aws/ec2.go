package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	apiVersion = "2016-11-15"
	timeout    = 30 * time.Second
)

// ec2 is AWS's query API with three calls. Its SDK has 600, which take minutes to compile.
type ec2 struct {
	endpoint, region string
	credentials      aws.Credentials
	http             http.Client
}

type instance struct {
	ID       string `xml:"instanceId"`
	NodeName string `xml:"privateDnsName"`
	Tags     []struct {
		Key   string `xml:"key"`
		Value string `xml:"value"`
	} `xml:"tagSet>item"`
}

type runInstances struct {
	Instances []instance `xml:"instancesSet>item"`
}

type describeInstances struct {
	Reservations []runInstances `xml:"reservationSet>item"`
	NextToken    string         `xml:"nextToken"`
}

type apiError struct {
	Code    string `xml:"Errors>Error>Code"`
	Message string `xml:"Errors>Error>Message"`
}

func (e *apiError) Error() string {
	return e.Code + ": " + e.Message
}

// newEC2 returns a client for AWS, or for the endpoint that AWS_ENDPOINT_URL names.
func newEC2(region, key, password string) *ec2 {
	endpoint := os.Getenv("AWS_ENDPOINT_URL")
	if endpoint == "" {
		endpoint = fmt.Sprintf("https://ec2.%s.amazonaws.com/", region)
	}
	return &ec2{
		endpoint:    endpoint,
		region:      region,
		credentials: aws.Credentials{AccessKeyID: key, SecretAccessKey: password},
		http:        http.Client{Timeout: timeout},
	}
}

// call sends an action, and decodes the answer unless it is not wanted.
func (c *ec2) call(ctx context.Context, action string, parameters url.Values, answer any) error {
	parameters.Set("Action", action)
	parameters.Set("Version", apiVersion)
	body := parameters.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	digest := sha256.Sum256([]byte(body))
	err = v4.NewSigner().SignHTTP(ctx, c.credentials, request, hex.EncodeToString(digest[:]), "ec2", c.region, time.Now())
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		failure := &apiError{}
		if err := xml.Unmarshal(content, failure); err != nil || failure.Code == "" {
			return fmt.Errorf("%s: HTTP %d", action, response.StatusCode)
		}
		return failure
	}
	if answer == nil {
		return nil
	}
	return xml.Unmarshal(content, answer)
}

func (i instance) tag(key string) string {
	for _, each := range i.Tags {
		if each.Key == key {
			return each.Value
		}
	}
	return ""
}
