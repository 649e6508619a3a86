package store

import (
	"flag"
	"os"
	"testing"
)

// TestMain keeps the random tests short unless a flag asks for more.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		flag.Set("rapid.checks", "4")
	}
	os.Exit(m.Run())
}
