// Command bursar-source-example is a small source: each line of a file is a job
// "<id> <user> <start> <stop>", with times in seconds since 1970.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func main() { sdk.ServeSource(func() sdk.Source { return new(source) }) }

type source struct {
	Path string `hcl:"path" doc:"the file with the jobs"`
}

func (s *source) Describe() sdk.Description {
	return sdk.Description{Type: "example", Version: "1.0.0", Settings: s, Attributes: []sdk.Attribute{
		{Name: "id", Type: sdk.TypeString, Doc: "the job's id"},
		{Name: "user", Type: sdk.TypeString, Doc: "who ran it"},
		{Name: "start", Type: sdk.TypeTime, Doc: "when it began"},
		{Name: "stop", Type: sdk.TypeTime, Doc: "when it ended"},
	}, Mapping: "id = \"${source.label}-${job.id}\"\nstart = job.start\nstop = job.stop\nmeta = { user_id = job.user }\ncomponent \"Cores\" { amount = 1 }\n"}
}

func (s *source) Configure(_ context.Context, cfg *sdk.Config) error {
	return cfg.Decode(s)
}

func (s *source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	text, err := os.ReadFile(s.Path)
	if err != nil {
		return err
	}
	seen, _ := strconv.Atoi(string(from.Checkpoint)) // lines that are done
	for n, line := range strings.SplitAfter(string(text), "\n") {
		if n < seen && from.Rewind == 0 && from.Window == nil || !strings.HasSuffix(line, "\n") {
			continue
		}
		var id, user string
		var start, stop int64
		batch := sdk.Batch{Checkpoint: []byte(strconv.Itoa(max(n+1, seen)))}
		if _, err := fmt.Sscan(line, &id, &user, &start, &stop); err != nil {
			batch.Refused = []sdk.Refused{{Message: err.Error(), Raw: []byte(line)}}
		} else if ended := time.Unix(stop, 0); from.Window == nil || from.Window.Holds(ended) {
			batch.Jobs = []sdk.Job{{Run: id, Ended: true, Values: []sdk.Value{
				sdk.String(id), sdk.String(user), sdk.Time(time.Unix(start, 0)), sdk.Time(ended)}}}
		}
		if err := out.Send(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}
