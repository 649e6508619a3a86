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

func texts(name string, v ...string) sdk.Node { return sdk.Node{Name: name, Value: sdk.Strings(v...)} }

func TestConfigure_WhatIsWrong_IsSaid(t *testing.T) {
	url := text("url", "https://ch1.example.org:8443")
	for want, nodes := range map[string][]sdk.Node{
		"invalid URL":                         {text("url", "ch1:8443")},
		"the URL has a user":                  {text("url", "https://bursar:secret@ch1")},
		"http to another machine":             {text("url", "http://ch1:8123")},
		`unknown time zone "Mars"`:            {url, text("zone", "Mars")},
		`invalid name "a-b"`:                  {url, text("database", "a-b")},
		`invalid column "a b"`:                {url, texts("dimensions", "a b")},
		`the column "site" already exists`:    {url, texts("dimensions", "site")},
		`the column "records" already exists`: {url, texts("components", "Cores", "records")},
		`missing "Cores"`:                     {url, texts("components", "TotalCPU")},
		"ch1.example.org:8443 is given more":  {url, texts("replicas", "https://ch2.example.org:8443", "https://ch1.example.org:8443")},
		"invalid replicas; http to another":   {url, texts("replicas", "https://ch2.example.org:8443", "http://ch3.example.org:8123")},
		`invalid path "clickhouse"`:           {url, text("keeper_path", "clickhouse")},
		`invalid path "/a'b"`:                 {url, text("keeper_path", "/a'b")},
		`all shards would have the path "/a"`: {url, texts("replicas", "https://ch2"), text("keeper_path", "/a"), text("cluster", "shards")},
		"batch":                               {url, {Name: "batch", Value: sdk.Int(0)}},
		"at most 32":                          {url, texts("components", strings.Split(strings.Repeat("Cores,", 33), ",")...)},
	} {
		if _, err := configure(nodes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, u := range []string{"https://ch1.example.org:8443/", "http://127.0.0.1:8123", "http://[::1]:8123", "http://localhost"} {
		if _, err := configure(text("url", u)); err != nil {
			t.Error(u, err)
		}
	}
}
