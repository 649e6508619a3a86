package main

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func TestReadme_HasTheTableOfSettings(t *testing.T) {
	plugintest.Settings(t, new(settings))
}

func configure(nodes ...sdk.Node) (*action, error) {
	a := &action{}
	return a, a.Configure(nil, sdk.NewConfig("site", sdk.Node{Name: "config", IsBlock: true, Children: nodes})) //nolint:staticcheck // it is not used
}

func text(name, v string) sdk.Node { return sdk.Node{Name: name, Value: sdk.String(v)} }

func bucket(endpoint string) sdk.Node {
	return sdk.Node{Name: "bucket", IsBlock: true, Children: []sdk.Node{
		text("endpoint", endpoint), text("bucket", "b"), text("access_key", "a"), text("secret_key", "s"),
	}}
}

func TestConfigure_WhatIsWrong_IsSaid(t *testing.T) {
	dir := text("directory", t.TempDir())
	for want, nodes := range map[string][]sdk.Node{
		"set directory or a bucket block": nil,
		"and not both":                    {dir, bucket("https://s3.example.org")},
		"not an absolute path":            {text("directory", "archive")},
		`invalid address "s3"`:            {bucket("s3")},
		"cannot be restored from AUDITOR": {dir, text("schema", "auditor"), {Name: "remove_after_months", Value: sdk.Int(13)}},
		`invalid month "2024"`:            {dir, text("first", "2024")},
		"remove_after_months":             {dir, {Name: "remove_after_months", Value: sdk.Int(0)}},
		`"csv" is not allowed here`:       {dir, text("schema", "csv")},
	} {
		if _, err := configure(nodes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, where := range []sdk.Node{dir, bucket("https://s3.example.org:8443/")} {
		a, err := configure(where)
		if err != nil || a.config.first.String() != "1970-01" {
			t.Error(err, a.config.first)
		}
	}
}
