package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// SessionSpec is a source as the configuration describes it.
type SessionSpec struct {
	Agent   string // the agent's name
	Version string // of the program that maps, which a mapping may name; "": unknown
	Type    string
	Label   string
	DataDir string             // a folder of the source's own
	Config  *bursarv1.Node     // the evaluated config block
	Record  hcl.Body           // the body of the record block; nil without one
	Dir     string             // the configuration's folder
	TLS     *bursarv1.TLSFiles // the daemon's own certificates; nil when it has none
	Stall   time.Duration      // for how long a call may make no progress; 0: by default
	// CheckMachine has the plugin say which ports and sockets are taken, where no daemon
	// uses the configuration.
	CheckMachine bool
}

// Session is a plugin that runs, knows its configuration and has a mapping.
type Session struct {
	Plugin

	Client      bursarv1.SourcePluginClient
	Description *bursarv1.DescribeResponse
	Mapper      translate.Mapper // nil: the source hands on what was pushed

	stall time.Duration
}

// NewSession asks a plugin what it is, compiles the mapping against that, and
// configures the plugin. What is wrong with the configuration is in the
// diagnostics; the error is a plugin that does not answer as it should, a [Stall] when
// it has not answered until the deadline of ctx.
func NewSession(ctx context.Context, plugin Plugin, client bursarv1.SourcePluginClient, spec SessionSpec) (*Session, hcl.Diagnostics, error) {
	began := time.Now()
	description, err := client.Describe(ctx, &bursarv1.DescribeRequest{})
	if err != nil {
		return nil, nil, unansweredCall(ctx, "Describe", began, err)
	}
	if err := CheckDescription(spec.Type, description); err != nil {
		return nil, nil, err
	}
	mapper, diags := mapperOf(description, spec)
	req := &bursarv1.ConfigureRequest{Label: spec.Label, Agent: spec.Agent, Config: spec.Config, DataDir: spec.DataDir, Tls: spec.TLS, CheckMachine: spec.CheckMachine}
	if mapper != nil {
		req.Wanted, req.WantedKeys = mapper.Wanted(), mapper.WantedKeys()
	}
	began = time.Now()
	resp, err := client.Configure(ctx, req)
	if err != nil {
		return nil, diags, unansweredCall(ctx, "Configure", began, err)
	}
	diags.Extend(Diagnostics(resp.GetDiagnostics()))
	if diags.HasErrors() {
		return nil, diags, nil
	}
	return &Session{Plugin: plugin, Client: client, Description: description, Mapper: mapper, stall: spec.Stall}, diags, nil
}

// unansweredCall says why a call that makes a plugin ready has no answer.
func unansweredCall(ctx context.Context, call string, began time.Time, err error) error {
	if Late(ctx) {
		return &Stall{Call: call, Silent: max(time.Second, time.Since(began).Round(time.Second))}
	}
	return fmt.Errorf("%s: %w", strings.ToLower(call), err)
}

// mapperOf compiles the mapping of a source that has one.
func mapperOf(description *bursarv1.DescribeResponse, spec SessionSpec) (translate.Mapper, hcl.Diagnostics) {
	if !description.GetPushed() {
		mapper, diags := mapping.Compile(mapping.Options{
			Agent: spec.Agent, Type: spec.Type, Label: spec.Label, Dir: spec.Dir,
			AgentVersion: spec.Version, SourceVersion: description.GetVersion(),
			Attributes: description.GetAttributes(), Default: description.GetMapping(), Record: spec.Record, ReusesIDs: description.GetReusesIds(),
			Imported: record.Rank(description.GetRank()) == record.RankImport,
		})
		if mapper == nil { // and no Mapper that holds none
			return nil, diags
		}
		return mapper, diags
	}
	if spec.Record == nil {
		return nil, nil
	}
	return nil, hcl.Diagnostics{hcl.Errorf(spec.Record.MissingItemRange(), "nothing to map",
		"a source of type %q hands on whole records as clients pushed them, so it has no record block; what the records say is the client's to change", spec.Type)}
}
