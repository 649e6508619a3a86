package payload

import (
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Question says what is handed over.
type Question struct {
	usage   *v1.UsageQuery // nil: none is handed over
	changes bool           // the records that have changed are handed over
	batch   int            // of them at most, in one document
	quiet   bool           // there is no document when there is nothing to hand over
}

// Settings are those of a config block that say what is handed over, beside input.
type Settings struct {
	Batch     int  `hcl:"batch,optional" default:"1000" min:"1" max:"10000" doc:"how many changes are handed over at once"`
	SkipEmpty bool `hcl:"skip_empty,optional" default:"true" doc:"whether nothing happens when there is no usage, or no change"`
	// Usage is a query of /v1/usage.
	Usage *struct {
		Window  string            `hcl:"window,optional"`
		From    string            `hcl:"from,optional"`
		To      string            `hcl:"to,optional"`
		Zone    string            `hcl:"zone,optional"`
		Bucket  string            `hcl:"bucket,optional"`
		By      hcl.Strings       `hcl:"by,optional"`
		Measure hcl.Strings       `hcl:"measure,optional"`
		Where   map[string]string `hcl:"where,optional"`
		Unit    string            `hcl:"unit,optional"`
		Credit  string            `hcl:"credit,optional"`
		Top     int               `hcl:"top,optional"`
		Order   string            `hcl:"order,optional"`
	} `hcl:"usage,block" doc:"for input = \"usage\": window, or from and to, and the others as in GET /v1/usage"`
}

// Question makes the question of the settings and of input, which is none, usage or
// changes, and reports what is wrong with it in cfg.
func (s *Settings) Question(cfg *sdk.Config, input string) *Question {
	q := &Question{batch: s.Batch, quiet: s.SkipEmpty, changes: input == "changes"}
	u := s.Usage
	switch {
	case input == "usage" && u == nil:
		cfg.Errorf("input", `usage needs a block such as usage { window = "last-month"; by = ["group_id"] }`)
		return q
	case input != "usage" && u != nil:
		cfg.Errorf("input", `the block usage is for input = "usage"`)
	case u == nil:
		return q
	}
	q.usage = &v1.UsageQuery{
		Window: u.Window, From: u.From, To: u.To, Zone: u.Zone, Bucket: u.Bucket, Credit: u.Credit, Unit: u.Unit,
		Top: u.Top, Order: u.Order, By: v1.JoinList(u.By...), Measure: v1.JoinList(u.Measure...), Where: u.Where,
	}
	if u.Window == "" && u.From == "" {
		cfg.Errorf("input", "the block usage says no time; expected window, or from and to")
	}
	return q
}
