package sdk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Limits of what is sent at once. The daemon refuses messages over MaxMessage.
const (
	// MaxMessage is the greatest message that crosses between a daemon and a
	// plugin, in bytes.
	MaxMessage = 16 << 20

	maxJob     = 4 << 20    // bytes of one job's attributes
	maxRaw     = 64<<10 + 1 // one more than is kept, so that the daemon sees the cut
	pieceBytes = 2 << 20    // a message is closed beyond
	maxText    = 4 << 10    // of an error's text
	maxUnread  = 256        // of why an attribute cannot be read
)

// messagesOf cuts a batch into messages of a bounded size. The last one has
// everything that is not a job or a refused input.
func messagesOf(b Batch) []*bursarv1.CollectResponse {
	var out []*bursarv1.CollectResponse
	m, size := new(bursarv1.CollectResponse), 0
	grow := func(n int) {
		if size > 0 && size+n > pieceBytes {
			out, m, size = append(out, m), new(bursarv1.CollectResponse), 0
		}
		size += n
	}
	for i := range b.Refused {
		r := encodeRefused(&b.Refused[i])
		grow(len(r.Raw) + len(r.Message) + len(r.Run) + 16)
		m.Refused = append(m.Refused, r)
	}
	for i := range b.Jobs {
		grow(b.Jobs[i].encodedSize())
		m.Jobs = append(m.Jobs, encodeJob(&b.Jobs[i]))
	}
	finishMessage(m, &b)
	return append(out, m)
}

func (j *Job) encodedSize() int {
	n := len(j.Run) + 16
	for i := range j.Values {
		n += j.Values[i].encodedSize()
	}
	for i := range j.Formerly {
		n += j.Formerly[i].encodedSize()
	}
	for _, u := range j.Unread {
		n += len(u.Attribute) + min(len(u.Problem), maxUnread) + 16
	}
	for _, f := range listedFindings(j.Findings) {
		n += len(cutText(f.Kind)) + len(cutText(f.About)) + len(cutText(f.What)) + len(cutText(f.Do)) + 16
	}
	return n
}

func finishMessage(m *bursarv1.CollectResponse, b *Batch) {
	m.Checkpoint, m.Skipped = b.Checkpoint, b.Skipped
	if !b.Watermark.IsZero() {
		m.Watermark = b.Watermark.UnixMicro()
		if !b.CompleteFrom.IsZero() {
			m.CompleteFrom = b.CompleteFrom.UnixMicro()
		}
	}
	if p := b.Progress; p != nil {
		m.Progress = &bursarv1.Progress{Done: p.Done, Total: p.Total, Unit: validText(p.Unit), At: validText(p.At)}
	}
	m.Frames = framesOf(b)
}

func encodeJob(j *Job) *bursarv1.Job {
	out := &bursarv1.Job{Run: validText(j.Run), Values: encodeAll(j.Values), Ended: j.Ended, Excluded: j.Excluded}
	for i := range j.Formerly {
		out.Formerly = append(out.Formerly, encodeJob(&j.Formerly[i]))
	}
	for _, u := range j.Unread {
		out.Unread = append(out.Unread, &bursarv1.Unread{Attribute: validText(u.Attribute), Problem: validText(u.Problem[:min(len(u.Problem), maxUnread)])})
	}
	for _, f := range listedFindings(j.Findings) {
		out.Findings = append(out.Findings, &bursarv1.Finding{Kind: validText(cutText(f.Kind)), About: validText(cutText(f.About)), What: validText(cutText(f.What)), Do: validText(cutText(f.Do))})
	}
	return out
}

// listedFindings are the findings of a job that are sent. The last one stands for all beyond
// those that a job may have, and names what they are about.
func listedFindings(all []Finding) []Finding {
	if len(all) <= MaxFindings {
		return all
	}
	listed, rest := all[:MaxFindings-1], all[MaxFindings-1:]
	var about []string
	for _, f := range rest {
		about = append(about, f.About)
	}
	return append(slices.Clip(listed), Finding{
		Kind: rest[0].Kind, About: "others", What: fmt.Sprintf("%d more findings like it, about %s", len(rest), strings.Join(about, ", ")), Do: rest[0].Do,
	})
}

func encodeRefused(r *Refused) *bursarv1.Refused {
	return &bursarv1.Refused{Run: validText(cutText(r.Run)), Message: validText(cutText(r.Message)), Raw: r.Raw[:min(len(r.Raw), maxRaw)]}
}

func cutText(s string) string { return s[:min(len(s), maxText)] }

func framesOf(b *Batch) []*bursarv1.Frame {
	var out []*bursarv1.Frame
	for _, g := range b.Gaps {
		out = append(out, &bursarv1.Frame{Body: &bursarv1.Frame_Gap{Gap: &bursarv1.Gap{
			From: microsOf(g.From), To: microsOf(g.To), Reason: validText(cutText(g.Reason))}}})
	}
	if b.Census != nil {
		out = append(out, &bursarv1.Frame{Body: &bursarv1.Frame_Census{Census: encodeCensus(b.Census)}})
	}
	if b.Capacity != nil {
		out = append(out, &bursarv1.Frame{Body: &bursarv1.Frame_Capacity{Capacity: encodeCapacity(b.Capacity)}})
	}
	if len(b.Directory) > 0 {
		out = append(out, &bursarv1.Frame{Body: &bursarv1.Frame_Directory{Directory: encodeDirectory(b.Directory)}})
	}
	return out
}

func encodeCensus(c *Census) *bursarv1.Census {
	out := &bursarv1.Census{At: microsOf(c.At)}
	for _, r := range c.Rows {
		out.Rows = append(out.Rows, &bursarv1.CensusRow{
			User: validText(r.User), Queue: validText(r.Queue), Running: r.Running, Pending: r.Pending})
	}
	return out
}

func encodeCapacity(c *Capacity) *bursarv1.Capacity {
	out := &bursarv1.Capacity{From: microsOf(c.From)}
	for _, a := range c.Components {
		out.Components = append(out.Components, &bursarv1.Component{Name: validText(a.Name), Amount: a.Amount})
	}
	return out
}

func encodeDirectory(people []Person) *bursarv1.Directory {
	out := new(bursarv1.Directory)
	for _, p := range people {
		row := &bursarv1.DirectoryRow{User: validText(p.User), Name: validText(p.Name), Address: validText(p.Address)}
		for _, g := range p.Groups {
			row.Groups = append(row.Groups, validText(g))
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func microsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
