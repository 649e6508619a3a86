package main

import (
	netmail "net/mail"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/filestore"
	"github.com/bursar-accounting/bursar/plugins/internal/mail"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// settings are those of the config block.
type settings struct {
	Period    string            `hcl:"period,optional" default:"last-month" doc:"a window of /v1/usage that has ended, such as last-month. Each file and each mail of a period is made once"`
	Zone      string            `hcl:"zone,optional" unset:"the site's" doc:"the time zone by whose clock periods begin"`
	By        hcl.Strings       `hcl:"by,optional" default:"[\"user_id\", \"group_id\", \"site_id\"]" doc:"keys, such as project; a file for each"`
	Where     map[string]string `hcl:"where,optional" doc:"a filter by keys, such as { site_id = \"nemo\" }; several values have commas, as in /v1/usage"`
	Cores     string            `hcl:"cores,optional" default:"Cores" doc:"the component of cores"`
	Benchmark string            `hcl:"benchmark,optional" default:"HEPScore23" doc:"the score of cores for khs23h; empty for none"`
	Name      string            `hcl:"file_name,optional" default:"auditor" doc:"how the names of files begin"`
	Directory hcl.Absolute      `hcl:"directory,optional" unset:"no files" doc:"a folder that is there and that the aggregator can write to; on all aggregators the same one, such as a mount"`
	To        hcl.Strings       `hcl:"to,optional" doc:"addresses that get a mail with the tables and files; with mail"`
	Mail      *mail.Settings    `hcl:"mail,block" unset:"no mails" doc:"the server that takes the mails"`
	Compat    *compatSettings   `hcl:"compat,block" unset:"bursar's own figures" doc:"make the table of AUDITOR's utilization plugin by its rules, of the month of period, in UTC"`
}

// config is what the action's config block says.
type config struct {
	settings

	label  string
	zone   *time.Location
	to     []*netmail.Address
	server *mail.Server
	files  filestore.Store
}

// decodeConfig reads the configuration and reports every problem.
func decodeConfig(cfg *sdk.Config) (config, error) {
	c := config{label: cfg.Label}
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	var err error
	if c.zone, err = time.LoadLocation(c.Zone); err != nil { // of "" UTC, until clock asks
		cfg.Errorf("zone", "%v; want one like \"Europe/Berlin\"", err)
	}
	if strings.ContainsAny(c.Name, "/\\") || strings.HasPrefix(c.Name, ".") || c.Name == "" {
		cfg.Errorf("file_name", "invalid name %q: use letters, digits and dashes", c.Name)
	}
	if c.Directory != "" {
		c.files = filestore.Directory(c.Directory)
	}
	for i, text := range c.To {
		a, err := netmail.ParseAddress(text)
		if err != nil {
			cfg.ElementErrorf("to", i, "invalid address %q: %v", text, err)
			continue
		}
		c.to = append(c.to, a)
	}
	filestore.CheckDirectory(cfg.Body, c.Directory)
	switch {
	case c.Mail == nil && c.Directory == "":
		cfg.Errorf("directory", "missing: set directory, or mail and to, or all")
	case (c.Mail == nil) != (len(c.To) == 0):
		cfg.Errorf("to", "to and a mail block are set together")
	}
	if c.Mail != nil {
		c.server = c.Mail.Read(cfg.Block("mail"), func() bool { return cfg.Err() == nil })
	}
	if c.Compat != nil {
		c.readCompat(cfg)
	}
	return c, cfg.Err()
}

func (c *config) readCompat(cfg *sdk.Config) {
	for _, name := range []string{"by", "where"} {
		if cfg.Has(name) {
			cfg.Errorf(name, "AUDITOR's table is of all records, by grouped_by of compat: leave %s out", name)
		}
	}
	c.Compat.sites = map[string]float64{}
	for site, text := range c.Compat.Sites {
		watts, err := strconv.ParseFloat(text, 64)
		if err != nil || watts < 0 {
			cfg.Block("compat").Errorf("watt_per_core_of_site", "%s: invalid watts %q", site, text)
		}
		c.Compat.sites[site] = watts
	}
	if c.Zone == "" {
		c.Zone = "UTC"
	}
	if c.zone != nil && c.Zone != "UTC" {
		cfg.Errorf("zone", "AUDITOR's months are those of UTC")
	}
}
