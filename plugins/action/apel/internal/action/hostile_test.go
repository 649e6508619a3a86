package action

import (
	"bytes"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Records are hostile input: whatever they hold, every message that is planned is one
// that the receiver takes, and every record is in it or is told of.
func TestNoRecordSpoilsAMessageOrIsLost(t *testing.T) {
	for _, send := range []string{"summaries", "jobs"} {
		r := newRig(t, oneSite+"send = \""+send+"\"\n")
		rapid.Check(t, func(t *rapid.T) {
			r.data.records = nil
			for i := range rapid.IntRange(0, 12).Draw(t, "records") {
				r.data.records = append(r.data.records, hostile(t, i))
			}
			p, err := r.planRun(t.Context(), sdk.PlanStart{Now: at("2026-09-01T00:00:00Z"), Arguments: map[string]string{"month": "2026-08"}}, &r.data)
			if err != nil {
				t.Fatal(err)
			}
			var receiver apeltest.Receiver
			for _, e := range p.Effects {
				if err := receiver.Take(e.Show, at("2026-09-01T00:00:00Z")); err != nil {
					t.Fatalf("%v in\n%s", err, e.Show)
				}
			}
			jobs := receiver.Sum("APEL-sync", "NumberOfJobs")
			told := receiver.Sum("APEL-norm", "NumberOfJobs") + int64(len(receiver.Rows("APEL-ind")))
			left := int64(p.Gauges[1].Value)
			idle := int64(0)
			for _, n := range p.Notes {
				if strings.Contains(n, "less than a second") {
					if _, err := fmt.Sscanf(strings.TrimPrefix(n, "UNI-EXAMPLE 2026-08: "), "%d", &idle); err != nil {
						t.Fatal(n)
					}
				}
			}
			if jobs != told || jobs+left+idle != int64(len(r.data.records)) || p.Partial != (left > 0) {
				t.Fatalf("%d records became %d jobs (%d in the sync), %d left out, %d idle\n%v", len(r.data.records), told, jobs, left, idle, p.Notes)
			}
		})
	}
}

func hostile(t *rapid.T, i int) record.Record {
	word := rapid.SampledFrom([]string{"/atlas", "/cms/Role=x", "", " ", "%%", "a\nSite: B", "é", "\x00", "none", strings.Repeat("x", 300), "{a: 1}"})
	number := rapid.SampledFrom([]int64{0, 1, 8, 1e6, math.MaxInt64})
	out := job(fmt.Sprintf("%d%s", i, word.Draw(t, "id")), "nemo", "2026-08-10T00:00:00Z", rapid.SampledFrom([]int{60, 0, -1, 1e9}).Draw(t, "seconds"))
	out.Meta[1].Values = []string{word.Draw(t, "voms"), word.Draw(t, "voms2")}
	out.Components[0].Amount, out.Components[1].Amount = number.Draw(t, "cores"), number.Draw(t, "cpu")
	out.Components[0].Scores[0].Value = rapid.SampledFrom([]float64{0, 10, 1e300, 0.5}).Draw(t, "score")
	out.Components = out.Components[:rapid.IntRange(0, 2).Draw(t, "components")]
	return out
}

func TestOpensslVerifiesWhatTheServiceGot(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl here")
	}
	r, p := planned(t, 3)
	if result := r.does(t, p.Effects[1], 1); result.Outcome != sdk.Done {
		t.Fatalf("%+v", result)
	}
	command := exec.Command("openssl", "smime", "-verify", "-CAfile", r.config.ams.CA)
	command.Stdin = bytes.NewReader(r.service.Messages()[0].Data)
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(strings.ReplaceAll(string(out), "\r\n", "\n"), "\n\n")
	if m, err := apeltest.Parse(body, at("2026-08-20T00:00:00Z")); err != nil || len(m.Records) != 3 {
		t.Errorf("%v in\n%s", err, body)
	}
}
