package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/alerts"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func start(c *cluster, arguments map[string]string) sdk.PlanStart {
	return sdk.PlanStart{Now: c.now, State: c.state, Arguments: arguments}
}

const backup = "rule \"backup\" {\n findings = [\"backup-fails\"]\n}\n"

func (h *hook) webhook() string {
	return fmt.Sprintf("receiver \"hook\" {\n webhook {\n  url = %q\n  unsigned = true\n }\n}\n", h.URL+"/x")
}

func (h *hook) manager() string {
	return fmt.Sprintf("receiver \"am\" {\n alertmanager {\n  url = %q\n  labels = { site = \"nemo\" }\n }\n}\n", h.URL)
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestPlan_AnAlert_IsToldOnceWhenItFiresAndWhenItEnds(t *testing.T) {
	m, h, am := newMailer(t), newHook(t), newHook(t)
	c := newCluster(t, backup+m.block("ops", "a@example.org", "b@example.org")+h.webhook()+am.manager())
	seen := map[string]bool{}
	c.run()
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1"), c.finding("quarantine", "")}
	for range 3 {
		c.run()
	}
	c.findings = append(c.findings, c.finding("backup-fails", "agg2"))
	c.run()
	c.findings = nil
	for range 3 {
		c.run()
	}
	for _, to := range []string{"a@example.org", "b@example.org"} {
		same(t, to, m.subjects(to), "[1 FIRING] alert/site: backup agg1 firing", "[1 FIRING] alert/site: backup agg2 firing",
			"[2 recovered] alert/site: backup agg1 recovered, backup agg2 recovered")
	}
	same(t, "webhook", h.changes(t, seen), "backup agg1 firing", "backup agg2 firing", "backup agg1 recovered", "backup agg2 recovered")
	if text := string(m.Mails()[0]); !strings.Contains(text, "do first: do backup-fails") || !strings.Contains(text, "since 2026-11-03 07:01 (UTC)") {
		t.Error(text)
	}
	if n := len(am.take()); n != 3 {
		t.Errorf("%d posts to the Alertmanager, want 3", n)
	}
}

func TestPlan_AnAlertmanager_IsToldAgainBeforeItForgets(t *testing.T) {
	am := newHook(t)
	c := newCluster(t, backup+am.manager())
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1")}
	fired := c.now
	for range 12 {
		c.run()
	}
	posts := am.take()
	if len(posts) != 3 { // at 0, 5 and 10 minutes
		t.Fatalf("%d posts", len(posts))
	}
	for i, body := range posts {
		var list []managed
		if err := json.Unmarshal(body, &list); err != nil || len(list) != 1 {
			t.Fatal(err, string(body))
		}
		a, at := list[0], fired.Add(time.Duration(i)*5*time.Minute)
		if !a.StartsAt.Equal(fired) || !a.EndsAt.Equal(at.Add(15*time.Minute)) || a.Labels["alertname"] != "backup" || a.Labels["site"] != "nemo" || a.Annotations["summary"] == "" {
			t.Errorf("%d: %+v", i, a)
		}
	}
	c.findings = nil
	ended := c.now
	am.set(true)
	c.run() // it is not told that the alert has ended
	am.set(false)
	for range 3 {
		c.run()
	}
	var list []managed
	posts = am.take()
	if err := json.Unmarshal(posts[0], &list); err != nil || len(posts) != 1 || !list[0].EndsAt.Equal(ended) {
		t.Errorf("%v %d %s", err, len(posts), posts)
	}
}

func TestPlan_For_WaitsUntilTheConditionLasted(t *testing.T) {
	h := newHook(t)
	c := newCluster(t, "rule \"backup\" {\n findings = [\"backup-fails\"]\n for = \"3m\"\n}\n"+h.webhook())
	seen := map[string]bool{}
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1")}
	c.run()
	c.run()
	c.findings = nil
	c.run() // it was over in time
	c.findings = []v1.Finding{c.finding("backup-fails", "agg2")}
	for range 3 {
		c.run()
	}
	same(t, "early", h.changes(t, seen))
	c.run()
	same(t, "late", h.changes(t, seen), "backup agg2 firing")
}

func TestPlan_Keep_WaitsUntilTheConditionIsOver(t *testing.T) {
	h := newHook(t)
	c := newCluster(t, "keep = \"2m\"\n"+backup+h.webhook())
	seen := map[string]bool{}
	there := []v1.Finding{c.finding("backup-fails", "agg1")}
	for _, c.findings = range [][]v1.Finding{there, nil, nil, there, nil, there, nil, nil} { // a new leader does not know it yet
		c.run()
	}
	same(t, "early", h.changes(t, seen), "backup agg1 firing")
	c.run()
	same(t, "late", h.changes(t, seen), "backup agg1 recovered")
}

func TestPlan_ASilence_KeepsNewAlertsFromBeingTold(t *testing.T) {
	h := newHook(t)
	c := newCluster(t, backup+"rule \"other\" {\n findings = [\"quarantine\"]\n}\n"+h.webhook())
	seen := map[string]bool{}
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1")}
	c.run()
	silence := func(q alerts.Silence) error {
		text, err := json.Marshal(q)
		if err != nil {
			return err
		}
		c.plan(map[string]string{argSilence: string(text)})
		return nil
	}
	if err := silence(alerts.Silence{ID: "s1", Match: map[string]string{"rule": "back*"}, From: c.now, Until: c.now.Add(10 * time.Minute), Author: "me"}); err != nil {
		t.Fatal(err)
	}
	c.findings = []v1.Finding{c.finding("backup-fails", "agg2"), c.finding("backup-fails", "agg3"), c.finding("quarantine", "")}
	c.run()
	same(t, "silenced", h.changes(t, seen), "backup agg1 firing", "backup agg1 recovered", "other  firing")
	c.findings = c.findings[1:] // agg2 has ended: nothing was told of it
	for range 12 {
		c.run()
	}
	same(t, "after it", h.changes(t, seen), "backup agg3 firing")
	s, err := alerts.Read(c.state)
	if err != nil || len(s.Silences) != 0 || len(s.Changes) != 0 {
		t.Errorf("%v %+v", err, s)
	}
	for name, text := range map[string]string{"silence": "{}", "expire": "nothing", "period": "x"} {
		p, err := newPlanner(&c.a.config, start(c, map[string]string{name: text}), nil)
		if err == nil {
			err = p.followOrders()
		}
		if err == nil {
			t.Errorf("%s=%s is taken", name, text)
		}
	}
}

func TestPlan_AReceiverIsDown_OthersGetTheirsAndItGetsAllLater(t *testing.T) {
	m, h := newMailer(t), newHook(t)
	c := newCluster(t, backup+m.block("ops", "a@example.org")+h.webhook())
	m.down.Store(true)
	seen := map[string]bool{}
	c.run()
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1")}
	p := c.run()
	if len(p.Effects) != 2 {
		t.Fatalf("%+v", p.Effects)
	}
	same(t, "webhook", h.changes(t, seen), "backup agg1 firing")
	c.findings = []v1.Finding{c.finding("backup-fails", "agg2")}
	tries := 0
	for range 30 {
		tries += len(c.run().Effects)
	}
	s, err := alerts.Read(c.state)
	if r := s.Receivers["mail ops to=a@example.org"]; err != nil || !strings.Contains(r.Problem, "421 ") || r.Failing.IsZero() || tries > 12 {
		t.Errorf("%v, %d, %+v", err, tries, r)
	}
	m.down.Store(false)
	for range 20 {
		c.run()
	}
	same(t, "mail", m.subjects("a@example.org"), "[2 FIRING, 1 recovered] alert/site: backup agg1 firing, backup agg1 recovered, backup agg2 firing")
	if s, err = alerts.Read(c.state); err != nil || s.Receivers["mail ops to=a@example.org"].Problem != "" || len(s.Changes) != 0 {
		t.Errorf("%v %+v", err, s)
	}
}

func TestPlan_OneOfTenIsRefused_NineGetTheMailAndOneIsListed(t *testing.T) {
	m := newMailer(t)
	to := []string{"refused@example.org"}
	for i := range 9 {
		to = append(to, fmt.Sprintf("p%d@example.org", i))
	}
	c := newCluster(t, backup+m.block("ops", to...))
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1")}
	for range 5 {
		c.run()
	}
	if n := len(m.Mails()); n != 9 {
		t.Errorf("%d mails", n)
	}
	s, err := alerts.Read(c.state)
	if r := s.Receivers["mail ops to=refused@example.org"]; err != nil || !strings.Contains(r.Problem, "550 5.1.1 no such user") {
		t.Errorf("%v %+v", err, r)
	}
}

func TestPlan_WhatARuleLooksAtIsNotThere_IsSaidAndAlertsStay(t *testing.T) {
	h := newHook(t)
	c := newCluster(t, backup+"rule \"money\" {\n budget = \"atlas\"\n used = 90\n}\n"+h.webhook())
	seen := map[string]bool{}
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1")}
	if p := c.run(); !p.Partial || !strings.Contains(strings.Join(p.Notes, "\n"), `rule money cannot be evaluated: budget "atlas" not found: the budgets are none`) {
		t.Errorf("%+v", p.Notes)
	}
	same(t, "others", h.changes(t, seen), "backup agg1 firing")
	c.fails["/v1/status"] = 503
	c.findings = nil
	c.run()
	same(t, "not known", h.changes(t, seen))
	c.fails = map[string]int{}
	c.run()
	same(t, "known again", h.changes(t, seen), "backup agg1 recovered")
}

func TestPlan_ABudgetOfUnknownUse_IsNamedAndItsAlertStays(t *testing.T) {
	for _, unknown := range []v1.Budget{{Unit: "kWh", BudgetStanding: &v1.BudgetStanding{}}, {Unit: "kWh", Problem: "no energy is configured"}} {
		h := newHook(t)
		c := newCluster(t, "rule \"any\" {\n budget = \"*\"\n used = 90\n}\nrule \"more\" {\n budget = \"*\"\n used = 200\n}\n"+h.webhook())
		seen := map[string]bool{}
		use := func(b v1.Budget) {
			b.Name, b.Amount, b.Period = "lab", "100", v1.BudgetPeriod{State: "present", Zone: "UTC"}
			c.budgets = []v1.Budget{b}
		}
		known := func(share string) v1.Budget {
			return v1.Budget{Unit: "kWh", BudgetStanding: &v1.BudgetStanding{Share: new(json.Number(share))}}
		}
		use(known("0.95"))
		c.run()
		same(t, "known", h.changes(t, seen), "any lab firing")
		use(unknown)
		for range 3 {
			if p := c.run(); p.Partial || len(p.Notes) != 1 || !strings.HasPrefix(p.Notes[0], "budget lab is not looked at: ") {
				t.Errorf("%v %q", p.Partial, p.Notes)
			}
		}
		same(t, "not known", h.changes(t, seen))
		use(known("0.1"))
		c.run()
		same(t, "known again", h.changes(t, seen), "any lab recovered")
	}
}

func TestPlan_ABudgetPassesItsBounds_EachIsToldOnceWithItsForecast(t *testing.T) {
	m, h := newMailer(t), newHook(t)
	c := newCluster(t, "defaults = true\n"+m.block("ops", "a@example.org")+h.webhook())
	c.fails["/v1/usage"] = 400 // without capacity
	seen := map[string]bool{}
	gone := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		share string
		told  []string
		text  string
	}{
		{"0.74", nil, ""},
		{"0.75", []string{"budget-75 lab firing"}, "at the present pace it is exhausted on 2026-11-28, and"},
		{"0.8", nil, ""},
		{"0.93", []string{"budget-90 lab firing"}, "at the present pace it is exhausted on 2026-11-28, and"},
		{"1", []string{"budget-100 lab firing"}, "it is exhausted"},
		{"1.2", nil, ""},
		{"0.1", []string{"budget-100 lab recovered", "budget-75 lab recovered", "budget-90 lab recovered"}, ""}, // another period
	} {
		b := v1.Budget{Name: "lab", Unit: "kWh", Amount: "100", Period: v1.BudgetPeriod{State: "present", Zone: "UTC", To: v1.Time{Time: gone.AddDate(0, 1, 0)}}}
		b.BudgetStanding = &v1.BudgetStanding{Share: new(json.Number(step.share)), Pace: &v1.BudgetPace{PerDay: "1"}, GoneAt: v1.Time{Time: gone}, Exhausted: step.share >= "1"}
		c.budgets = []v1.Budget{b}
		before := len(m.Mails())
		c.run()
		c.run()
		told := h.changes(t, seen)
		slices.Sort(told)
		same(t, step.share, told, step.told...)
		text := ""
		for _, mail := range m.Mails()[before:] {
			text += strings.NewReplacer("=\r\n", "", "=\n", "").Replace(string(mail)) // quoted-printable
		}
		if len(step.told) > 0 && text == "" || !strings.Contains(text, step.text) {
			t.Errorf("at %s the mail lacks %q:\n%s", step.share, step.text, text)
		}
	}
}

func TestPlan_AShare_IsToldOnceForEachChangeOfItsSide(t *testing.T) {
	h := newHook(t)
	c := newCluster(t, "rule \"fair\" {\n share {\n above = 2\n below = 0.5\n }\n}\n"+h.webhook())
	seen := map[string]bool{}
	number := func(s string) *json.Number {
		if s == "" {
			return nil
		}
		return new(json.Number(s))
	}
	share := func(pi, used, contributed, ratio string) {
		c.shares.Shares = append(c.shares.Shares, v1.SubscriptionShare{PI: pi, UsedShare: number(used), ContributionShare: number(contributed), Ratio: number(ratio)})
	}
	set := func(bell, used string) {
		c.shares.Shares = nil
		share("Bell", used, "0.25", bell)
		share("Darwin", "0.3", "0.3", "1")
		share("Guest", "0.2", "", "")   // contributed nothing: without a share
		share("Exempt", "0.1", "0", "") // neither
		share("Idle", "0", "0.45", "")  // used nothing
		share("Free", "0", "0.1", "")
		c.shares.Shares[len(c.shares.Shares)-1].State = "exempt"
	}
	set("2.0000001", "0.5")
	c.run()
	same(t, "above", h.changes(t, seen), "fair pi=Bell (above) firing", "fair pi=Idle (below) firing")
	if c.asked != "window=7d" {
		t.Errorf("asked %q", c.asked)
	}
	c.run()
	same(t, "still", h.changes(t, seen))
	set("0.4", "0.1")
	c.run()
	same(t, "the other side", h.changes(t, seen), "fair pi=Bell (above) recovered", "fair pi=Bell (below) firing")
	set("2", "0.5")
	c.run()
	same(t, "at the bound", h.changes(t, seen), "fair pi=Bell (below) recovered")
	c.shares.Shares = nil
	share("Idle", "", "0.45", "") // no use of anyone to compare with
	c.run()
	same(t, "no use at all", h.changes(t, seen), "fair pi=Idle (below) recovered")
}

func TestPlan_Defaults_OfAClusterWithoutBudgetsAndCapacity_SayNothing(t *testing.T) {
	c := newCluster(t, "defaults = true")
	c.fails["/v1/usage"] = 400
	if p := c.run(); p.Partial || len(p.Effects) != 0 {
		t.Errorf("%+v", p)
	}
}

func TestPlan_ANewReceiver_IsToldWhatFires(t *testing.T) {
	one, other := newHook(t), newHook(t)
	c := newCluster(t, backup+one.webhook())
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1")}
	c.run()
	both, err := configure(t, "keep = \"0s\"\n"+backup+one.webhook()+strings.Replace(other.webhook(), `"hook"`, `"new"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	c.a = both
	c.findings = append(c.findings, c.finding("backup-fails", "agg2"))
	c.run()
	same(t, "old", one.changes(t, map[string]bool{}), "backup agg1 firing", "backup agg2 firing")
	same(t, "new", other.changes(t, map[string]bool{}), "backup agg1 firing", "backup agg2 firing")
}

func TestPlan_RoutesAndSeverities_DecideWhoIsTold(t *testing.T) {
	a, b := newHook(t), newHook(t)
	text := "rule \"a\" {\n findings = [\"backup-fails\"]\n to = [\"hook\"]\n}\nrule \"b\" {\n findings = [\"quarantine\"]\n severity = \"critical\"\n}\n"
	c := newCluster(t, text+a.webhook()+strings.Replace(b.webhook(), "\"hook\" {", "\"b\" {\n severity = [\"critical\"]", 1))
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1"), c.finding("quarantine", "")}
	c.run()
	same(t, "hook", a.changes(t, map[string]bool{}), "a agg1 firing", "b  firing")
	same(t, "b", b.changes(t, map[string]bool{}), "b  firing")
}

// TestPlan_AnySequence_TellsEachChangeOnceInOrder has conditions come and go while receivers
// fail and nodes die after they have told them.
func TestPlan_AnySequence_TellsEachChangeOnceInOrder(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 7))
		m, h := newMailer(t), newHook(t)
		c := newCluster(t, backup+m.block("ops", "a@example.org")+h.webhook())
		seen, holds := map[string]bool{}, map[string]bool{}
		var want, posts []string
		for step := range 70 {
			if step == 50 {
				m.down.Store(false)
				h.set(false)
			}
			if step < 40 {
				about := fmt.Sprintf("agg%d", random.IntN(3))
				holds[about] = !holds[about]
				want = append(want, "backup "+about+" "+map[bool]string{true: "firing", false: "recovered"}[holds[about]])
				c.findings = nil
				for _, name := range []string{"agg0", "agg1", "agg2"} {
					if holds[name] {
						c.findings = append(c.findings, c.finding("backup-fails", name))
					}
				}
				m.down.Store(random.IntN(3) == 0)
				h.set(random.IntN(3) == 0)
			}
			before := len(h.keys)
			c.run()
			if n := len(c.runs); random.IntN(5) == 0 && len(h.keys) > before { // the node dies after the post
				run := &c.runs[n-1]
				for i := range run.Effects {
					if e := &run.Effects[i]; strings.HasPrefix(e.Name, kindWebhook) {
						e.State, e.Attempts = "rejected", []v1.ActionAttempt{{Message: notDelivered + "the node stopped"}}
					}
				}
			}
			posts = append(posts, h.changes(t, seen)...)
		}
		same(t, fmt.Sprint("posts of seed ", seed), posts, want...)
		told := 0
		for _, text := range m.Mails() {
			told += strings.Count(string(text), "FIRING (") + strings.Count(string(text), "RECOVERED:")
		}
		if told != len(want) {
			t.Errorf("seed %d: the mails have %d changes, want %d", seed, told, len(want))
		}
	}
}

func TestProbe_AMailIsUnknownAndAPost_IsSentAgain(t *testing.T) {
	m, h, am := newMailer(t), newHook(t), newHook(t)
	c := newCluster(t, backup+m.block("ops", "a@example.org")+h.webhook()+am.manager())
	c.findings = []v1.Finding{c.finding("backup-fails", "agg1")}
	effects := c.plan(nil).Effects
	if len(effects) != 3 {
		t.Fatalf("%+v", effects)
	}
	for _, e := range effects {
		want := sdk.Rejected
		if strings.HasPrefix(e.Name, "mail ") {
			want = sdk.Unknown
		}
		r := c.a.Probe(t.Context(), sdk.Attempt{Effect: e}, nil)
		if r.Outcome != want || (want == sdk.Rejected) != strings.HasPrefix(r.Message, notDelivered) {
			t.Errorf("%s: %+v", e.Name, r)
		}
	}
	if len(m.Mails())+len(h.take())+len(am.take()) != 0 {
		t.Error("a probe has sent something")
	}
}

func TestUsageRule_Figures_HaveTheirUnits(t *testing.T) {
	above := 2.0
	for want, m := range map[string]v1.Measure{
		"Cores in 24h is 3 core-hours, above 2 core-hours":      {Name: "Cores", Kind: "rate", Component: "Cores", Unit: "hour"},
		"GPUs in 24h is 3 GPU-hours, above 2 GPU-hours":         {Name: "GPUs", Kind: "rate", Component: "GPUs", Unit: "hour"},
		"TotalCPU in 24h is 3 CPU-seconds, above 2 CPU-seconds": {Name: "TotalCPU", Kind: "total", Component: "TotalCPU"},
		"wait in 24h is 3 hours, above 2 hours":                 {Name: "wait", Kind: "mean", Unit: "hour"},
		"cost in 24h is 3.00 EUR, above 2.00 EUR":               {Name: "cost", Kind: "worth", Unit: "EUR"},
		"records in 24h is 3, above 2":                          {Name: "records", Kind: "count"},
		"utilization in 24h is 300 %, above 200 %":              {Name: "utilization", Kind: "ratio"},
	} {
		u := usageRule{Measure: m.Name, Window: "24h", Above: &above}
		if got := strings.ReplaceAll(u.sayFigure(&m, "3", ""), "\u202f", " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
