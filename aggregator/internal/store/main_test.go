package store

import (
	"flag"
	"os"
	"testing"

	"github.com/bursar-accounting/bursar/proto/racetest"
)

// TestMain keeps the random tests short unless a flag asks for more.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	checks := "4"
	if racetest.Enabled {
		checks = "2" // each takes many times as long
	}
	if testing.Short() {
		checks = "5" // of which rapid makes one
	}
	if !asked {
		flag.Set("rapid.checks", checks)
	}
	os.Exit(m.Run())
}
