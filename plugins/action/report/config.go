package main

import (
	netmail "net/mail"
	"net/url"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/filestore"
	"github.com/bursar-accounting/bursar/plugins/internal/mail"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// settings are those of the config block.
type settings struct {
	Report     string            `hcl:"report" doc:"which one: a name that bursar report lists, such as usage or statement"`
	Period     hcl.Strings       `hcl:"period,optional" default:"[\"last-month\"]" doc:"a window of /v1/usage, or two of them side by side. Each recipient gets the report of a period once; of a period that goes on, such as \"this-month\", once a day, and of a period shorter than a day, such as \"1h\", once in that time. A page of a site is published again whenever it has changed"`
	Zone       string            `hcl:"zone,optional" unset:"the site's" doc:"the time zone by whose clock periods begin"`
	Query      map[string]string `hcl:"query,optional" doc:"the report's other parameters, which /v1/reports lists, such as { by = \"user_id\", top = \"20\" }"`
	Where      map[string]string `hcl:"where,optional" doc:"a filter by keys, such as { site_id = \"nemo\" }; several values have commas, as in /v1/usage"`
	To         hcl.Strings       `hcl:"to,optional" doc:"addresses that get the report of all"`
	Each       string            `hcl:"each,optional" unset:"none" allowed:"pi project group user" doc:"one report for each of these, about its own usage alone, to its own address"`
	Recipients []recipient       `hcl:"recipient,block" doc:"the addresses of one of these, by its id: recipient \"atlas\" { … }"`
	Unused     string            `hcl:"without_usage,optional" default:"mail" allowed:"mail note" doc:"what follows when nothing was used: a mail that says so, or a note of the run"`
	Tables     hcl.Strings       `hcl:"tables,optional" unset:"all" doc:"only these tables of the report, by their names in its JSON, such as advice. Where it has none of them, nothing is sent, and the run notes it"`
	Attach     hcl.Strings       `hcl:"attach,optional" default:"[\"csv\", \"xlsx\"]" doc:"files to attach: csv; xlsx, a workbook for spreadsheet programs; and html, which prints well"`
	Templates  hcl.Absolute      `hcl:"templates,optional" unset:"built in" doc:"a folder with templates of your own, see below"`
	Mail       *mail.Settings    `hcl:"mail,block" unset:"this or site" doc:"the server that takes the mails"`
	Site       *siteSettings     `hcl:"site,block" unset:"this or mail" doc:"publish the reports as pages of a static site, with an index and an Atom feed"`
}

type recipient struct {
	ID string      `hcl:"id,label"`
	To hcl.Strings `hcl:"to" doc:"its addresses. Without a block, that of the person; of a project or a group, that of the principal investigator"`
}

// config is what the action's config block says.
type config struct {
	settings

	label     string
	zone      *time.Location
	templates *templates
	server    *mail.Server // nil without a mail block
}

// decodeConfig reads the configuration and reports every problem.
func decodeConfig(cfg *sdk.Config) (config, error) {
	c := config{label: cfg.Label}
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	var err error
	if c.zone, err = time.LoadLocation(c.Zone); err != nil { // of "" UTC, until clock asks
		cfg.Errorf("zone", "%v; want one like \"Europe/Berlin\"", err)
	}
	if len(c.Period) > 2 {
		cfg.Errorf("period", "%d periods; at most two are shown side by side", len(c.Period))
	}
	for _, name := range c.Attach {
		if !slices.Contains([]string{"csv", "xlsx", "html"}, name) {
			cfg.Errorf("attach", "unknown %q: use csv, xlsx or html", name)
		}
	}
	if len(c.Tables) > 0 && slices.Contains(c.Attach, "html") {
		cfg.Errorf("attach", "html has all tables of the report: leave it out, or leave out tables")
	}
	for name := range c.Query {
		if slices.Contains([]string{"period", "zone", "format", "download"}, name) {
			cfg.Errorf("query", "%s is not allowed here: period and zone are settings of their own", name)
		}
	}
	c.readRecipients(cfg)
	if c.templates, err = loadTemplates(string(c.Templates)); err != nil {
		cfg.Errorf("templates", "%v", err)
	}
	c.readSite(cfg)
	if c.Mail != nil {
		c.server = c.Mail.Read(cfg.Block("mail"), func() bool { return cfg.Err() == nil })
	}
	return c, cfg.Err()
}

func (c *config) readRecipients(cfg *sdk.Config) {
	if c.Mail != nil && len(c.To) == 0 && c.Each == "" {
		cfg.Errorf("to", "there are no recipients: set to, or each, or both")
	}
	if c.Each == "" && len(c.Recipients) > 0 {
		cfg.Errorf("each", "missing: it says of what the recipient blocks are, such as group")
	}
	addresses := func(b *sdk.Body, list []string) {
		for i, text := range list {
			if _, err := netmail.ParseAddress(text); err != nil {
				b.ElementErrorf("to", i, "invalid address %q: %v", text, err)
			}
		}
	}
	addresses(cfg.Body, c.To)
	for i, b := range cfg.Blocks("recipient") {
		addresses(b, c.Recipients[i].To)
	}
}

func (c *config) readSite(cfg *sdk.Config) {
	if c.Site != nil {
		c.Site.files = filestore.Of(cfg.Block("site"), c.Site.Directory, c.Site.Bucket)
	}
	switch {
	case c.Mail == nil && c.Site == nil:
		cfg.Errorf("mail", "missing: add a mail block, which names the server that takes the mails, or a site block")
	case c.Mail == nil && len(c.To) > 0:
		cfg.Errorf("to", "it is for mails, and there is no mail block")
	case c.Site != nil && c.Site.URL != "":
		if u, err := url.Parse(c.Site.URL); err != nil || u.Host == "" {
			cfg.Block("site").Errorf("url", "%q is not a URL such as \"https://www.example.org/reports/\"", c.Site.URL)
		}
	}
}
