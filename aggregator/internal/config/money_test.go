package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestPricesAndBudgetsComeBackFromTheLog(t *testing.T) {
	c, _, diags := config.Load("testdata/money.good.hcl")
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	d, err := clusterconfig.Decode(c.Shared().Encode())
	if err != nil {
		t.Fatal(err)
	}
	s, err := config.ReadShared(d)
	if err != nil {
		t.Fatal(err)
	}
	p, b, err := accounting.NewPricesAndBudgets(s.Money)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, at := range []string{"2025-12-31T12:00:00Z", "2025-12-31T23:30:00Z", "2026-06-01T00:00:00Z"} {
		instant, _ := record.ParseTime(at)
		for _, h := range p.At(instant) {
			got = append(got, h.List.Name+" "+h.Rule.String())
		}
		got = append(got, "-")
	}
	want := []string{
		"standard Cores", "-",
		"standard Cores of group_id=physics, qos=low", "standard Cores of host_class=gpu", "standard Cores", "standard TotalCPU", "-",
		"standard Cores of group_id=physics, qos=low", "standard Cores of host_class=gpu", "standard Cores", "standard TotalCPU", "-",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"atlas", "gpus"}, b.Names()); d != "" {
		t.Error(d)
	}
	gpus := s.Money.Budgets[1]
	if gpus.From.String() != "2026-03-01T11:00:00Z" || gpus.To.String() != "2027-01-01T00:00:00Z" || gpus.Amount.Decimal(2) != "5000000" || len(gpus.Scope) != 2 {
		t.Errorf("%+v", gpus)
	}
	atlas := s.Money.Budgets[0]
	if atlas.Pace.Hours() != 14*24 || atlas.Amount.Decimal(2) != "120000.5" || atlas.Zone != "Europe/Berlin" || atlas.Every.String() != "quarter" {
		t.Errorf("%+v", atlas)
	}
}

func TestPricesInTheLogThatMakeNoSenseAreRefused(t *testing.T) {
	price := func(members, per string) string {
		return `{"price":[{"name":"a"` + members + `,"per":[` + per + `]}]}`
	}
	budget := func(members string) string { return `{"budget":[{"name":"b",` + members + `}]}` }
	const per, eur = `{"component":"Cores","hour":"1"}`, `,"currency":"EUR"`
	for text, want := range map[string]string{
		price("", per):                                                                    "currency is missing",
		price(eur+`,"from":"now"`, per):                                                   "RFC 3339",
		price(eur+`,"x":1`, ""):                                                           "does not know",
		price(eur, ""):                                                                    "no prices",
		price(eur+`,"to":"x"`, per):                                                       "RFC 3339",
		price(eur, `{"hour":"1"}`):                                                        "component is missing",
		price(eur, `{"component":"Cores"}`):                                               "either hour, the price",
		price(eur, `{"component":"Cores","hour":[]}`):                                     "expected a number",
		price(eur, `{"component":"Cores","hour":"x"}`):                                    "digits",
		price(eur, `{"component":"Cores","hour":"99999999999"}`):                          "too much",
		price(eur, `{"component":"Cores","hour":"1","match":[]}`):                         "match: ",
		price(eur, per+","+per):                                                           "has the same",
		budget(`"amount":"1","unit":"SU","match":{"a":"b"}`):                              "either a period",
		budget(`"amount":"1","unit":"SU","match":{"a":"b"},"period":"decade"`):            "invalid interval",
		budget(`"amount":"1","unit":"SU","match":{"a":"b"},"period":"year","pace":"x"`):   "pace",
		budget(`"amount":"x","unit":"SU","match":{"a":"b"},"period":"year"`):              "amount",
		budget(`"amount":"1","unit":"EUR","match":{"a":"b"},"period":"year"`):             "no price list",
		budget(`"amount":"1","unit":"SU","match":{"a":"b"},"period":"year","carry":true`): "does not know",
		budget(`"amount":"1","unit":"SU","match":{"a":"b"},"from":"x"`):                   "RFC 3339",
	} {
		if _, err := config.ReadShared(&clusterconfig.Document{Settings: []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A site whose groups are its projects may write either word.
func TestPrices_GroupKeyIsThatOfProjects_KeepEachCondition(t *testing.T) {
	for words, want := range map[string]string{
		`project = "atlas"`:                  `"match":{"project":"atlas"}`,
		`group = "atlas"`:                    `"match":{"project":"atlas"}`,
		`group = "atlas"  project = "atlas"`: "there are two conditions on project",
	} {
		file := filepath.Join(t.TempDir(), "a.hcl")
		text := `aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
  api { listen = ["127.0.0.1:8000"] }
}
directory { group_key = "project" }
price "standard" {
  currency = "EUR"
  per "Cores" {
    hour = 1
    ` + strings.ReplaceAll(words, "  ", "\n    ") + `
  }
}
`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, diags := config.Load(file)
		got := ""
		if err := diags.Err(); err != nil {
			got = err.Error()
		} else {
			got = string(c.Shared().Encode())
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", words, got)
		}
	}
}
