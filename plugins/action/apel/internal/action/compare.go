package action

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/smime"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// rows are what a receiver keeps of messages: one row for each key.
type rows map[rowKey]row

type rowKey struct{ kind, key string }

// row is a row, its name for people, and the run and effect that sent it.
type row struct {
	text   []byte
	name   string
	run    uint64
	effect int
}

// applyMessage applies a message: its rows replace those with the same key.
func (r rows) applyMessage(text []byte, run uint64, effect int) {
	header, records := message.Records(text)
	kind := string(bytes.TrimSpace(header))
	for _, one := range records {
		r[rowKey{kind, message.Key(message.Kind(kind), one)}] = row{one, message.Name(message.Kind(kind), one), run, effect}
	}
}

// compareMonth names the differences between what a month's messages are now and what the
// ledger says that the receiver was sent.
func (p *planner) compareMonth(ctx context.Context, s site, m month.Month, d *draft) {
	name := s.name + " " + m.String()
	sent, err := p.sentHistory(ctx, s, m)
	switch {
	case err != nil:
		p.addNote("%s: cannot be compared with what was sent: %v", name, err)
		return
	case len(sent) == 0:
		p.addNote("%s: the history has no message of it", name)
		return
	}
	now := rows{}
	for _, b := range d.batches {
		for _, text := range b.text {
			now.applyMessage(text, 0, 0)
		}
	}
	var notes []string
	same, changed, fresh, gone := 0, 0, 0, 0
	for _, k := range slices.SortedFunc(maps.Keys(now), rowKey.compareKey) {
		switch had, there := sent[k]; {
		case !there:
			fresh++
		case bytes.Equal(had.text, now[k].text):
			same++
		default:
			changed++
			notes = append(notes, fmt.Sprintf("%s: changed since run %d, effect %d: %s: %s", name, had.run, had.effect, cutText(now[k].name, 250), cutText(differingLines(had.text, now[k].text), 100)))
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(sent), rowKey.compareKey) {
		if _, there := now[k]; !there {
			gone++
			notes = append(notes, fmt.Sprintf("%s: wrong at the receiver, sent by run %d, effect %d: %s: no record makes this row now; ask APEL's support to delete it", name, sent[k].run, sent[k].effect, cutText(sent[k].name, 250)))
		}
	}
	p.addNote("%s: compared with all messages of the history: %d rows are as they were sent, %d are changed, %d are new, and %d that were sent are made by no record now", name, same, changed, fresh, gone)
	p.left = append(p.left, notes...)
}

func (k rowKey) compareKey(o rowKey) int {
	return cmp.Or(strings.Compare(k.kind, o.kind), strings.Compare(k.key, o.key))
}

// cutText shortens a text so that the note around it is kept whole.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + " …" // a message has ASCII only
}

// differingLines are the lines of a row that are others now, with what they were.
func differingLines(before, now []byte) string {
	was := map[string]string{}
	for line := range strings.Lines(string(before)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		was[name] = value
	}
	var out []string
	for line := range strings.Lines(string(now)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); was[name] != value {
			out = append(out, fmt.Sprintf("%s was %s and is %s", name, was[name], value))
		}
	}
	return strings.Join(out, ", ")
}

// sentHistory is what the ledger says that the receiver has of a site's month, or of the day
// that is asked for.
func (p *planner) sentHistory(ctx context.Context, s site, m month.Month) (rows, error) {
	list, err := p.data.API().ActionRuns(ctx, "apel", p.config.label, &v1.ActionRunsQuery{Limit: 10_000})
	if err != nil {
		return nil, err
	}
	out := rows{}
	for _, r := range slices.Backward(list.Runs) { // the oldest first
		if r.Done+r.Unknown == 0 {
			continue
		}
		if err := p.sentBy(ctx, r.Run, p.effectNamer(s, m), out); err != nil {
			return nil, fmt.Errorf("run %d: %w", r.Run, err)
		}
	}
	return out, nil
}

// effectNamer reports whether an effect of that name is of a site's month, or of the day that
// is asked for.
func (p *planner) effectNamer(s site, m month.Month) func(string) bool {
	begin := "site=" + s.name + " month=" + m.String() + " "
	return func(name string) bool {
		what, ok := strings.CutPrefix(name, begin)
		return ok && (p.day == "" || !strings.HasPrefix(what, "jobs ") || what == "jobs day="+p.day || strings.HasPrefix(what, "jobs day="+p.day+" "))
	}
}

// sentBy takes the messages of a run that were sent, or may have been.
func (p *planner) sentBy(ctx context.Context, run uint64, wanted func(string) bool, out rows) error {
	one, err := p.data.API().ActionRun(ctx, "apel", p.config.label, run, nil)
	if err != nil {
		return err
	}
	for _, e := range one.Effects {
		if !wanted(e.Name) || e.State != "done" && e.State != "unknown" {
			continue
		}
		effect, err := p.data.API().ActionEffect(ctx, "apel", p.config.label, run, e.Effect, nil)
		if err != nil {
			return fmt.Errorf("effect %d: %w", e.Effect, err)
		}
		load, err := readPayload(effect.Payload)
		text := load.data
		if err == nil && load.Signed {
			text, err = smime.Text(load.data)
		}
		if err != nil {
			return fmt.Errorf("effect %d: %w", e.Effect, err)
		}
		out.applyMessage(text, run, e.Effect)
	}
	return nil
}
