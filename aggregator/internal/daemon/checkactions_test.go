package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// Each plugin waits for all others, so that none answers where one is asked after another.
func TestCheckActions_AsksEachPluginByItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := fmt.Sprintf("#!/bin/sh\n: > %[1]s/here-$LABEL\nuntil [ -e %[1]s/here-a -a -e %[1]s/here-b -a -e %[1]s/here-c ]; do sleep 0.01; done\necho all are here >&2\nexit 3\n", dir)
	text := "aggregator {\n name = \"agg1\"\n data_dir = \"data\"\n}\n"
	for _, label := range []string{"a", "b", "c"} {
		path := filepath.Join(dir, "bursar-action-"+label)
		if err := programtest.WriteProgram(path, program); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("plugin \"action\" \"type-%[1]s\" {\n path = %[2]q\n env = { LABEL = %[1]q }\n}\naction \"type-%[1]s\" \"x\" {\n schedule = \"@manual\"\n}\n", label, path)
	}
	file := filepath.Join(dir, "aggregator.hcl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, _, diags := config.Load(file)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	if found := daemon.CheckActions(t.Context(), conf, true); len(found) != 3 || strings.Count(found.Error(), "all are here") != 3 {
		t.Errorf("found %v", found)
	}
}
