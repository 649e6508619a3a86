package plugintest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/programtest"
)

func TestFakeSourceConforms(t *testing.T) {
	scheduler := new(FakeScheduler)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 25 {
		run := FakeRun{ID: fmt.Sprint(i), User: "ann", Start: start, Cores: 4}
		scheduler.Add(run)
		if run.Stop = start.Add(time.Duration(i+1) * time.Minute); i%5 > 0 {
			scheduler.Add(run)
		}
	}
	Run(t, Options{Source: scheduler.Source, Config: Block("config", Attr("batch", 7))})
}

func TestExampleSourceConformsAsAProcess(t *testing.T) {
	jobs := filepath.Join(t.TempDir(), "jobs")
	if err := os.WriteFile(jobs, []byte("1 ann 100 200\n2 bob 100 300\n3 ann 300 301\nnonsense\n4 eve 1 5000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := programtest.Build(dir, map[string]string{"bursar-source-example": "plugins/source/example"}); err != nil {
		t.Fatal(err)
	}
	Run(t, Options{
		Binary: filepath.Join(dir, "bursar-source-example"), Type: "example",
		Config: Block("config", Attr("path", jobs)),
	})
}
