package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"sigs.k8s.io/yaml"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// postAlerts is what Alertmanager's own description says of the body of POST /alerts.
func postAlerts(t *testing.T) *openapi3.Schema {
	t.Helper()
	text, err := os.ReadFile("testdata/alertmanager-openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var old openapi2.T
	if err := yaml.Unmarshal(text, &old); err != nil {
		t.Fatal(err)
	}
	doc, err := openapi2conv.ToV3(&old)
	if err != nil {
		t.Fatal(err)
	}
	return doc.Paths.Value("/alerts").Post.RequestBody.Value.Content.Get("application/json").Schema.Value
}

func validate(t *testing.T, s *openapi3.Schema, body []byte) error {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return s.VisitJSON(v, openapi3.EnableFormatValidation())
}

func TestAlertmanager_EachPost_IsAsItsOpenAPIDescribes(t *testing.T) {
	schema := postAlerts(t)
	am := newHook(t)
	c := newCluster(t, "url = \"https://bursar.example.org\"\n"+backup+am.manager())
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1"), c.finding("backup-fails", "")}
	for range 7 {
		c.run()
	}
	c.findings = nil
	for range 7 {
		c.run()
	}
	posts := am.take()
	if len(posts) < 3 {
		t.Fatalf("%d posts", len(posts))
	}
	described := map[string]bool{}
	for _, s := range schema.Items.Value.AllOf {
		for name := range s.Value.Properties {
			described[name] = true
		}
	}
	for _, body := range posts {
		if err := validate(t, schema, body); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
		var list []map[string]any
		if err := json.Unmarshal(body, &list); err != nil || len(list) == 0 {
			t.Fatal(err, string(body))
		}
		for name := range list[0] {
			if !described[name] {
				t.Errorf("Alertmanager knows no %s", name)
			}
		}
		// What the document forbids is found, so the check above proves something.
		for from, to := range map[string]string{
			`"labels":{`: `"label":{`, `"alertname":"backup"`: `"alertname":1`, `"startsAt":"2026-`: `"startsAt":"26-`,
		} {
			if validate(t, schema, []byte(strings.Replace(string(body), from, to, 1))) == nil {
				t.Errorf("with %s in place of %s it is valid", to, from)
			}
		}
	}
}
