package main

import (
	"context"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/payload"
	"github.com/bursar-accounting/bursar/plugins/internal/post"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const version = "1.0.0"

// settings are those of the config block.
type settings struct {
	URL      hcl.String        `hcl:"url" doc:"where to post; http only to this machine, unless allow_plain is set. A user name in it is refused: use headers"`
	Input    string            `hcl:"input" allowed:"usage changes none" doc:"what is posted; none is only the time"`
	Method   string            `hcl:"method,optional" default:"POST" allowed:"POST PUT"`
	Secret   hcl.Strings       `hcl:"secret,optional" doc:"what posts are signed with, at least 16 characters; required unless unsigned is set. A list of up to four signs with each, so that the receiver can change from one to another"`
	Unsigned bool              `hcl:"unsigned,optional" doc:"posts are not signed: for a receiver that knows by a header or a client certificate who posts"`
	Headers  map[string]string `hcl:"headers,optional" doc:"headers of your own, such as { Authorization = file(\"/etc/bursar/token\") }. Values are never shown"`
	Timeout  time.Duration     `hcl:"timeout,optional" default:"30s" min:"1s" max:"10m" doc:"for one post"`
	payload.Settings
	TLS        *post.TLS `hcl:"tls,block" doc:"PEM files, which are read anew for each post"`
	Proxy      string    `hcl:"proxy,optional" unset:"none" doc:"http://, https:// or socks5://; the proxies of the environment are not used"`
	AllowPlain bool      `hcl:"allow_plain,optional" doc:"http to other machines: everyone on the way can read and change it. There is no way to trust any certificate"`
}

// maxTimeout is that of the tag of the timeout.
const maxTimeout = 10 * time.Minute

// action posts to a receiver.
type action struct {
	input    *payload.Question
	receiver *post.Receiver
}

// Describe implements sdk.Action. The class is keyed, because a webhook of which the
// answer was lost has to be posted again or no one could rely on it: a receiver knows
// a second post by its key, and what is posted is absolute, so that one which does
// not look at the key can still put it over what it has.
func (a *action) Describe() sdk.ActionDescription {
	return sdk.ActionDescription{
		Type: "webhook", Version: version, Class: sdk.ClassKeyed, Schedule: "@hourly", Deadline: maxTimeout + time.Minute,
		Settings: new(settings),
	}
}

// Configure implements sdk.Action.
func (a *action) Configure(_ context.Context, cfg *sdk.Config) error {
	var s settings
	_ = cfg.Decode(&s) // it is in what Err returns
	a.input = s.Question(cfg, s.Input)
	a.receiver = post.Read(cfg.Body, func() bool { return cfg.Err() == nil }, &post.Settings{
		URL: s.URL, Method: s.Method, Secrets: s.Secret, Unsigned: s.Unsigned, Headers: s.Headers, Timeout: s.Timeout, TLS: s.TLS, Proxy: s.Proxy,
		AllowPlain: s.AllowPlain, Agent: "bursar-action-webhook/" + version,
	})
	return cfg.Err()
}

// Plan implements sdk.Action.
func (a *action) Plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	h, err := a.input.Make(ctx, start, data)
	if err != nil {
		return sdk.Plan{}, err
	}
	return h.Plan("post", a.receiver.About(), func(what string) string {
		if what == "" {
			what = "the time"
		}
		return fmt.Sprintf("post %s to %s", what, a.receiver.Shown)
	}), nil
}

// Execute implements sdk.Action.
func (a *action) Execute(ctx context.Context, t sdk.Attempt, _ *sdk.World) sdk.Result {
	return a.receiver.Post(ctx, t)
}
