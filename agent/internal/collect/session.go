package collect

import (
	"context"
	"fmt"

	"github.com/bursar-accounting/bursar/agent/internal/mapping"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Spec is a source as the configuration describes it.
type Spec struct {
	Agent   string // the agent's name
	Type    string
	Label   string
	DataDir string         // a folder of the source's own
	Config  *bursarv1.Node // the evaluated config block
	Record  hcl.Body       // the body of the record block; nil without one
	Dir     string         // the configuration's folder
}

// Session is a plugin that runs, knows its configuration and has a mapping.
type Session struct {
	host.Plugin

	Client      bursarv1.SourcePluginClient
	Description *bursarv1.DescribeResponse
	Mapper      Mapper
}

// NewSession asks a plugin what it is, compiles the mapping against that, and
// configures the plugin. What is wrong with the configuration is in the
// diagnostics; the error is a plugin that does not answer as it should.
func NewSession(ctx context.Context, plugin host.Plugin, client bursarv1.SourcePluginClient, spec Spec) (*Session, hcl.Diagnostics, error) {
	description, err := client.Describe(ctx, &bursarv1.DescribeRequest{})
	if err != nil {
		return nil, nil, fmt.Errorf("describe: %w", err)
	}
	if err := host.CheckDescription(spec.Type, description); err != nil {
		return nil, nil, err
	}
	mapper, diags := mapping.Compile(mapping.Options{
		Agent: spec.Agent, Type: spec.Type, Label: spec.Label, Dir: spec.Dir,
		Attributes: description.GetAttributes(), Default: description.GetMapping(), Record: spec.Record,
	})
	req := &bursarv1.ConfigureRequest{Label: spec.Label, Agent: spec.Agent, Config: spec.Config, DataDir: spec.DataDir}
	if mapper != nil {
		req.Wanted = mapper.Wanted()
	}
	resp, err := client.Configure(ctx, req)
	if err != nil {
		return nil, diags, fmt.Errorf("configure: %w", err)
	}
	diags.Extend(host.Diagnostics(resp.GetDiagnostics()))
	if diags.HasErrors() {
		return nil, diags, nil
	}
	return &Session{Plugin: plugin, Client: client, Description: description, Mapper: mapper}, diags, nil
}
