package action

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/ams"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/fields"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/outgoing"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/smime"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Record is the variable of expressions, which has a value here only.
const Record = "record"

// settings are those of the config block.
type settings struct {
	From        string      `hcl:"from" doc:"the first month that is reported, such as \"2026-11\". Choose the first one of which bursar has all records: the receiver replaces what it has of a month by what is sent"`
	Recheck     int         `hcl:"recheck,optional" default:"1" min:"0" max:"24" doc:"how many months before the present one are looked at again in every run, for records that come late"`
	Send        string      `hcl:"send,optional" default:"summaries" allowed:"summaries jobs" doc:"jobs: every job. Never both, the receiver would count twice"`
	JobsVersion string      `hcl:"jobs_version,optional" default:"0.4" allowed:"0.3 0.4" doc:"the version of messages of jobs: 0.3 has one benchmark, 0.4 all"`
	SiteMeta    hcl.Strings `hcl:"site_meta,optional" default:"[\"site_id\"]" doc:"the meta keys that hold the site; a record with any of the ids in any of them is the site's, and counts once"`
	MaxMessage  hcl.Size    `hcl:"max_message,optional" default:"500kB" min:"10kB" max:"4MiB" doc:"how long a message may be before it is signed; a message has at most 1 000 rows too. What AMS finds too large all the same is split"`
	Sites       []struct {
		Name hcl.String  `hcl:"name,label"`
		IDs  hcl.Strings `hcl:"ids,optional" unset:"the name" doc:"values of site_meta"`
		CE   string      `hcl:"ce,optional" default:"UNKNOWN" doc:"the kind of compute element, such as \"ARC\", for InfrastructureDescription"`
	} `hcl:"site,block" unset:"required" doc:"a site by its name in GOCDB; may be there several times"`
	Fields     hcl.Body `hcl:"fields,block" unset:"required" doc:"the fields of a job, see below"`
	Benchmarks []struct {
		Name  string         `hcl:"name,label"`
		Score hcl.Expression `hcl:"score,optional" unset:"the score of that name, in any case, of the component Cores" doc:"what a core scores"`
		Wall  hcl.Expression `hcl:"wall,optional" unset:"duration × score" doc:"a wall duration that is normalised already"`
		CPU   hcl.Expression `hcl:"cpu,optional" unset:"duration × score" doc:"a CPU duration that is normalised already"`
	} `hcl:"benchmark,block" unset:"HEPscore23" doc:"what durations are normalised with: HEPscore23, hepspec or si2k; with several blocks all are sent in one message"`
	Sign *struct {
		Cert hcl.Absolute `hcl:"cert" doc:"PEM file of the host's certificate, intermediate ones behind it. The subject must be registered in GOCDB"`
		Key  hcl.Absolute `hcl:"key" doc:"its key"`
	} `hcl:"sign,block" unset:"required with ams" doc:"who signs"`
	AMS *struct {
		Host      string        `hcl:"host" doc:"msg.argo.grnet.gr for production, msg-devel.argo.grnet.gr for tests"`
		Port      int           `hcl:"port,optional" default:"443" min:"1" max:"65535" doc:"of the service"`
		AuthnPort int           `hcl:"authn_port,optional" default:"8443" min:"1" max:"65535" doc:"of what exchanges the certificate for a token"`
		Project   string        `hcl:"project,optional" default:"accounting" doc:"to publish to"`
		Topic     string        `hcl:"topic,optional" default:"gLite-APEL" doc:"to publish to"`
		Cert      hcl.Absolute  `hcl:"cert,optional" unset:"that of sign" doc:"another certificate for the connection"`
		Key       hcl.Absolute  `hcl:"key,optional" unset:"that of sign" doc:"its key"`
		CA        hcl.Absolute  `hcl:"ca,optional" unset:"the system's" doc:"a PEM file of the authorities to trust"`
		Timeout   time.Duration `hcl:"timeout,optional" default:"30s" min:"1ms" doc:"of one request"`
	} `hcl:"ams,block" unset:"this or directory" doc:"publish to AMS"`
	Directory *struct {
		Path  hcl.Absolute `hcl:"path" doc:"the directory, such as /var/spool/apel/outgoing. It must be there, and the aggregator must be able to write to it. SSM must send with dirq (path_type: dirq, its default)"`
		Group string       `hcl:"group,optional" unset:"that of path where it has the setgid bit" doc:"the group of folders and messages, which SSM's user is in"`
		Mode  string       `hcl:"mode,optional" default:"0770" doc:"of folders, whatever the unit's UMask is; messages have the same without x. SSM enters and changes folders, and may lock only messages that it may write"`
		User  string       `hcl:"user,optional" unset:"the owner of path" doc:"who SSM runs as, for whom -check tries whether it could take messages"`
	} `hcl:"directory,block" unset:"this or ams" doc:"put the messages, unsigned, into the outgoing directory of an SSM, which signs and sends them"`
}

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
	outgoing   *outgoing.Queue
	described  bool // the configuration sets InfrastructureDescription
}

// site is a site as GOCDB knows it.
type site struct {
	name string
	ids  []string // values of siteMeta
	ce   string   // the kind of compute element, for InfrastructureDescription
}

// readConfig reads the configuration and reports every problem.
func readConfig(cfg *sdk.Config) (config, error) {
	var s settings
	_ = cfg.Decode(&s) // it is in what Err returns
	c := config{label: cfg.Label, recheck: s.Recheck, siteMeta: s.SiteMeta, maxMessage: int(s.MaxMessage.Bytes)}
	c.readScope(cfg, &s)
	c.readSites(cfg, &s)
	c.readTargets(cfg, &s)
	compiled, diags := readFields(cfg)
	c.fields = compiled
	if b := cfg.Block("fields"); b != nil {
		c.described = b.Has("InfrastructureDescription")
	}
	cfg.Add(diags)
	return c, cfg.Err()
}

func (c *config) readScope(cfg *sdk.Config, s *settings) {
	if s.From != "" {
		var err error
		if c.from, err = month.Parse(s.From); err != nil {
			cfg.Errorf("from", "%v", err)
		}
	}
	if len(c.siteMeta) == 0 {
		cfg.Errorf("site_meta", "name the meta key that holds the site, for example site_id")
	}
	if s.Send == "jobs" {
		c.jobs = map[string]message.Kind{"0.3": message.Jobs03, "0.4": message.Jobs04}[s.JobsVersion]
	} else if cfg.Has("jobs_version") {
		cfg.Errorf("jobs_version", "it is of messages of jobs; they are sent with send = \"jobs\"")
	}
}

func (c *config) readSites(cfg *sdk.Config, s *settings) {
	blocks := cfg.Blocks("site")
	if len(blocks) == 0 {
		cfg.Errorf("site", "at least one block site \"NAME\" { } is needed; the name is that in GOCDB")
	}
	for _, one := range s.Sites {
		name := one.Name.Value
		b := blocks[slices.IndexFunc(blocks, func(b *sdk.Body) bool { return slices.Equal(b.Labels(), []string{name}) })]
		if message.CheckText("site", name) != nil {
			b.Errorf("site", "write site \"NAME\" { }, each name once, in ASCII")
			continue
		}
		if other := slices.IndexFunc(c.sites, func(s site) bool { return strings.EqualFold(s.name, name) }); other >= 0 {
			b.Errorf("site", "sites %s and %s differ only in case, which the receiver ignores; write one block with the ids of both", c.sites[other].name, name)
			continue
		}
		if one.IDs == nil {
			one.IDs = hcl.Strings{name}
		}
		c.sites = append(c.sites, site{name: name, ids: one.IDs, ce: one.CE})
		if message.CheckText("ce", one.CE) != nil || one.CE == "" || len(one.CE) > longestCE {
			b.Errorf("ce", "invalid ce %q: write the kind of compute element in at most %d printable ASCII characters, for example \"ARC\"", one.CE, longestCE)
		}
		if len(one.IDs) == 0 {
			b.Errorf("ids", "the list is empty; leave it out, or name the values of %v", c.siteMeta)
		}
	}
}

// blockLabel is the one label of a block.
func blockLabel(b *sdk.Body) (string, bool) {
	labels := b.Labels()
	return append(labels, "")[0], len(labels) == 1 && labels[0] != ""
}

// readTargets reads where messages go and who signs them.
func (c *config) readTargets(cfg *sdk.Config, s *settings) {
	sign, service := cfg.Block("sign"), cfg.Block("ams")
	if (s.AMS == nil) == (s.Directory == nil) {
		cfg.Errorf("ams", "one of the blocks ams { } and directory { } is needed, and not both")
	}
	if s.Sign != nil {
		c.cert, c.key = string(s.Sign.Cert), string(s.Sign.Key)
	}
	switch {
	case s.Directory != nil && s.Sign != nil:
		sign.Errorf("sign", "the SSM that takes the messages from the directory signs them itself")
	case s.AMS != nil && s.Sign == nil:
		service.Errorf("sign", "a block sign { cert = … key = … } is needed: receivers take signed messages only")
	}
	if s.Directory != nil {
		c.readDirectory(cfg.Block("directory"), s)
	}
	if a := s.AMS; a != nil {
		c.ams = &ams.Config{
			Host: a.Host, Port: a.Port, AuthnPort: a.AuthnPort, Project: a.Project, Topic: a.Topic, Timeout: a.Timeout,
			Cert: cmp.Or(string(a.Cert), c.cert), Key: cmp.Or(string(a.Key), c.key), CA: string(a.CA),
		}
	}
	c.tryKeys(sign, service)
}

// readDirectory reads the outgoing directory, and tries what SSM will do with it.
func (c *config) readDirectory(b *sdk.Body, s *settings) {
	d := s.Directory
	mode, err := strconv.ParseUint(d.Mode, 8, 32)
	if err != nil || mode > 0o777 || mode&0o700 != 0o700 {
		b.Errorf("mode", "invalid mode %q; expected something like \"0770\", with all rights for the owner", d.Mode)
		return
	}
	c.outgoing = &outgoing.Queue{Path: string(d.Path), Group: d.Group, Mode: fs.FileMode(mode), User: d.User}
	switch err := c.outgoing.Check(); {
	case errors.Is(err, outgoing.ErrNotFound):
		b.Warnf("path", "%v; messages cannot be written on this machine", err)
	case err != nil:
		b.Errorf("path", "%v; see the README, \"Into the directory of an SSM\"", err)
	}
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
func readFields(cfg *sdk.Config) (*fields.Set, hcl.Diagnostics) {
	c, block := fields.Config{Fields: map[string]fields.Source{}}, cfg.Block("fields")
	for _, n := range cfg.Root.Children {
		if n.IsBlock && n.Name == "fields" && slices.ContainsFunc(n.Children, func(c sdk.Node) bool { return c.IsBlock }) {
			block.Errorf("fields", "it has attributes alone, no blocks")
		}
	}
	for _, name := range block.Attributes() {
		if !fields.Known(name) {
			block.Errorf(name, "APEL has no field %q; %s", name, fieldHint(name))
			continue
		}
		if s, ok := sourceOf(block, name); ok {
			c.Fields[name] = s
		}
	}
	for _, name := range []string{"VO", "SubmitHost"} {
		if _, ok := c.Fields[name]; !ok {
			cfg.Errorf("fields", "fields { %s = … } is needed", name)
		}
	}
	c.Benchmarks = readBenchmarks(cfg)
	return fields.Compile(c)
}

func fieldHint(name string) string {
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
		text, _ := blockLabel(b)
		name, err := message.Benchmark(text)
		if err != nil || seen[name] {
			b.Errorf("benchmark", "write benchmark \"NAME\" { }, each name once: HEPscore23, hepspec or si2k")
			continue
		}
		seen[name] = true
		one := fields.Benchmark{Name: name}
		one.Score, _ = sourceOf(b, "score")
		one.Wall, _ = sourceOf(b, "wall")
		one.CPU, _ = sourceOf(b, "cpu")
		out = append(out, one)
	}
	return out
}

// sourceOf is an attribute as an expression or a constant; false when it is absent.
func sourceOf(b *sdk.Body, name string) (fields.Source, bool) {
	if text, at, ok := b.Expression(name); ok {
		return fields.Source{Text: text, At: at.HCL()}, true
	}
	s := fields.Source{At: b.RangeOf(name).HCL()}
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
