package action

import (
	"context"
	"iter"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/ams"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Version is that of the plugin.
const Version = "1.0.0"

// Action reports months to APEL. New makes it.
type Action struct {
	config config
	client *ams.Client // made for the first message
	room   int         // bytes of messages in a run
}

// room is how long the messages of a run may be together, which is half of what a
// daemon takes: a month of summaries that does not fit begins the next run.
const room = 32 << 20

// New makes an action.
func New() *Action { return &Action{room: room} }

// Describe implements sdk.Action.
func (a *Action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "apel", Version: Version, Class: sdk.ClassKeyed,
		Schedule: "@daily", Deadline: 5 * time.Minute, Settings: new(settings),
	}
}

// Configure implements sdk.Action.
func (a *Action) Configure(_ context.Context, cfg *sdk.Config) error {
	var err error
	a.config, err = readConfig(cfg)
	return err
}

// Close lets the connections go.
func (a *Action) Close() error {
	if a.client != nil {
		a.client.Close()
	}
	a.client = nil
	return nil
}

// reader is what a plan reads; *sdk.Data is one.
type reader interface {
	Records(ctx context.Context, query *v1.ListRecordsQuery) iter.Seq2[record.Record, error]
	API() v1.API
}

// Plan implements sdk.Action.
func (a *Action) Plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	return a.planRun(ctx, start, data)
}
