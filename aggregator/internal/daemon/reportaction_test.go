package daemon_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/mail"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/plugins/action/report/smtptest"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

const advising = `
aggregator {
  name     = "agg1"
  data_dir = "data"
}
directory {}
person "ann" { email = "ann@example.org" }
person "bob" { email = "bob@example.org" }
action "report" "advice" {
  schedule = "@manual"
  config {
    report        = "person"
    zone          = "UTC"
    each          = "user"
    tables        = ["advice"]
    without_usage = "note"
    mail {
      from = "help@example.org"
      host = "127.0.0.1"
      port = %s
      tls  = "none"
    }
  }
}
`

// advisor is a node whose action mails advice, and the server that takes the mails.
type advisor struct {
	*testing.T

	set  daemon.Settings
	post smtptest.Server
	addr string
	stop func()
	runs int
}

func (a *advisor) start() {
	a.set.Plain = []net.Listener{listen(a.T)}
	a.addr, a.stop = startWith(a.T, a.set)
}

// orders has the week advised, and returns the run.
func (a *advisor) orders(week string) (r v1.ActionRunEffects) {
	a.Helper()
	await(a.T, "the order is taken", func() bool {
		status, _ := call(a.T, "POST", a.addr+"/v1/actions/report/advice:run", fmt.Sprintf(`{"arguments":{"period":%q}}`, week))
		return status == 202
	})
	a.runs++
	await(a.T, "the run has ended", func() bool {
		status, got := call(a.T, "GET", fmt.Sprintf("%s/v1/actions/report/advice/runs/%d", a.addr, a.runs), "")
		r = v1.ActionRunEffects{}
		return status == 200 && json.Unmarshal([]byte(got), &r) == nil && !r.Run.Ended.IsZero()
	})
	if r.Run.Failure != "" {
		a.Fatal(r.Run.Failure)
	}
	return r
}

// uses writes a job of the user on a day, which used so much of 64 GB.
func (a *advisor) uses(id, user, day string, memory int) {
	a.Helper()
	const rec = `{"record_id":%q,"meta":{"group_id":["physics"],"user_id":[%q]},"components":[{"name":"Cores","amount":4,"scores":[]},{"name":"Memory","amount":64000,"scores":[]},{"name":"MemoryUsed","amount":%d,"scores":[]}],"start_time":"%sT06:00:00Z","stop_time":"%sT16:00:00Z"}`
	if status, got := call(a.T, "POST", a.addr+"/record", fmt.Sprintf(rec, id, user, memory, day, day)); status != 200 {
		a.Fatal(status, got)
	}
}

func TestReportAction_JobsThatWaste_AreMailedToTheirOwnerOnceAWeek(t *testing.T) {
	a := &advisor{T: t}
	l := listen(t)
	served := make(chan struct{})
	go func() { defer close(served); a.post.Serve(l) }()
	t.Cleanup(func() { l.Close(); <-served })
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a.set = acts(t, fmt.Sprintf(advising, port), "report")
	a.set.Plain[0].Close()
	a.start()
	a.uses("w1", "ann", "2026-03-03", 640) // a hundredth
	a.uses("w2", "bob", "2026-03-04", 60000)
	a.uses("w3", "ann", "2026-03-10", 640)
	weeks := []string{"2026-W10", "2026-W11"}
	for i, week := range weeks {
		if r := a.orders(week); r.Run.Done != 1 || len(r.Effects) != 1 || !strings.Contains(r.Effects[0].Name, "user=ann to=ann@example.org") {
			t.Errorf("%s: %+v", week, r)
		}
		if r := a.orders(week); r.Run.Effects != 0 {
			t.Errorf("%s again: %+v", week, r)
		}
		a.stop()
		a.start()
		for _, before := range weeks[:i+1] {
			if r := a.orders(before); r.Run.Effects != 0 {
				t.Errorf("%s after a restart: %+v", before, r)
			}
		}
	}
	a.stop()
	ids := map[string]bool{}
	for _, text := range a.post.Mails() {
		m, err := mail.ReadMessage(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		ids[m.Header.Get("Message-Id")] = true
		if to := m.Header.Get("To"); !strings.Contains(to, "ann@example.org") || !strings.Contains(string(text), "Memory used below 20") {
			t.Errorf("a mail to %s:\n%s", to, text)
		}
	}
	if n := len(a.post.Mails()); n != len(weeks) || len(ids) != len(weeks) {
		t.Errorf("%d mails with %d ids, want one for each of %d weeks", n, len(ids), len(weeks))
	}
}
