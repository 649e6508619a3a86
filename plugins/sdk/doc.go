// Package sdk is all that the author of a plugin imports: the Source interface and
// the values of a job, the Action interface with the Data that plans read, the
// configuration with its diagnostics, and ServeSource and ServeAction, the main
// functions of plugins.
//
// A source that reads one fixed job:
//
//	package main
//
//	import (
//		"context"
//		"time"
//
//		"github.com/bursar-accounting/bursar/plugins/sdk"
//	)
//
//	func main() { sdk.ServeSource(func() sdk.Source { return new(source) }) }
//
//	type source struct {
//		User string `hcl:"user,optional" default:"nobody" doc:"whose jobs they are"`
//	}
//
//	func (s *source) Describe() sdk.Description {
//		return sdk.Description{
//			Type: "fixed", Version: "1.0.0",
//			Attributes: []sdk.Attribute{
//				{Name: "id", Type: sdk.TypeString, Doc: "the job's id"},
//				{Name: "user", Type: sdk.TypeString, Doc: "who ran it"},
//				{Name: "start", Type: sdk.TypeTime, Doc: "when it began"},
//				{Name: "stop", Type: sdk.TypeTime, Doc: "when it ended"},
//			},
//			Mapping: `
//	id    = "${source.label}-${job.id}"
//	start = job.start
//	stop  = job.stop
//	meta  = { user_id = job.user }
//	component "Cores" { amount = 1 }
//	`,
//			Settings: s,
//		}
//	}
//
//	func (s *source) Configure(_ context.Context, cfg *sdk.Config) error { return cfg.Decode(s) }
//
//	func (s *source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
//		if from.Checkpoint != nil && from.Rewind == 0 {
//			return nil // the one job was acknowledged
//		}
//		stop := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
//		return out.Send(ctx, sdk.Batch{
//			Jobs: []sdk.Job{{
//				Run: "1", Ended: true,
//				Values: []sdk.Value{sdk.String("1"), sdk.String(s.User), sdk.Time(stop.Add(-time.Hour)), sdk.Time(stop)},
//			}},
//			Checkpoint: []byte("1"),
//			Watermark:  stop,
//		})
//	}
//
// # What a source promises
//
// A checkpoint stands for every job up to and with its batch: after it was
// acknowledged, none of them need to be sent again, and after a crash before
// that, all of them are. Jobs may be sent twice; the daemon knows them by their
// run. A job that still runs is sent with Ended false as often as it is seen. A
// Collect with a Window sends that window again and leaves the checkpoint
// alone. What cannot be read is sent as Refused, with the raw input; one odd job
// stops nothing. Package plugintest checks these promises.
//
// # What an action promises
//
// A plan touches nothing but its Data: between it and its effects all nodes write
// down what is going to happen. Execute gets all that it needs in the effect, and
// says honestly how it ended: Retry and Rejected mean that nothing has happened. The
// class says what happens when an effect is done twice; an effect that adds has none
// and must be made one that sets, or that the receiver knows by its key. The example
// of [ServeAction] is a whole plugin.
//
// # Configuration
//
// The settings are a struct with tags, which Configure decodes its block into. What is
// unknown, has the wrong type or is out of its bounds is reported, all at once, with the
// file and line of the user's configuration. What tags cannot say is checked behind:
//
//	type settings struct {
//		Path     hcl.Path      `hcl:"path" doc:"the file that is read"`
//		Interval time.Duration `hcl:"interval,optional" default:"1m" min:"1s" doc:"between two looks"`
//		Earliest hcl.Time      `hcl:"earliest,optional"`
//	}
//
//	var s settings
//	_ = cfg.Decode(&s) // it is in what Err returns
//	if s.Earliest.After(time.Now()) {
//		cfg.Errorf("earliest", "is in the future")
//	}
//	return cfg.Err()
//
// # Other languages
//
// The README says what a plugin in another language has to do.
package sdk
