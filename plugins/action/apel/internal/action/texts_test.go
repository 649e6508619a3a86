package action

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// ServeHTTP is /v1/records of a daemon.
func (m *memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body []byte
	for row, err := range m.find(r.URL.Query()) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		body = append(wire.AppendV1JSON(body, &row, wire.V1Extra{}), '\n')
	}
	_, _ = w.Write(body)
}

// longText is a text of up to n characters that APEL takes.
func longText(chance *rand.Rand, begin string, n int) string {
	b := make([]byte, 1+chance.IntN(n))
	for i := range b {
		b[i] = `abcdefghijklmnopqrstuvwxyz/=:.ABCDEF0123456789`[chance.IntN(46)]
	}
	return begin + string(b)
}

// total is what a row has.
type total struct{ jobs, wall, cpu int64 }

func TestPlan_ManyRecordsWithLongTexts_SumsAreTheirs(t *testing.T) {
	for seed := range uint64(5) {
		chance := rand.New(rand.NewPCG(seed, 2026))
		r := newRig(t, `
site "UNI-EXAMPLE" { ids = ["nemo"] }
fields {
  VO             = record.meta.vo[0]
  SubmitHost     = record.meta.host[0]
  GlobalUserName = record.meta.dn[0]
  VORole         = try(record.meta.role[0], null)
}
`)
		var texts [4][]string
		for k, begin := range []string{"vo", "ce.example.org:9619/", "/DC=org/CN=", "Role="} {
			for range 2 + chance.IntN(12) {
				texts[k] = append(texts[k], longText(chance, begin, []int{40, 120, 200, 100}[k]))
			}
		}
		want := map[string]total{}
		for i := range 3000 {
			one := job(fmt.Sprintf("%s-%d", longText(chance, "nemo", 200), i), "nemo", "2026-08-01T00:00:00Z", 1+chance.IntN(100_000))
			length := one.Stop - one.Start
			one.Stop += record.Time(chance.Int64N(19*86400)) * record.Second
			one.Start = one.Stop - length
			pick := func(k int) string { return texts[k][chance.IntN(len(texts[k]))] }
			vo, host, dn, role := pick(0), pick(1), pick(2), ""
			one.Meta = record.Meta{{Key: "dn", Values: []string{dn}}, {Key: "host", Values: []string{host}}, {Key: "pad"}}
			for range 1 + chance.IntN(6) {
				one.Meta[2].Values = append(one.Meta[2].Values, longText(chance, "", 250))
			}
			if chance.IntN(2) == 0 {
				role = pick(3)
				one.Meta = append(one.Meta, record.MetaEntry{Key: "role", Values: []string{role}})
			}
			one.Meta = append(one.Meta, record.MetaEntry{Key: "site_id", Values: []string{"nemo"}}, record.MetaEntry{Key: "vo", Values: []string{vo}})
			r.data.records = append(r.data.records, one)
			key := strings.Join([]string{vo, host, dn, role}, " | ")
			sum := want[key]
			seconds, _ := one.Runtime()
			want[key] = total{sum.jobs + 1, sum.wall + seconds, sum.cpu + one.Components[1].Amount}
		}
		now := at("2026-08-20T00:00:00Z")
		start := sdk.PlanStart{Now: now}
		got := sentBy(t, r, start, now)
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: the receiver has %d rows, the records make %d", seed, len(got), len(want))
		}
	}
}

// sentBy plans over the interface of a daemon and gives what a receiver then has. The
// next plan has nothing to send.
func sentBy(t *testing.T, r *rig, start sdk.PlanStart, now time.Time) map[string]total {
	t.Helper()
	p, err := r.Plan(t.Context(), start, sdk.NewData(&r.data))
	if err != nil {
		t.Fatal(err)
	}
	receiver := &apeltest.Receiver{}
	for _, e := range p.Effects {
		if err := receiver.Take(text(t, e), now); err != nil {
			t.Fatal(err)
		}
	}
	start.State = p.State
	if p, err = r.Plan(t.Context(), start, sdk.NewData(&r.data)); err != nil || len(p.Effects) != 0 {
		t.Errorf("a second plan of the same records has %d effects: %v", len(p.Effects), err)
	}
	got := map[string]total{}
	for _, row := range receiver.Rows("APEL-norm") {
		v := row.Values
		key := strings.Join([]string{v["VO"], v["SubmitHost"], v["GlobalUserName"], v["VORole"]}, " | ")
		got[key] = total{row.Int("NumberOfJobs"), row.Int("WallDuration"), row.Int("CpuDuration")}
	}
	return got
}
