// Command bursar-source-auditor reads the records of AUDITOR: from a running server, or
// another bursar, from its database, and from its archives. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/record"
)

// version of the plugin.
const version = "1.0.0"

func main() { sdk.ServeSource(func() sdk.Source { return &source{now: time.Now} }) }

type source struct {
	settings

	now    func() time.Time
	kinds  record.Kinds // of AUDITOR's components
	wanted map[string]bool
	inputs []input
	deep   time.Time // when a look last went back by deep_overlap
}

// input is where records are.
type input interface {
	// collectRecords hands on the records behind a place, and moves the place.
	collectRecords(ctx context.Context, c *collection, at *place) error
	// countWindow returns how many records stop in a window, by another way.
	countWindow(ctx context.Context, w sdk.Window) (int64, error)
	// name is its address without secrets, or its path.
	name() string
}

// settings are those of the config block.
type settings struct {
	URL          string        `hcl:"url,optional" unset:"this, database or import is required" doc:"address of AUDITOR's server, or of another bursar, for example \"https://auditor.example.org:8443\""`
	Database     string        `hcl:"database,optional" unset:"none" doc:"AUDITOR's PostgreSQL in its place, for example \"postgres://reader@db.example.org/auditor\"; with a password from file(\"…\")"`
	Import       hcl.Strings   `hcl:"import,optional" unset:"the arguments of bursar import" doc:"such addresses, and archives of AUDITOR: Parquet files, patterns and folders, absolute"`
	Running      bool          `hcl:"running,optional" default:"true" doc:"send records without a stop as open records"`
	Relayed      bool          `hcl:"relayed,optional" default:"false" doc:"of another bursar, take also records that it has by a source auditor; bursar import takes them unless it is set"`
	Earliest     hcl.Time      `hcl:"earliest,optional" unset:"all that there is" doc:"only records that stop at this time or later"`
	Overlap      time.Duration `hcl:"overlap,optional" default:"1h" max:"366d" doc:"how far every look goes back behind the last one, for records that AUDITOR got late"`
	DeepOverlap  time.Duration `hcl:"deep_overlap,optional" default:"7d" max:"366d" doc:"the same, now and then and after a start of the agent; of a server only"`
	DeepInterval time.Duration `hcl:"deep_interval,optional" default:"6h" min:"1m" max:"366d" doc:"how often to go back by deep_overlap"`
	Page         int           `hcl:"page,optional" default:"10000" min:"2" max:"1000000" doc:"records of one question to AUDITOR; a bursar is asked for all at once"`
	Timeout      time.Duration `hcl:"timeout,optional" default:"5m" min:"1s" max:"24h" doc:"how long an answer may bring nothing; AUDITOR sorts its whole table for each question"`
	TLS          *struct {
		CA   string `hcl:"ca,optional" unset:"the agent's own" doc:"authority of the server's certificate"`
		Cert string `hcl:"cert,optional" unset:"the agent's own" doc:"certificate that AUDITOR accepts"`
		Key  string `hcl:"key,optional" unset:"the agent's own" doc:"its key"`
	} `hcl:"tls,block" doc:"certificates for https, PEM files"`
	Components []struct {
		Name string `hcl:"name,label"`
		Kind string `hcl:"kind" allowed:"rate total" doc:"what the component's amount is, where its name does not say it"`
	} `hcl:"component,block"`
}

// Describe implements sdk.Source.
func (s *source) Describe() sdk.Description {
	return sdk.Description{
		Type: "auditor", Version: version, Rank: sdk.RankImport, ReusesIDs: true, Interval: 5 * time.Minute, Attributes: recordAttributes(), Mapping: defaultMapping,
		Settings: new(settings),
	}
}

// Configure implements sdk.Source.
func (s *source) Configure(_ context.Context, cfg *sdk.Config) error {
	s.settings, s.inputs = settings{}, nil
	_ = cfg.Decode(&s.settings) // it is in what Err returns
	s.Relayed = s.Relayed || len(s.Import) > 0 && !cfg.Has("relayed")
	kinds := record.Kinds{}
	for _, c := range s.Components {
		kinds[c.Name], _ = record.ParseKind(c.Kind) // what is none has been reported
	}
	s.kinds, s.wanted = auditor.Kinds(kinds), map[string]bool{}
	for _, a := range recordAttributes() {
		s.wanted[a.Name] = cfg.Wants(a.Name)
	}
	places := []string(s.Import)
	if len(places) == 0 {
		for _, name := range []string{"url", "database"} {
			if cfg.Has(name) {
				s.addInput(cfg, name, cfg.Value(name).Str(), func(format string, args ...any) { cfg.Errorf(name, format, args...) })
			}
		}
	}
	for i, p := range places {
		s.addInput(cfg, "import", p, func(format string, args ...any) { cfg.ElementErrorf("import", i, format, args...) })
	}
	if !cfg.Has("url") && !cfg.Has("database") && !cfg.Has("import") {
		cfg.Errorf("url", `url or database must be set, for example url = "http://127.0.0.1:8000"`)
	}
	return cfg.Err()
}

// addInput takes an address, or the path of archives. Fail reports what is wrong with it.
func (s *source) addInput(cfg *sdk.Config, name, text string, fail func(string, ...any)) {
	scheme, _, _ := strings.Cut(text, "://")
	switch {
	case scheme == "postgres" || scheme == "postgresql" || name == "database":
		db, err := newDatabase(s, text)
		if err != nil {
			fail("%v", err)
			return
		}
		s.inputs = append(s.inputs, db)
	case scheme == "http" || scheme == "https":
		server, err := newServer(s, cfg, text)
		if err != nil {
			fail("%v", err)
			return
		}
		s.inputs = append(s.inputs, server)
	case name == "import" && filepath.IsAbs(text):
		s.inputs = append(s.inputs, &archive{text})
	default:
		fail("%q is not an address such as http://127.0.0.1:8000 or postgres://host/auditor, nor an absolute path", text)
	}
}

// Count implements sdk.Counter.
func (s *source) Count(ctx context.Context, w sdk.Window) (int64, error) {
	var n int64
	var failed error
	for _, in := range s.inputs {
		more, err := in.countWindow(ctx, w)
		failed = errors.Join(failed, s.nameInput(in, err))
		n += more
	}
	if failed != nil {
		return 0, failed
	}
	return n, nil
}

// nameInput names the input that failed, where there are several.
func (s *source) nameInput(in input, err error) error {
	if err == nil || len(s.inputs) == 1 {
		return err
	}
	return fmt.Errorf("%s: %w", in.name(), err)
}

// isExcluded reports whether the configuration leaves a record out.
func (s *source) isExcluded(r *record.Record) bool {
	if r.Open() {
		return !s.Running
	}
	return !s.Earliest.IsZero() && r.Stop.Std().Before(s.Earliest.Time)
}
