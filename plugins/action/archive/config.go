package main

import (
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/filestore"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/recordfile"
)

// settings are those of the config block.
type settings struct {
	Directory    hcl.Absolute      `hcl:"directory,optional" unset:"this or bucket" doc:"a folder that is there and that the aggregator can write to; on all aggregators the same one, such as a mount"`
	Bucket       *filestore.Bucket `hcl:"bucket,block" unset:"this or directory" doc:"a bucket of an S3-compatible server"`
	Schema       string            `hcl:"schema,optional" default:"bursar" allowed:"bursar auditor" doc:"the columns: bursar's, from which records are restored exactly, or those of AUDITOR's archives, with milliseconds"`
	WriteAfter   time.Duration     `hcl:"write_after,optional" default:"7d" min:"0s" doc:"how long after its end a month is written"`
	RemoveMonths int               `hcl:"remove_after_months,optional" unset:"never" min:"1" max:"1200" doc:"how many months after its end a month leaves the store, when its files were read back and agree with it"`
	Keep         hcl.Strings       `hcl:"keep,optional" doc:"meta keys of removed records that stay in the store, beside those of usage"`
	First        string            `hcl:"first,optional" default:"1970-01" doc:"the first month; what is older stays as it is"`
}

// config is what the action's config block says.
type config struct {
	settings

	label  string
	first  month
	schema recordfile.Schema
	files  filestore.Store
}

// decodeConfig reads the configuration and reports every problem.
func decodeConfig(cfg *sdk.Config) (config, error) {
	c := config{label: cfg.Label}
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	c.schema = recordfile.Schema(c.Schema)
	c.files = filestore.Of(cfg.Body, c.Directory, c.Bucket)
	if c.schema == recordfile.Auditor && c.RemoveMonths > 0 {
		cfg.Errorf("remove_after_months", "records cannot be restored from AUDITOR's schema: remove them by an action with bursar's")
	}
	var err error
	if c.first, err = parseMonth(c.First); err != nil {
		cfg.Errorf("first", "%v", err)
	}
	return c, cfg.Err()
}
