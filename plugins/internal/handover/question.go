package handover

import (
	"net/url"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Question says what is handed over.
type Question struct {
	usage   url.Values // of /v1/usage; nil: none is handed over
	changes bool       // the records that have changed are handed over
	batch   int        // of them at most, in one document
	quiet   bool       // there is no document when there is nothing to hand over
}

const maxBatch = 10_000

// Read reads the question from a config block, and reports what is wrong with it
// there. The default of input is none.
func Read(cfg *sdk.Config, none string) *Question {
	q := &Question{batch: int(cfg.Int("batch", 1000)), quiet: cfg.Bool("skip_empty", true)}
	hand := cfg.Enum("input", none, "none", "usage", "changes")
	q.changes = hand == "changes"
	if q.batch < 1 || q.batch > maxBatch {
		cfg.Errorf("batch", "%d is not between 1 and %d", q.batch, maxBatch)
	}
	q.read(cfg, hand)
	return q
}

// read reads the block usage { … }: attributes as in a query of /v1/usage.
func (q *Question) read(cfg *sdk.Config, hand string) {
	b := cfg.Block("usage")
	switch {
	case hand == "usage" && b == nil:
		cfg.Errorf("input", `usage needs a block such as usage { window = "last-month"; by = ["group_id"] }`)
		return
	case hand != "usage" && b != nil:
		cfg.Errorf("input", `the block usage is for input = "usage"`)
	case b == nil:
		return
	}
	q.usage = url.Values{}
	for _, name := range []string{"window", "from", "to", "zone", "bucket", "credit", "unit", "top", "order"} {
		if s := b.String(name, ""); s != "" {
			q.usage.Set(name, s)
		}
	}
	for _, name := range []string{"by", "measure"} {
		if list := b.Strings(name, nil); len(list) > 0 {
			q.usage.Set(name, strings.Join(list, ","))
		}
	}
	for key, value := range b.StringMap("where", nil) {
		q.usage.Set("where["+key+"]", value)
	}
	if !q.usage.Has("window") && !q.usage.Has("from") {
		cfg.Errorf("input", "the block usage says no time; expected window, or from and to")
	}
}
