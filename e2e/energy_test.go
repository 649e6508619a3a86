//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// TestEnergy_RealBinaries_FiguresAreHandWorked posts two jobs and asks for their energy.
func TestEnergy_RealBinaries_FiguresAreHandWorked(t *testing.T) {
	s := site.New(t)
	agg, dir := s.Aggregator(), t.TempDir()
	factors := s.Write("co2.csv", "zone,from,g_per_kwh\nDE,2024-01-01,300\nDE,2026-03-10T01:00:00Z,500\n")
	agg.Add(fmt.Sprintf(`
energy {
  pue     = "1.2"
  zone    = "DE"
  factors = [%q]
  class "all" {
    per "Cores" { watts = 10 }
  }
}
budget "alice-power" {
  match  = { user_id = "alice" }
  period = "year"
  amount = 1
  unit   = "kWh"
}
action "energy" "monthly" {
  schedule = "@manual"
  config {
    by        = "user_id"
    benchmark = ""
    directory = %q
  }
}
`, factors, dir))
	agg.Start()
	agg.AwaitReady()
	for id, user := range map[string]string{"a": "alice", "b": "bob"} {
		agg.Post("/record", fmt.Sprintf(`{"record_id":%q,"meta":{"user_id":[%q]},"components":[{"name":"Cores","amount":4,"scores":[]},{"name":"TotalCPU","amount":3600,"scores":[]}],"start_time":"2026-03-10T00:00:00Z","stop_time":"2026-03-10T02:00:00Z"}`, id, user))
	}
	bursar := func(args ...string) string {
		out, err := agg.Bursar(args...)
		if err != nil {
			t.Fatalf("bursar %v: %v\n%s", args, err, out)
		}
		return out
	}
	// 4 cores × 2 h × 10 W × 1.2 = 0.096 kWh, the first half at 300 g and the second at 500 g: 0.0384 kg.
	const want = "user_id,bucket,from,to,energy [kWh],energy_measured [kWh],energy_modelled [kWh],co2 [kg CO2e]\n" +
		"alice,,2026-03-01T00:00:00Z,2026-04-01T00:00:00Z,0.096,,0.096,0.0384\nbob,,2026-03-01T00:00:00Z,2026-04-01T00:00:00Z,0.096,,0.096,0.0384\n"
	var got string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && got != want; time.Sleep(100 * time.Millisecond) {
		got = bursar("usage", "-window", "2026-03", "-by", "user_id", "-measure", "energy,energy_measured,energy_modelled,co2", "-format", "csv")
	}
	if got != want {
		t.Errorf("got\n%s", got)
	}
	var budgets struct {
		Budgets []struct {
			Name, Unit string
			Used, Left json.Number
		}
	}
	if err := agg.Get("/v1/budgets?at=2026-03", &budgets); err != nil || len(budgets.Budgets) != 1 ||
		fmt.Sprint(budgets.Budgets[0]) != "{alice-power kWh 0.096 0.904}" {
		t.Errorf("budgets: %v %+v", err, budgets)
	}
	bursar("actions", "run", "energy/monthly", "period=2026-03")
	const table = "user_id,cpu_eff,corehours,power [kWh],measured [kWh],modelled [kWh],co2 [kg],embodied [kg]\n" +
		"alice,0.125,8,0.096,,0.096,0.0384,\nbob,0.125,8,0.096,,0.096,0.0384,\n"
	var file []byte
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && string(file) != table; time.Sleep(100 * time.Millisecond) {
		file, _ = os.ReadFile(filepath.Join(dir, "auditor_user_id_2026-03.csv")) // it comes
	}
	if string(file) != table {
		t.Errorf("the file has\n%s", file)
	}
}
