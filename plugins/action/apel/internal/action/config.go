package action

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/ams"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/fields"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/smime"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Record is the variable of expressions, which has a value here only.
const Record = "record"

// config is what the action's config block says.
type config struct {
	label      string       // of the action
	from       month.Month  // the first month that is reported
	recheck    int          // how many months before the present one are looked at again
	jobs       message.Kind // of individual jobs; "": summaries are sent
	siteMeta   []string
	maxMessage int
	sites      []site
	fields     *fields.Set
	cert, key  string // of the signature; "": nothing is signed
	ams        *ams.Config
	directory  string
	described  bool // the configuration sets InfrastructureDescription
}

// site is a site as GOCDB knows it.
type site struct {
	name string
	ids  []string // values of siteMeta
	ce   string   // the kind of compute element, for InfrastructureDescription
}

// Bounds of max_message. A signature adds some kilobytes, base64 a third.
const (
	defaultMaxMessage = 500_000
	minMaxMessage     = 10_000
	maxMaxMessage     = 4 << 20
)

// read reads the configuration and reports every problem.
func read(cfg *sdk.Config) (config, error) {
	c := config{
		label:      cfg.Label,
		recheck:    int(cfg.Int("recheck", 1)),
		siteMeta:   cfg.Strings("site_meta", []string{"site_id"}),
		maxMessage: int(cfg.Size("max_message", defaultMaxMessage)),
	}
	c.readScope(cfg)
	c.readSites(cfg)
	c.readTargets(cfg)
	compiled, diags := readFields(cfg)
	c.fields = compiled
	if b := cfg.Block("fields"); b != nil {
		c.described = b.Has("InfrastructureDescription")
	}
	return c, problems(cfg.Err(), diags)
}

func (c *config) readScope(cfg *sdk.Config) {
	cfg.Require("from")
	if text := cfg.String("from", ""); text != "" {
		var err error
		if c.from, err = month.Parse(text); err != nil {
			cfg.Errorf("from", "%v", err)
		}
	}
	if c.recheck < 0 || c.recheck > 24 {
		cfg.Errorf("recheck", "%d months; expected 0 to 24", c.recheck)
	}
	if c.maxMessage < minMaxMessage || c.maxMessage > maxMaxMessage {
		cfg.Errorf("max_message", "%d bytes; expected 10 kB to 4 MiB", c.maxMessage)
	}
	if len(c.siteMeta) == 0 {
		cfg.Errorf("site_meta", "name the meta key that holds the site, for example site_id")
	}
	send, version := cfg.Enum("send", "summaries", "summaries", "jobs"), cfg.Enum("jobs_version", "0.4", "0.3", "0.4")
	if send == "jobs" {
		c.jobs = map[string]message.Kind{"0.3": message.Jobs03, "0.4": message.Jobs04}[version]
	} else if cfg.Has("jobs_version") {
		cfg.Errorf("jobs_version", "it is of messages of jobs; they are sent with send = \"jobs\"")
	}
}

func (c *config) readSites(cfg *sdk.Config) {
	seen := map[string]bool{}
	blocks := cfg.Blocks("site")
	if len(blocks) == 0 {
		cfg.Errorf("site", "at least one block site \"NAME\" { } is needed; the name is that in GOCDB")
	}
	for _, b := range blocks {
		name, ok := label(b)
		if !ok || seen[name] || message.CheckText("site", name) != nil {
			b.Errorf("site", "write site \"NAME\" { }, each name once, in ASCII")
			continue
		}
		seen[name] = true
		c.sites = append(c.sites, site{name: name, ids: b.Strings("ids", []string{name}), ce: b.String("ce", unknown)})
		if ce := b.String("ce", unknown); message.CheckText("ce", ce) != nil || ce == "" || len(ce) > longestPart {
			b.Errorf("ce", "invalid ce %q: write the kind of compute element in at most %d printable ASCII characters, for example \"ARC\"", ce, longestPart)
		}
		if len(b.Strings("ids", []string{name})) == 0 {
			b.Errorf("ids", "the list is empty; leave it out, or name the values of %v", c.siteMeta)
		}
	}
}

// label is the one label of a block.
func label(b *sdk.Body) (string, bool) {
	labels := b.Labels()
	return append(labels, "")[0], len(labels) == 1 && labels[0] != ""
}

// readTargets reads where messages go and who signs them.
func (c *config) readTargets(cfg *sdk.Config) {
	sign, service, directory := cfg.Block("sign"), cfg.Block("ams"), cfg.Block("directory")
	if (service == nil) == (directory == nil) {
		cfg.Errorf("ams", "one of the blocks ams { } and directory { } is needed, and not both")
	}
	if sign != nil {
		sign.Require("cert", "key")
		c.cert, c.key = absolute(sign, "cert", ""), absolute(sign, "key", "")
	}
	switch {
	case directory != nil && sign != nil:
		sign.Errorf("sign", "the SSM that takes the messages from the directory signs them itself")
	case service != nil && sign == nil:
		service.Errorf("sign", "a block sign { cert = … key = … } is needed: receivers take signed messages only")
	}
	if directory != nil {
		directory.Require("path")
		c.directory = absolute(directory, "path", "")
	}
	if service != nil {
		c.readAMS(service)
	}
	c.tryKeys(sign, service)
}

func (c *config) readAMS(b *sdk.Body) {
	b.Require("host")
	c.ams = &ams.Config{
		Host: b.String("host", ""), Port: int(b.Int("port", 443)), AuthnPort: int(b.Int("authn_port", 8443)),
		Project: b.String("project", "accounting"), Topic: b.String("topic", "gLite-APEL"),
		Cert: absolute(b, "cert", c.cert), Key: absolute(b, "key", c.key), CA: absolute(b, "ca", ""),
		Timeout: b.Duration("timeout", 30*time.Second),
	}
	for _, name := range []string{"port", "authn_port"} {
		if n := b.Int(name, 1); n < 1 || n > 65535 {
			b.Errorf(name, "%d is no port", n)
		}
	}
	if c.ams.Timeout <= 0 {
		b.Errorf("timeout", "it must be more than 0")
	}
}

// absolute reads a file's name.
func absolute(b *sdk.Body, name, def string) string {
	s := b.String(name, def)
	if s != "" && !filepath.IsAbs(s) {
		b.Errorf(name, "%q is not absolute", s)
	}
	return s
}

// tryKeys reads certificates and keys once. They are read again for every run, so
// that renewed ones are taken.
func (c *config) tryKeys(sign, service *sdk.Body) {
	if sign != nil && c.cert != "" && c.key != "" {
		if _, err := smime.Load(c.cert, c.key); err != nil {
			sign.Errorf("cert", "%v", err)
			return
		}
	}
	if c.ams != nil && c.ams.Cert != "" && c.ams.Key != "" {
		client, err := ams.New(*c.ams)
		if err != nil {
			service.Errorf("cert", "%v", err)
			return
		}
		client.Close()
	}
}

// readFields reads the expressions.
func readFields(cfg *sdk.Config) (*fields.Set, sdk.Diagnostics) {
	c, block := fields.Config{Fields: map[string]fields.Source{}}, cfg.Block("fields")
	for _, name := range block.Attributes() {
		if !fields.Known(name) {
			block.Errorf(name, "APEL has no field %q; %s", name, hint(name))
			continue
		}
		if s, ok := source(block, name); ok {
			c.Fields[name] = s
		}
	}
	for _, name := range []string{"VO", "SubmitHost"} {
		if _, ok := c.Fields[name]; !ok {
			cfg.Errorf("fields", "fields { %s = … } is needed", name)
		}
	}
	c.Benchmarks = readBenchmarks(cfg)
	set, diags := fields.Compile(c)
	return set, convert(diags)
}

func hint(name string) string {
	if s := hcl.Suggest(name, fields.Names()); s != "" {
		return "did you mean " + s + "?"
	}
	return "see the README for those that it has"
}

func readBenchmarks(cfg *sdk.Config) []fields.Benchmark {
	blocks := cfg.Blocks("benchmark")
	if len(blocks) == 0 {
		return []fields.Benchmark{{Name: "HEPscore23"}}
	}
	var out []fields.Benchmark
	seen := map[string]bool{}
	for _, b := range blocks {
		text, _ := label(b)
		name, err := message.Benchmark(text)
		if err != nil || seen[name] {
			b.Errorf("benchmark", "write benchmark \"NAME\" { }, each name once: HEPscore23, hepspec or si2k")
			continue
		}
		seen[name] = true
		one := fields.Benchmark{Name: name}
		one.Score, _ = source(b, "score")
		one.Wall, _ = source(b, "wall")
		one.CPU, _ = source(b, "cpu")
		out = append(out, one)
	}
	return out
}

// source is an attribute as an expression or a constant; false when it is absent.
func source(b *sdk.Body, name string) (fields.Source, bool) {
	if text, at, ok := b.Expression(name); ok {
		return fields.Source{Text: text, At: rangeOf(at)}, true
	}
	s := fields.Source{At: rangeOf(b.RangeOf(name))}
	switch v := b.Value(name); v.Type() {
	case sdk.TypeString:
		s.Value = cty.StringVal(v.Str())
	case sdk.TypeInt:
		s.Value = cty.NumberIntVal(v.Int())
	case sdk.TypeFloat:
		s.Value = cty.NumberFloatVal(v.Float())
	case 0:
		return s, false
	default:
		b.Errorf(name, "expected a text, a number or an expression over record")
		return s, false
	}
	return s, true
}

func rangeOf(r sdk.Range) hcl.Range {
	pos := func(p sdk.Pos) hcl.Pos { return hcl.Pos{Line: p.Line, Column: p.Column, Byte: p.Byte} }
	return hcl.Range{Filename: r.File, Start: pos(r.Start), End: pos(r.End)}
}

// convert makes diagnostics of the language those of a plugin.
func convert(in hcl.Diagnostics) sdk.Diagnostics {
	var out sdk.Diagnostics
	pos := func(p hcl.Pos) sdk.Pos { return sdk.Pos{Line: p.Line, Column: p.Column, Byte: p.Byte} }
	for _, d := range in {
		one := sdk.Diagnostic{Summary: d.Summary, Detail: d.Detail}
		if r := d.Subject; r != nil {
			one.Subject = sdk.Range{File: r.Filename, Start: pos(r.Start), End: pos(r.End)}
		}
		out = append(out, one)
	}
	return out
}

// problems joins those that the configuration remembered with others.
func problems(err error, more sdk.Diagnostics) error {
	all, _ := errors.AsType[sdk.Diagnostics](err)
	if all = append(all, more...); len(all) > 0 {
		return all
	}
	return err
}
