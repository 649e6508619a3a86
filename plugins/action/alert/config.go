package main

import (
	netmail "net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/mail"
	"github.com/bursar-accounting/bursar/plugins/internal/post"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// settings are those of the config block.
type settings struct {
	Defaults  bool          `hcl:"defaults,optional" doc:"use the rules of the table below; a rule block of the same name replaces one of them"`
	Without   hcl.Strings   `hcl:"without,optional" doc:"names of default rules to leave out"`
	URL       string        `hcl:"url,optional" unset:"no links" doc:"the address of bursar's pages, such as \"https://bursar.example.org\", for the links in messages"`
	Keep      time.Duration `hcl:"keep,optional" default:"1m" min:"0s" max:"1h" doc:"how long a condition must be over before its alert ends: a new leader needs some seconds until it knows what the one before it knew"`
	Zone      string        `hcl:"zone,optional" unset:"the site's" doc:"the time zone of the times in mails"`
	Templates hcl.Absolute  `hcl:"templates,optional" unset:"built in" doc:"a folder with templates of your own, see below"`
	Rules     []rule        `hcl:"rule,block" doc:"what to look for: rule \"<name>\" { … }"`
	Receivers []receiver    `hcl:"receiver,block" doc:"whom to tell: receiver \"<name>\" { … }. Without one, the page, the command line and the metrics show what fires"`
}

// rule is a condition. One of Findings, Budget, Conflicts, Usage and Share is set.
type rule struct {
	Name      string        `hcl:"name,label"`
	Findings  hcl.Strings   `hcl:"findings,optional" doc:"kinds of findings of bursar status, such as [\"source-silent\"]; an alert for each finding"`
	Budget    string        `hcl:"budget,optional" doc:"the name of a budget, or \"*\" for each; with used or forecast"`
	Used      *float64      `hcl:"used,optional" doc:"per cent of the budget that are used"`
	Forecast  *float64      `hcl:"forecast,optional" doc:"per cent of the budget that will be used at the end of its period at the present pace"`
	Conflicts bool          `hcl:"conflicts,optional" doc:"runs about whose start origins disagree; an alert for each run"`
	Usage     *usageRule    `hcl:"usage,block" doc:"a figure of /v1/usage"`
	Share     *shareRule    `hcl:"share,block" doc:"what those who contribute used beside their share, by /v1/subscription; an alert for each"`
	For       time.Duration `hcl:"for,optional" doc:"how long the condition must last before the alert fires"`
	Severity  string        `hcl:"severity,optional" unset:"that of the finding, else warning" allowed:"notice warning critical"`
	To        hcl.Strings   `hcl:"to,optional" unset:"all" doc:"names of the receivers to tell"`
	Runbook   string        `hcl:"runbook,optional" doc:"the address of what to do, for messages and the page"`

	lenient bool // a default rule, which a cluster without what it looks at does not break
}

// usageRule compares a figure of /v1/usage with bounds.
type usageRule struct {
	Measure string            `hcl:"measure" doc:"one measure, such as utilization, efficiency, Cores or records; of components it is in hours, and of utilization and efficiency 1 is all"`
	Window  string            `hcl:"window,optional" default:"24h" doc:"the time that counts, such as 24h or this-month"`
	Zone    string            `hcl:"zone,optional" unset:"the site's" doc:"the time zone of the window"`
	By      string            `hcl:"by,optional" unset:"one alert for all" doc:"a key, such as cluster or group_id; an alert for each value"`
	Where   map[string]string `hcl:"where,optional" doc:"a filter by keys, such as { site_id = \"nemo\" }; several values have commas, as in /v1/usage"`
	Above   *float64          `hcl:"above,optional" doc:"fire when the figure is greater"`
	Below   *float64          `hcl:"below,optional" doc:"fire when the figure is smaller"`
}

// shareRule compares what each contributor used with the share that is due to it.
type shareRule struct {
	Above *float64 `hcl:"above,optional" doc:"fire when the share of the use ÷ the share of the contributions is greater, such as 2 for twice the share"`
	Below *float64 `hcl:"below,optional" doc:"fire when it is smaller, such as 0.5; it is 0 for a contributor who used nothing"`
	Over  string   `hcl:"over,optional" default:"7d" doc:"the time that counts, such as 7d or this-month"`
	Zone  string   `hcl:"zone,optional" unset:"the site's" doc:"the time zone of that time"`
}

// receiver is whom to tell. One of Mail, Webhook and Alertmanager is set.
type receiver struct {
	Name         string         `hcl:"name,label"`
	Severity     hcl.Strings    `hcl:"severity,optional" unset:"all" doc:"only alerts of these: notice, warning and critical"`
	To           hcl.Strings    `hcl:"to,optional" doc:"the addresses; with mail"`
	Mail         *mail.Settings `hcl:"mail,block" doc:"the server that takes the mails"`
	Webhook      *webhook       `hcl:"webhook,block" doc:"post the changes as JSON"`
	Alertmanager *alertmanager  `hcl:"alertmanager,block" doc:"keep an Alertmanager up to date, by its API v2"`

	addresses []*netmail.Address
	server    *mail.Server
	post      *post.Receiver
}

// webhook is a receiver of posts.
type webhook struct {
	URL        hcl.String        `hcl:"url" doc:"where to post; http only to this machine, unless allow_plain is set"`
	Secret     hcl.Strings       `hcl:"secret,optional" doc:"what posts are signed with, as by the action webhook; required unless unsigned is set"`
	Unsigned   bool              `hcl:"unsigned,optional" doc:"posts are not signed"`
	Headers    map[string]string `hcl:"headers,optional" doc:"headers of your own, such as { Authorization = file(\"/etc/bursar/token\") }. Values are never shown"`
	Timeout    time.Duration     `hcl:"timeout,optional" default:"30s" min:"1s" max:"10m" doc:"for one post"`
	TLS        *post.TLS         `hcl:"tls,block" doc:"PEM files, which are read anew for each post"`
	AllowPlain bool              `hcl:"allow_plain,optional" doc:"http to other machines: everyone on the way can read and change it"`
}

// alertmanager is an Alertmanager.
type alertmanager struct {
	URL        hcl.String        `hcl:"url" doc:"its address, such as \"http://localhost:9093\"; http only to this machine, unless allow_plain is set"`
	Labels     map[string]string `hcl:"labels,optional" doc:"labels of every alert, such as { site = \"nemo\" }"`
	Resend     time.Duration     `hcl:"resend,optional" default:"5m" min:"1m" max:"1h" doc:"how often to send what still fires; the Alertmanager takes for ended what does not come for three times that long"`
	Headers    map[string]string `hcl:"headers,optional" doc:"headers of your own, such as { Authorization = file(\"/etc/bursar/token\") }. Values are never shown"`
	Timeout    time.Duration     `hcl:"timeout,optional" default:"30s" min:"1s" max:"10m" doc:"for one post"`
	TLS        *post.TLS         `hcl:"tls,block" doc:"PEM files, which are read anew for each post"`
	AllowPlain bool              `hcl:"allow_plain,optional" doc:"http to other machines: everyone on the way can read and change it"`
}

// The kinds of receivers.
const (
	kindMail         = "mail"
	kindWebhook      = "webhook"
	kindAlertmanager = "alertmanager"
)

func (r *receiver) receiverKind() string {
	switch {
	case r.Mail != nil:
		return kindMail
	case r.Webhook != nil:
		return kindWebhook
	}
	return kindAlertmanager
}

// config is what the action's config block says.
type config struct {
	settings

	label     string
	zone      *time.Location
	rules     []rule // those that are watched
	templates *templates
}

func (c *config) findReceiver(name string) *receiver {
	if i := slices.IndexFunc(c.Receivers, func(r receiver) bool { return r.Name == name }); i >= 0 {
		return &c.Receivers[i]
	}
	return nil
}

// readConfig reads the configuration and reports every problem.
func readConfig(cfg *sdk.Config) (config, error) {
	c := config{label: cfg.Label}
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	var err error
	if c.zone, err = time.LoadLocation(c.Zone); err != nil {
		cfg.Errorf("zone", "%v; want one like \"Europe/Berlin\"", err)
	}
	if u, err := url.Parse(c.URL); c.URL != "" && (err != nil || u.Host == "") {
		cfg.Errorf("url", "%q is not a URL such as \"https://bursar.example.org\"", c.URL)
	}
	if c.templates, err = loadTemplates(string(c.Templates)); err != nil {
		cfg.Errorf("templates", "%v", err)
	}
	c.readReceivers(cfg)
	c.readRules(cfg)
	return c, cfg.Err()
}

// readRules checks the rules and puts the default ones before them.
func (c *config) readRules(cfg *sdk.Config) {
	named := map[string]bool{}
	for i, b := range cfg.Blocks("rule") {
		r := &c.Rules[i]
		if named[r.Name] {
			b.Errorf("", "rule %q given more than once", r.Name)
		}
		named[r.Name] = true
		r.checkRule(b)
		for at, to := range r.To {
			if c.findReceiver(to) == nil {
				b.ElementErrorf("to", at, "unknown receiver %q: use %s", to, listInWords(namesOf(c.Receivers, func(r receiver) string { return r.Name })))
			}
		}
	}
	own := namesOf(defaultRules(), func(r rule) string { return r.Name })
	for i, name := range c.Without {
		if !slices.Contains(own, name) {
			cfg.ElementErrorf("without", i, "unknown rule %q: use %s", name, listInWords(own))
		}
	}
	switch {
	case c.Defaults:
		for _, r := range defaultRules() {
			if !named[r.Name] && !slices.Contains(c.Without, r.Name) {
				c.rules = append(c.rules, r)
			}
		}
	case len(c.Without) > 0:
		cfg.Errorf("without", "there are no default rules to leave out: set defaults = true")
	case len(c.Rules) == 0:
		cfg.Errorf("defaults", "there are no rules: set defaults = true, or add rule blocks")
	}
	c.rules = append(c.rules, c.Rules...)
}

// checkRule reports what is wrong with a rule.
func (r *rule) checkRule(b *sdk.Body) {
	kinds := 0
	for _, set := range []bool{len(r.Findings) > 0, r.Budget != "", r.Conflicts, r.Usage != nil, r.Share != nil} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		b.Errorf("", "rule %q has %d conditions: set one of findings, budget, conflicts, usage and share", r.Name, kinds)
	}
	for i, id := range r.Findings {
		if !slices.Contains(findingKinds(), id) {
			b.ElementErrorf("findings", i, "unknown finding %q: use %s", id, listInWords(findingKinds()))
		}
	}
	switch {
	case r.Budget == "" && (r.Used != nil || r.Forecast != nil):
		b.Errorf("budget", "missing: used and forecast are of a budget")
	case r.Budget != "" && (r.Used == nil) == (r.Forecast == nil):
		b.Errorf("budget", "set either used or forecast, in per cent")
	}
	if s := r.Share; s != nil {
		if s.Above == nil && s.Below == nil {
			b.Block("share").Errorf("", "set above, below or both")
		}
		if s.Above != nil && s.Below != nil && *s.Above < *s.Below {
			b.Block("share").Errorf("above", "must not be less than below")
		}
	}
	if u := r.Usage; u != nil {
		in := b.Block("usage")
		if (u.Above == nil) == (u.Below == nil) {
			in.Errorf("measure", "set either above or below")
		}
		if len(v1.SplitList(u.Measure)) > 1 || len(v1.SplitList(u.By)) > 1 {
			in.Errorf("measure", "one measure and one key are allowed")
		}
	}
}

// readReceivers checks the receivers.
func (c *config) readReceivers(cfg *sdk.Config) {
	sound := func() bool { return cfg.Err() == nil }
	named := map[string]bool{}
	for i, b := range cfg.Blocks("receiver") {
		r := &c.Receivers[i]
		if named[r.Name] {
			b.Errorf("", "receiver %q given more than once", r.Name)
		}
		named[r.Name] = true
		if !receiverName.MatchString(r.Name) {
			b.Errorf("", "invalid name %q of a receiver: use letters, digits, dots and dashes", r.Name)
		}
		kinds := 0
		for _, set := range []bool{r.Mail != nil, r.Webhook != nil, r.Alertmanager != nil} {
			if set {
				kinds++
			}
		}
		if kinds != 1 {
			b.Errorf("", "receiver %q has %d blocks: set one of mail, webhook and alertmanager", r.Name, kinds)
			continue
		}
		for at, s := range r.Severity {
			if !slices.Contains(allSeverities(), s) {
				b.ElementErrorf("severity", at, "unknown severity %q: use %s", s, listInWords(allSeverities()))
			}
		}
		if (r.Mail != nil) != (len(r.To) > 0) {
			b.Errorf("to", "to and a mail block are set together")
		}
		r.readReceiver(b, sound)
	}
}

// readReceiver makes the receiver ready to be told.
func (r *receiver) readReceiver(b *sdk.Body, sound func() bool) {
	agent := "bursar-action-alert/" + version
	switch {
	case r.Mail != nil:
		for i, text := range r.To {
			a, err := netmail.ParseAddress(text)
			if err != nil {
				b.ElementErrorf("to", i, "invalid address %q: %v", text, err)
				continue
			}
			r.addresses = append(r.addresses, a)
		}
		r.server = r.Mail.Read(b.Block("mail"), sound)
	case r.Webhook != nil:
		w := r.Webhook
		r.post = post.Read(b.Block("webhook"), sound, &post.Settings{
			URL: w.URL, Method: "POST", Secrets: w.Secret, Unsigned: w.Unsigned, Headers: w.Headers, Timeout: w.Timeout, TLS: w.TLS, AllowPlain: w.AllowPlain, Agent: agent,
		})
	default:
		m := r.Alertmanager
		at := m.URL
		if at.Value != "" {
			at.Value = strings.TrimRight(at.Value, "/") + "/api/v2/alerts"
		}
		in := b.Block("alertmanager")
		for name := range m.Labels {
			if !labelName.MatchString(name) {
				in.Errorf("labels", "%q is not the name of a label", name)
			}
		}
		r.post = post.Read(in, sound, &post.Settings{
			URL: at, Method: "POST", Unsigned: true, Headers: m.Headers, Timeout: m.Timeout, TLS: m.TLS, AllowPlain: m.AllowPlain, Agent: agent,
		})
	}
}

// receiverName is a name that is a word of the name of an effect.
var receiverName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func namesOf[T any](all []T, name func(T) string) (out []string) {
	for _, v := range all {
		out = append(out, name(v))
	}
	return out
}

// listInWords writes names for people.
func listInWords(names []string) string {
	if len(names) == 0 {
		return "none, since there are none"
	}
	return strings.Join(names, ", ")
}
