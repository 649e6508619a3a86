package source_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/job"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/source"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// look is what a fresh source collects of a history and its epochs.
func look(t *testing.T, history, epochs string) (*bursarv1.DescribeResponse, *plugintest.Collected) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"history": history, "epoch_history": epochs} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := plugintest.Block("config", plugintest.Attr("history", filepath.Join(dir, "history")), plugintest.Attr("capacity", false), plugintest.Attr("census", false))
	return plugintest.CollectFresh(t, func() sdk.Source { return source.New(slog.New(slog.DiscardHandler)) }, &bursarv1.ConfigureRequest{Label: "test", Config: config, DataDir: t.TempDir()})
}

// optional reports whether an attribute of an ad is neither a text nor an expression that only
// HTCondor can tell from garbage, and neither the name nor the times of a run need it, nor
// the default filter.
func optional(name string) bool {
	needed := []string{"ProcId", "JobUniverse", "JobStatus", "JobCurrentStartDate", "ShadowBday", "JobStartDate",
		"CompletionDate", "LastVacateTime", "EpochWriteDate", "EnteredCurrentStatus", "JobFinishedHookDone"}
	if slices.Contains(needed, name) {
		return false
	}
	return name == "ToE" || slices.ContainsFunc(job.Attributes(), func(a sdk.Attribute) bool {
		return a.Name == name && a.Type != sdk.TypeString && !strings.Contains(a.Doc, "expression") && !strings.HasPrefix(name, "Allowed")
	})
}

// broken is the history with garbage in an attribute of each ad.
func broken(r *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	offset := regexp.MustCompile(`Offset = \d+`)
	from, begin := 0, 0
	for i, line := range lines {
		if !strings.HasPrefix(line, "***") && i < len(lines)-1 {
			continue
		}
		var at []int
		for n := from; n < i; n++ {
			if name, _, ok := strings.Cut(lines[n], " = "); ok && optional(name) {
				at = append(at, n)
			}
		}
		if len(at) > 0 {
			n := at[r.IntN(len(at))]
			name, _, _ := strings.Cut(lines[n], " = ")
			lines[n] = name + " = " + plugintest.Garbage(r) + "\n"
		}
		// The banner has the place of the ad in the file.
		lines[i] = offset.ReplaceAllString(line, fmt.Sprintf("Offset = %d", begin))
		for from <= i {
			begin += len(lines[from])
			from++
		}
	}
	return strings.Join(lines, "")
}

func TestCollect_UnreadableAttribute_RunCountsWithoutIt(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	var texts []string
	for _, name := range []string{"history-23.9.6", "epochs-23.9.6"} {
		text, err := os.ReadFile(filepath.Join("../../testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	_, sound := look(t, texts[0], texts[1])
	named := 0
	for range 12 {
		d, got := look(t, broken(r, texts[0]), broken(r, texts[1]))
		named += plugintest.CheckUnread(t, d, sound, got)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if named < len(sound.Jobs()) {
		t.Errorf("seed %d: %d values are named as unread", seed, named)
	}
}
