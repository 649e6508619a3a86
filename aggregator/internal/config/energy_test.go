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

func TestEnergy_Committed_IsThatOfTheFiles(t *testing.T) {
	c, _, diags := config.Load("../../../hcl/examples/aggregator-energy.hcl")
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
	at := func(text string) record.Time {
		when, err := record.ParseTime(text)
		if text != "" && err != nil {
			t.Fatal(err)
		}
		if text == "" {
			return record.None
		}
		return when
	}
	mega := func(n int64) accounting.Decimal { return accounting.Decimal(n) * accounting.One / 10000 }
	cores := accounting.Draw{Component: "Cores", Amount: 1, Watts: mega(46000)}
	memory := accounting.Draw{Component: "Memory", Amount: 1000, Watts: mega(3725)}
	gpuCores, allCores := cores, cores
	gpuCores.Watts, gpuCores.Idle, gpuCores.Busy = mega(64000), mega(4000), "TotalCPU"
	allCores.Embodied, allCores.Years = mega(125000), mega(50000)
	always := func(n int64) accounting.Overhead { return accounting.Overhead{From: record.MinTime, PUE: mega(n)} }
	want := &accounting.EnergySettings{
		Measured: "Energy", Overheads: []accounting.Overhead{always(13500), {From: at("2026-01-01T00:00:00Z"), PUE: mega(12800)}}, Zone: "DE",
		Classes: []accounting.PowerClass{
			{
				Name: "gpu", Match: []accounting.NodeMatch{{Key: "host", Values: []string{"gpu*"}}},
				Draws: []accounting.Draw{gpuCores, memory, {Component: "GPUs", Amount: 1, Watts: mega(3000000), Embodied: mega(1500000), Years: mega(50000)}},
			},
			{Name: "hydro", Match: []accounting.NodeMatch{{Key: "site_id", Values: []string{"lyon"}}}, Overheads: []accounting.Overhead{always(11000)}, Zone: "FR", Draws: []accounting.Draw{cores}},
			{Name: "all", Draws: []accounting.Draw{allCores, memory}},
		},
		Factors: []accounting.CO2Factor{
			{Zone: "DE", From: at("2024-01-01T00:00:00Z"), To: record.None, Grams: 344_100_000},
			{Zone: "DE", From: at("2026-03-01T10:00:00Z"), To: record.None, Grams: 301_250_000},
			{Zone: "DE", From: at("2026-03-01T11:00:00Z"), To: at("2026-03-01T12:00:00Z"), Grams: 287_500_000},
			{Zone: "DE", From: at("2026-03-01T12:00:00Z"), To: record.None, Grams: 344_100_000},
			{Zone: "FR", From: at("2024-01-01T00:00:00Z"), To: record.None, Grams: 44_200_000},
		},
	}
	if d := cmp.Diff(want, s.Energy); d != "" {
		t.Error(d)
	}
}

func TestEnergy_WrongFactors_AreErrorsWithTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ csv, want string }{
		"column":     {"zone,from,carbon\nDE,2026-01-01,300\n", `unknown column "carbon"`},
		"no column":  {"zone,g_per_kwh\nDE,300\n", `column "from" is missing`},
		"cells":      {"zone,from,g_per_kwh\nDE,2026-01-01\n", "wrong number of fields"},
		"zone":       {"zone,from,g_per_kwh\nFR,2026-01-01,300\n", `no factors of zone "DE"`},
		"digits":     {"zone,from,g_per_kwh\nDE,2026-01-01,0.1234567\n", "up to six digits"},
		"to":         {"zone,from,to,g_per_kwh\nDE,2026-01-02,2026-01-01,300\n", "after from"},
		"with lines": {"zone,from,g_per_kwh\nDE,2026-01-01,300\nDE,2027-01-01,-1\n", "co2.csv:3"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"co2.csv": c.csv, "a.hcl": "aggregator {\n name = \"a\"\n data_dir = \"/d\"\n}\nenergy {\n zone = \"DE\"\n factors = [\"co2.csv\"]\n}"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, _, diags := config.Load(filepath.Join(dir, "a.hcl"))
			if err := diags.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestEnergy_PUEWithDates_IsReadOrRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		`pue = "1.3"
since "2026-01-01" { pue = "1.2" }
since "2025-01-01" { pue = "1.25" }`: "",
		`since "2026-01-01" { pue = "0.9" }`: "less than 1",
		`since "2026-01-01" {}`:              "pue must be set here",
		`since "soon" { pue = "1.2" }`:       `invalid time "soon"`,
		`class "a" {
  since "2026-01-01" { pue = "1.2" }
  since "2026-01-01T00:00:00Z" { pue = "1.1" }
}`: "a.hcl:8",
	} {
		file := filepath.Join(t.TempDir(), "a.hcl")
		if err := os.WriteFile(file, []byte("aggregator {\n name = \"a\"\n data_dir = \"/d\"\n}\nenergy {\n"+text+"\n}"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, diags := config.Load(file)
		if err := diags.Err(); want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", text, err, want)
			}
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		s, err := config.ReadShared(c.Shared())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range s.Energy.Overheads {
			got = append(got, o.From.String()[:4]+" "+o.PUE.String())
		}
		if list := strings.Join(got, ", "); list != "0000 1.3, 2025 1.25, 2026 1.2" {
			t.Error(list)
		}
	}
}
