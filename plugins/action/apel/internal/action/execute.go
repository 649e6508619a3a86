package action

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/ams"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/smime"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Execute implements sdk.Action: it sends one message.
func (a *Action) Execute(ctx context.Context, attempt sdk.Attempt, _ *sdk.World) sdk.Result {
	p, err := readPayload(attempt.Effect.Payload)
	if err != nil {
		return sdk.Result{Outcome: sdk.Rejected, Message: err.Error()}
	}
	// What was planned for one receiver is not sent to another in another form.
	if p.Signed != (a.config.ams != nil) {
		return sdk.Result{Outcome: sdk.Rejected, Message: "the configuration has changed since this was planned, between AMS and a directory; skip it, the next run plans anew"}
	}
	if a.config.ams == nil {
		return a.putMessage(p, attempt.Key)
	}
	return a.publishMessage(ctx, p)
}

// putMessage writes a message into the outgoing directory.
func (a *Action) putMessage(p payload, key string) sdk.Result {
	queue := a.config.outgoing
	if err := queue.Check(); err != nil {
		return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
	}
	name, err := queue.Add(p.At, key, p.data)
	if err != nil {
		return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
	}
	return sdk.Result{Outcome: sdk.Done, Message: "put into " + queue.Path, Reference: name}
}

// publishMessage posts a message to AMS.
func (a *Action) publishMessage(ctx context.Context, p payload) sdk.Result {
	if a.client == nil {
		client, err := ams.New(*a.config.ams)
		if err != nil {
			return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
		}
		a.client = client
	}
	ids, err := a.postSigned(ctx, p, p.data)
	if err == nil {
		return sdk.Result{Outcome: sdk.Done, Message: "published", Reference: strings.Join(ids, " ")}
	}
	// A certificate that was renewed is read for the next message.
	_ = a.Close()
	return a.outcomeOf(err)
}

// postSigned publishes signed bytes. What AMS finds too large is cut into halves, which are
// signed again.
func (a *Action) postSigned(ctx context.Context, p payload, data []byte) ([]string, error) {
	id, err := a.client.Publish(ctx, data, map[string]string{"empaid": p.ID})
	e, ok := errors.AsType[*ams.Error](err)
	switch {
	case err == nil:
		return []string{id}, nil
	case !ok || !e.TooLarge():
		return nil, err
	}
	halves, split := a.signHalves(data)
	if split != nil {
		return nil, fmt.Errorf("%w; %w", err, split)
	}
	var ids []string
	for _, half := range halves {
		more, err := a.postSigned(ctx, p, half)
		if err != nil {
			return nil, err
		}
		ids = append(ids, more...)
	}
	return ids, nil
}

// signHalves are two signed messages with the records of one.
func (a *Action) signHalves(data []byte) ([][]byte, error) {
	text, err := smime.Text(data)
	if err != nil {
		return nil, err
	}
	first, second, ok := message.Halve(text)
	if !ok {
		return nil, errors.New("it has one record only, which cannot be split")
	}
	signer, err := smime.Load(a.config.cert, a.config.key)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, half := range [][]byte{first, second} {
		signed, err := signer.Sign(half)
		if err != nil {
			return nil, err
		}
		out = append(out, signed)
	}
	return out, nil
}

// outcomeOf is what a failure means. A message that may have arrived is sent again by
// the daemon: the receiver replaces by key.
func (a *Action) outcomeOf(err error) sdk.Result {
	e, ok := errors.AsType[*ams.Error](err)
	switch {
	case ok && e.InDoubt():
		return sdk.Result{Outcome: sdk.Unknown, Message: err.Error() + "; it may have arrived, and is sent again"}
	case !ok || e.Again():
		return sdk.Result{Outcome: sdk.Retry, Message: err.Error()}
	}
	text := err.Error()
	switch e.Status {
	case 401, 403:
		text += fmt.Sprintf("; AMS does not let the certificate in %s publish to %s of project %s: register its subject in GOCDB, then retry", a.config.ams.Cert, a.config.ams.Topic, a.config.ams.Project)
	case 404:
		text += fmt.Sprintf("; AMS knows no such certificate, project or topic: check %s, %s and %s, then retry", a.config.ams.Cert, a.config.ams.Project, a.config.ams.Topic)
	}
	return sdk.Result{Outcome: sdk.Rejected, Message: text}
}
