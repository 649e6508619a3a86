package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	netmail "net/mail"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/mail"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/alerts"
)

// labelName is the name of a label of Prometheus.
var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// destination is a receiver, or one address of it.
type destination struct {
	*receiver

	address *netmail.Address // of a mail
	state   *alerts.Receiver
}

// destinationKey names a destination in the state and begins the names of its effects.
func (d *destination) destinationKey() string {
	if d.address != nil {
		return kindMail + " " + d.Name + " to=" + d.address.Address
	}
	return d.receiverKind() + " " + d.Name
}

// wantsAlert reports whether a destination is told of an alert.
func (p *planner) wantsAlert(d *destination, a *alerts.Alert) bool {
	if len(d.Severity) > 0 && !slices.Contains(d.Severity, a.Severity) {
		return false
	}
	i := slices.IndexFunc(p.rules, func(r rule) bool { return r.Name == a.Rule })
	return i < 0 || len(p.rules[i].To) == 0 || slices.Contains(p.rules[i].To, d.Name)
}

// listDestinations are all, those that take nothing last: others do not wait for them. One that is
// new is told what fires already.
func (p *planner) listDestinations() []destination {
	var all []destination
	for i := range p.Receivers {
		r := &p.Receivers[i]
		if r.Mail == nil {
			all = append(all, destination{receiver: r})
		}
		for _, a := range r.addresses {
			all = append(all, destination{receiver: r, address: a})
		}
	}
	known := map[string]*alerts.Receiver{}
	all = slices.DeleteFunc(all, func(d destination) bool {
		_, twice := known[d.destinationKey()]
		known[d.destinationKey()] = nil
		return twice
	})
	for i := range all {
		d, s := &all[i], p.state
		key := d.destinationKey()
		if d.state = s.Receivers[key]; d.state == nil {
			d.state = &alerts.Receiver{Through: s.Last}
			for j := range s.Alerts {
				if a := &s.Alerts[j]; a.Told && a.Firing() {
					p.noteChange(a, a.Fired, key)
				}
			}
		}
		known[key] = d.state
	}
	p.state.Receivers = known
	slices.SortStableFunc(all, func(a, b destination) int { return cmp.Compare(a.state.Tries, b.state.Tries) })
	return all
}

// noteChange notes that an alert fires or has ended, for one destination or for all.
func (p *planner) noteChange(a *alerts.Alert, at time.Time, only string) {
	p.state.Last++
	p.state.Changes = append(p.state.Changes, alerts.Change{Number: p.state.Last, At: at, Alert: *a, Only: only})
}

// planMessages notes what has changed and plans a message to each destination that has not been told
// of it.
func (p *planner) planMessages() error {
	all := p.listDestinations()
	s := p.state
	for i := range s.Alerts {
		a := &s.Alerts[i]
		switch {
		case a.Firing() && !a.Told && s.Silenced(a, p.now) == nil:
			a.Told = true
			p.noteChange(a, p.now, "")
		case !a.Ended.IsZero() && a.Told:
			a.Told = false
			p.noteChange(a, p.now, "")
		case !a.Ended.IsZero() && a.Ended.Equal(p.now):
			a.Fired = time.Time{} // nothing was told of it
		}
	}
	s.Alerts = slices.DeleteFunc(s.Alerts, func(a alerts.Alert) bool { return !a.Ended.IsZero() && a.Fired.IsZero() })
	for i := range all {
		d := &all[i]
		if d.state.Sent != nil || p.now.Before(d.state.Next) {
			continue
		}
		if err := p.planMessage(d); err != nil {
			return err
		}
	}
	p.forgetTold()
	return nil
}

// forgetTold drops the changes that all destinations have been told of.
func (p *planner) forgetTold() {
	least := p.state.Last
	for _, r := range p.state.Receivers {
		through := r.Through
		if r.Sent != nil {
			through = r.Sent.Before
		}
		least = min(least, through)
	}
	p.state.Changes = slices.DeleteFunc(p.state.Changes, func(c alerts.Change) bool { return c.Number <= least })
}

// planMessage plans the message to a destination, if there is one.
func (p *planner) planMessage(d *destination) error {
	var news []alerts.Change
	for _, c := range p.state.Changes {
		if c.Number > d.state.Through && (c.Only == "" || c.Only == d.destinationKey()) && p.wantsAlert(d, &c.Alert) {
			news = append(news, c)
		}
	}
	var e *sdk.Effect
	var err error
	switch d.receiverKind() {
	case kindMail:
		e, err = p.planMail(d, news)
	case kindWebhook:
		e, err = p.planWebhook(d, news)
	default:
		e, err = p.planAlertmanager(d, news)
	}
	if err != nil {
		return fmt.Errorf("the message to %s: %w", d.destinationKey(), err)
	}
	before := d.state.Through
	d.state.Through = p.state.Last
	if e == nil {
		return nil
	}
	d.state.Sent = &alerts.Sent{Planned: p.now, Effect: e.Name, Before: before}
	p.out.Effects = append(p.out.Effects, *e)
	return nil
}

// messageID is the same for an action, a destination and the changes that it is told of.
func (p *planner) messageID(d *destination, news []alerts.Change) string {
	first, last := &news[0], &news[len(news)-1]
	return digestOf(p.label, d.destinationKey(), fmt.Sprint(first.Number, first.At.UnixMicro(), last.Number, last.At.UnixMicro(), len(news)))
}

func digestOf(parts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", parts)))[:32]
}

// name is that of an effect: of a destination and the changes.
func effectName(d *destination, news []alerts.Change) string {
	return fmt.Sprintf("%s %d-%d", d.destinationKey(), news[0].Number, news[len(news)-1].Number)
}

func (p *planner) planMail(d *destination, news []alerts.Change) (*sdk.Effect, error) {
	if len(news) == 0 {
		return nil, nil //nolint:nilnil // there is no message
	}
	w, err := p.templates.renderLetter(p.newLetter(news))
	if err != nil {
		return nil, err
	}
	id := "bursar." + p.messageID(d, news) + "@" + d.server.Domain()
	text, err := d.server.Compose(&mail.Message{To: d.address, Subject: w.subject, ID: id, Date: p.now.In(p.zone), Text: w.text})
	return &sdk.Effect{
		Name: effectName(d, news), Summary: w.subject, Payload: text, Show: fmt.Sprintf("To: %s\nSubject: %s\nMessage-ID: <%s>\n\n%s", d.address, w.subject, id, w.text),
	}, err
}

// posted is what a webhook gets.
type posted struct {
	Format    int            `json:"format"`
	ID        string         `json:"id"`
	Action    string         `json:"action"`
	Now       time.Time      `json:"now"`
	Firing    int            `json:"firing"`
	Recovered int            `json:"recovered"`
	URL       string         `json:"url,omitempty"`
	Changes   []postedChange `json:"changes"`
}

// postedChange is one change; its id is the same in each post that has it.
type postedChange struct {
	ID       string     `json:"id"`
	State    string     `json:"state"` // firing or recovered
	At       time.Time  `json:"at"`
	Rule     string     `json:"rule"`
	About    string     `json:"about"`
	Severity string     `json:"severity"`
	What     string     `json:"what"`
	Do       string     `json:"do"`
	Runbook  string     `json:"runbook"`
	Since    time.Time  `json:"since"`
	Fired    time.Time  `json:"fired"`
	Ended    *time.Time `json:"ended"` // null: it fires
}

func (p *planner) planWebhook(d *destination, news []alerts.Change) (*sdk.Effect, error) {
	if len(news) == 0 {
		return nil, nil //nolint:nilnil // there is no message
	}
	out := posted{Format: 1, ID: p.messageID(d, news), Action: "alert/" + p.label, Now: p.now, URL: p.pageAddress()}
	for i := range news {
		c := &news[i]
		a := &c.Alert
		j := postedChange{
			State: "firing", At: c.At, Rule: a.Rule, About: a.About, Severity: a.Severity, What: a.What, Do: a.Do, Runbook: a.Runbook, Since: a.Since, Fired: a.Fired,
		}
		if a.Ended.IsZero() {
			out.Firing++
		} else {
			out.Recovered++
			j.State, j.Ended = "recovered", &a.Ended
		}
		j.ID = digestOf(p.label, a.Key(), j.State, fmt.Sprint(c.Number, c.At.UnixMicro()))
		out.Changes = append(out.Changes, j)
	}
	body, err := json.Marshal(out)
	l := p.newLetter(news)
	return &sdk.Effect{Name: effectName(d, news), Summary: l.summaryLine(), Payload: body, Show: d.post.About() + string(body)}, err
}

// managed is an alert as Alertmanager's API v2 takes it.
type managed struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// planAlertmanager tells an Alertmanager all that fires and what ended lately: when something has
// changed, and again so that it does not believe that it has ended.
func (p *planner) planAlertmanager(d *destination, news []alerts.Change) (*sdk.Effect, error) {
	resend := d.Alertmanager.Resend
	var list []managed
	firing, lately := 0, 0
	for i := range p.state.Alerts {
		a := &p.state.Alerts[i]
		if !a.Told && a.Ended.IsZero() || !p.wantsAlert(d, a) {
			continue
		}
		m := managed{
			Labels:      map[string]string{"alertname": a.Rule, "severity": a.Severity, "about": a.About, "action": p.label},
			Annotations: map[string]string{"summary": a.What}, StartsAt: a.Fired, EndsAt: a.Ended, GeneratorURL: p.pageAddress(),
		}
		maps.Copy(m.Labels, d.Alertmanager.Labels)
		maps.DeleteFunc(m.Labels, func(_, value string) bool { return value == "" })
		for name, value := range map[string]string{"description": a.Do, "runbook_url": a.Runbook} {
			if value != "" {
				m.Annotations[name] = value
			}
		}
		if a.Ended.IsZero() {
			m.EndsAt = p.now.Add(3 * resend)
			firing++
		} else {
			lately++
		}
		list = append(list, m)
	}
	due := p.now.Sub(d.state.Told) >= resend-time.Second
	if len(news) == 0 && (firing == 0 || !due) || len(list) == 0 {
		return nil, nil //nolint:nilnil // there is no message
	}
	body, err := json.Marshal(list)
	summary := fmt.Sprintf("%d firing, %d ended", firing, lately)
	name := d.destinationKey() + " refresh"
	if len(news) > 0 {
		name = effectName(d, news)
	}
	return &sdk.Effect{Name: name, Summary: summary, Payload: body, Show: d.post.About() + string(body)}, err
}

// pageAddress is the address of the page of alerts; "": it is not known.
func (p *planner) pageAddress() string {
	if p.URL == "" {
		return ""
	}
	return strings.TrimRight(p.URL, "/") + "/ui/alerts"
}

// newLetter is what templates are given.
func (p *planner) newLetter(news []alerts.Change) *letter {
	l := &letter{Action: "alert/" + p.label, Zone: p.Zone, URL: p.pageAddress()}
	for i := range news {
		c := &news[i]
		item := item{Alert: c.Alert, At: c.At, Recovered: !c.Alert.Ended.IsZero()}
		l.Changes = append(l.Changes, item)
		if item.Recovered {
			l.Recovered++
		} else {
			l.Firing++
		}
	}
	return l
}
