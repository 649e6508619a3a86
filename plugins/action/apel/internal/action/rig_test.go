package action

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/amstest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/gridtest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/smime"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// memory answers questions about records from memory.
type memory struct {
	records  []record.Record
	archived []record.Record // only for who asks for them
	fails    error           // in the middle of an answer
	asked    []string
	ledger   [][]sdk.Effect // by run
}

func (m *memory) Records(_ context.Context, q *v1.ListRecordsQuery) iter.Seq2[record.Record, error] {
	_, query, _ := strings.Cut(v1.ListRecordsAddress(q, ""), "?")
	asked, _ := url.ParseQuery(query) // which was made above
	return m.find(asked)
}

func (m *memory) find(q url.Values) iter.Seq2[record.Record, error] {
	m.asked = append(m.asked, q.Encode())
	return func(yield func(record.Record, error) bool) {
		records := m.records
		if q.Get("archived") == "true" {
			records = slices.Concat(records, m.archived)
		}
		for i, r := range records {
			if m.fails != nil && i == len(m.records)/2 {
				yield(record.Record{}, m.fails)
				return
			}
			if fits(r, q) && !yield(r, nil) {
				return
			}
		}
	}
}

// fits is the query of /v1/records, as far as it is used.
func fits(r record.Record, q url.Values) bool {
	for name := range q {
		value := q.Get(name)
		at, _ := time.Parse(time.RFC3339, value)
		ok := false
		switch {
		case name == "archived":
			ok = true
		case name == "open":
			ok = value == strconv.FormatBool(r.Open())
		case name == "stop_time[gte]":
			ok = !r.Stop.Std().Before(at)
		case name == "stop_time[lt]":
			ok = r.Stop.Std().Before(at)
		case strings.HasPrefix(name, "meta[") && strings.HasSuffix(name, "][c][0]"):
			ok = slices.Contains(r.Meta.Get(name[5:len(name)-7]), value)
		}
		if !ok {
			return false
		}
	}
	return true
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// job is a record of a site that stopped then, with 8 cores that score 10.
func job(id, siteID string, stop string, seconds int) record.Record {
	end := record.FromStd(at(stop))
	return record.Record{
		ID: id, Start: end - record.Time(seconds)*record.Second, Stop: end,
		Meta: record.Meta{{Key: "site_id", Values: []string{siteID}}, {Key: "voms", Values: []string{"/atlas/Role=pilot"}}},
		Components: []record.Component{
			{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HEPScore23", Value: 10}}},
			{Name: "TotalCPU", Amount: int64(seconds) * 4, Kind: record.Total},
		},
	}
}

const mapped = `
fields {
  VO         = lookupprefix({ "/atlas" = "atlas", "/cms" = "cms" }, record.meta.voms[0])
  SubmitHost = "ce1.example.org"
}
`

// configure makes an action with that config block. The outgoing directory of the
// documents is there.
func configure(t *testing.T, text string) (*Action, error) {
	t.Helper()
	text = strings.ReplaceAll(text, "/var/spool/apel/outgoing", t.TempDir())
	a := New()
	t.Cleanup(func() { _ = a.Close() })
	return a, a.Configure(t.Context(), plugintest.Config(t, "egi", text, Record))
}

// rig is an action, what it reads, and the service that it publishes to.
type rig struct {
	*Action
	data    memory
	service *amstest.Service
	state   []byte
}

func newRig(t *testing.T, more string) *rig {
	t.Helper()
	authority := gridtest.New(t)
	service := amstest.Start(t, authority.Server(t), authority.Pool())
	service.Users = []string{"ce1.example.org"}
	cert, key := authority.Host(t, "ce1.example.org", gridtest.Curve(t))
	a, err := configure(t, fmt.Sprintf(`
from = "2026-08"
sign {
  cert = %q
  key  = %q
}
ams {
  host       = %q
  port       = %d
  authn_port = %d
  ca         = %q
  timeout    = "1m"
}
%s`, cert, key, service.Host, service.Port, service.AuthnPort, authority.File, more))
	if err != nil {
		t.Fatal(err)
	}
	return &rig{Action: a, service: service}
}

const oneSite = mapped + `
site "UNI-EXAMPLE" {
  ids = ["nemo"]
}
`

// plans makes a plan for that time.
func (r *rig) plans(t *testing.T, now string, arguments map[string]string) sdk.Plan {
	t.Helper()
	p, err := r.tries(t, now, arguments)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (r *rig) tries(t *testing.T, now string, arguments map[string]string) (sdk.Plan, error) {
	t.Helper()
	return r.planRun(t.Context(), sdk.PlanStart{Now: at(now), State: r.state, Arguments: arguments}, &r.data)
}

// runs plans, does all effects and keeps the state.
func (r *rig) runs(t *testing.T, now string, arguments map[string]string) sdk.Plan {
	t.Helper()
	p := r.plans(t, now, arguments)
	for i, e := range p.Effects {
		result := r.Execute(t.Context(), sdk.Attempt{Effect: e, Number: 1, Fence: uint64(i), Key: now + e.Name}, nil)
		if result.Outcome != sdk.Done {
			t.Fatalf("%s: %+v", e.Name, result)
		}
	}
	if p.State != nil {
		r.state = p.State
	}
	r.data.ledger = append(r.data.ledger, p.Effects)
	return p
}

func names(p sdk.Plan) []string {
	var out []string
	for _, e := range p.Effects {
		out = append(out, e.Name)
	}
	return out
}

// text is the message of an effect.
func text(t *testing.T, e sdk.Effect) string {
	t.Helper()
	p, err := readPayload(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Signed {
		return string(p.data)
	}
	out, err := smime.Text(p.data)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

var errBroken = errors.New("the answer was broken off")
