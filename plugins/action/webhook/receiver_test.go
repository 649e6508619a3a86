package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

const secret = "0123456789abcdef0123456789abcdef"

func attribute(name string, v sdk.Value) sdk.Node { return sdk.Node{Name: name, Value: v} }

func text(name, v string) sdk.Node { return attribute(name, sdk.String(v)) }

func hidden(name, v string) sdk.Node {
	return sdk.Node{Name: name, Value: sdk.String(v), Sensitive: true}
}

func headers(m map[string]string) sdk.Node { return attribute("headers", sdk.StringMap(m)) }

func tlsBlock(nodes ...sdk.Node) sdk.Node {
	return sdk.Node{Name: "tls", IsBlock: true, Children: nodes}
}

// configured is an action with attributes and blocks beside input and a secret.
func configured(nodes ...sdk.Node) (*action, error) {
	a := new(action)
	nodes = append(nodes, text("input", "changes"), attribute("secret", sdk.Strings(secret)))
	return a, a.Configure(context.Background(), sdk.NewConfig("test", sdk.Node{Name: "config", IsBlock: true, Children: nodes}))
}

func TestWhatIsWrongWithTheConfigurationIsTold(t *testing.T) {
	good := text("url", "https://example.org/x")
	for want, nodes := range map[string][]sdk.Node{
		"url must be set":                  {},
		"it is not a URL such as":          {text("url", "example.org/x")},
		"not a URL such as":                {text("url", "ftp://example.org/x")},
		"it has a user name in it":         {text("url", "https://me:secret@example.org/")},
		"behind # is not sent":             {text("url", "https://example.org/#x")},
		"allow_plain = true where":         {text("url", "http://example.org/")},
		`did you mean "POST"?`:             {good, text("method", "POT")},
		"must be between 1s and":           {good, text("timeout", "11m")},
		"there is a secret":                {good, attribute("unsigned", sdk.Bool(true))},
		"Host is set by this action":       {good, headers(map[string]string{"host": "x"})},
		"Idempotency-Key is set by this":   {good, headers(map[string]string{"idempotency-key": "x"})},
		`"X Y" is not the name`:            {good, headers(map[string]string{"X Y": "x"})},
		"the value of X has a line break":  {good, headers(map[string]string{"X": "a\r\nb: c"})},
		"X-A given more than once":         {good, headers(map[string]string{"x-a": "1", "X-A": "2"})},
		"a URL such as \"http://proxy":     {good, text("proxy", "proxy:3128")},
		"which needs no proxy":             {text("url", "http://localhost/"), text("proxy", "http://proxy:3128")},
		"is both, cert and key":            {good, tlsBlock(text("cert", "/x.pem"))},
		`"x.pem" is not an absolute path`:  {good, tlsBlock(text("ca", "x.pem"))},
		"/nowhere/x.pem: no such file":     {good, tlsBlock(text("ca", "/nowhere/x.pem"))},
		"client certificate /nowhere/x":    {good, tlsBlock(text("cert", "/nowhere/x"), text("key", "/nowhere/y"))},
		"a URL with http has no TLS":       {text("url", "http://localhost/"), tlsBlock(text("ca", "/x"))},
		`did you mean "headers"?`:          {good, text("header", "x")},
		"says no time; expected window, o": {good, sdk.Node{Name: "usage", IsBlock: true}},
	} {
		if _, err := configured(nodes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestTheREADMEHasTheTableOfTheSettings(t *testing.T) {
	plugintest.Settings(t, new(action).Describe().Settings)
}

func TestWithoutASecretItMustBeSaidThatNothingIsSigned(t *testing.T) {
	for want, nodes := range map[string][]sdk.Node{
		"or unsigned = true":    {},
		"has fewer than 16":     {text("secret", "short")},
		"5 secrets; at most 4 ": {attribute("secret", sdk.Strings(secret, secret, secret, secret, secret))},
		"":                      {attribute("unsigned", sdk.Bool(true))},
	} {
		nodes = append(nodes, text("input", "changes"), text("url", "https://example.org/"))
		err := new(action).Configure(t.Context(), sdk.NewConfig("test", sdk.Node{Name: "config", IsBlock: true, Children: nodes}))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestWhatConfigurationsSayIsTaken(t *testing.T) {
	files := identitytest.New(t).Files(identity.Client, "w")
	for _, nodes := range [][]sdk.Node{
		{text("url", "http://127.0.0.1:8080/x")},
		{text("url", "http://[::1]/x")},
		{text("url", "http://example.org/x"), attribute("allow_plain", sdk.Bool(true)), text("proxy", "http://proxy:3128")},
		{text("url", "https://example.org"), text("method", "PUT"), text("proxy", "socks5://u:p@proxy:1080"), tlsBlock(text("ca", files.CA), text("cert", files.Cert), text("key", files.Key))},
	} {
		if _, err := configured(nodes...); err != nil {
			t.Error(err)
		}
	}
}

func TestNoProblemTellsASecret(t *testing.T) {
	const token = "tokentokentoken"
	for _, nodes := range [][]sdk.Node{
		{hidden("url", "https://u:"+token+"@example.org")},
		{hidden("url", "https://exa mple.org/"+token)},
		{hidden("url", token)},
		{hidden("proxy", token), text("url", "https://example.org")},
		{hidden("secret", "t0ken"), text("url", "https://example.org")},
		{headers(map[string]string{"X": token + "\n"}), text("url", "https://example.org")},
		{hidden("timeout", token), text("url", "https://example.org")},
	} {
		_, err := configured(nodes...)
		if err == nil || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "t0ken") {
			t.Error(err)
		}
	}
}

func TestAPlanShowsNoSecret(t *testing.T) {
	for want, nodes := range map[string][]sdk.Node{
		"POST https://example.org/…\nAuthorization: ***\nX-A: ***\n": {text("url", "https://example.org/hook/t0ken?k=t0ken"), headers(map[string]string{"x-a": "t0ken", "Authorization": "Bearer t0ken"})},
		"PUT the URL\n": {hidden("url", "https://t0ken.example.org/"), text("method", "PUT")},
	} {
		a, err := configured(nodes...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := a.Plan(t.Context(), sdk.PlanStart{}, sdk.NewData(feed(3)))
		if err != nil || len(p.Effects) != 1 {
			t.Fatal(p, err)
		}
		all := fmt.Sprintf("%+v %s", p, p.Effects[0].Payload)
		if !strings.HasPrefix(p.Effects[0].Show, want) || strings.Contains(all, "t0ken") || strings.Contains(all, secret) {
			t.Errorf("%s, want %q", all, want)
		}
	}
}

func TestCertificatesAreReadAnewForEachPost(t *testing.T) {
	ca := identitytest.New(t)
	files := ca.Files(identity.Client, "w")
	a, err := configured(text("url", "https://127.0.0.1:1/"), tlsBlock(text("ca", files.CA), text("cert", files.Cert), text("key", files.Key)))
	if err != nil {
		t.Fatal(err)
	}
	a.receiver.Cert = filepath.Join(t.TempDir(), "gone.pem")
	if r := a.Execute(t.Context(), sdk.Attempt{}, nil); r.Outcome != sdk.Retry || !strings.Contains(r.Message, "gone.pem") {
		t.Errorf("%+v", r)
	}
}
