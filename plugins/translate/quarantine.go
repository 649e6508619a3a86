package translate

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/text"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// QuarantineFailed is a job that its mapping could not make a record of, or no valid one.
// Its message names the attributes that the source could not read, which may be why.
func QuarantineFailed(job *bursarv1.Job, attributes []*bursarv1.Attribute, err error) wire.Quarantine {
	raw, cut := Raw(job, attributes)
	var message strings.Builder
	message.WriteString(err.Error())
	for _, u := range job.GetUnread() {
		fmt.Fprintf(&message, "; attribute %s cannot be read: %s", u.GetAttribute(), u.GetProblem())
	}
	q := wire.Quarantine{ID: QuarantineID(job.GetRun()), Reason: "mapping", Message: trimText(message.String()), Raw: raw, Truncated: cut}
	if e, ok := errors.AsType[*mapping.Error](err); ok {
		q.RecordID = trimText(e.RecordID)
	}
	if _, ok := errors.AsType[*record.FieldError](err); ok {
		q.Reason = "validation"
	}
	return q
}

// QuarantineRefused is input that was no job. One without a run is named by its bytes.
func QuarantineRefused(r *bursarv1.Refused) wire.Quarantine {
	raw := r.GetRaw()
	cut := len(raw) > MaxRaw
	if cut {
		raw = raw[:MaxRaw]
	}
	run := r.GetRun()
	if run == "" {
		run = frame.Digest{}.Next(raw).String()
	}
	return wire.Quarantine{ID: QuarantineID(run), Reason: "input", Message: trimText(r.GetMessage()), Raw: raw, Truncated: cut}
}

// QuarantineInvalid is a statement of who pushes that cannot be kept. It is named by its
// bytes.
func QuarantineInvalid(w *record.Write, err error) wire.Quarantine {
	raw := fmt.Appendf(nil, `{"record_id":%q,"stop_time":%q}`, w.ID, w.Stop)
	if w.Record != nil {
		raw, _ = json.Marshal(w.Record) // what has no JSON, such as a score that is no number, leaves the message
	}
	q := wire.Quarantine{Reason: "validation", Message: trimText(err.Error()), RecordID: trimText(w.ID)}
	if field, ok := errors.AsType[*record.FieldError](err); ok {
		q.Message = trimText(field.Field + ": " + field.Problem)
	}
	q.ID = QuarantineID(frame.Digest{}.Next(raw).String())
	if q.Truncated = len(raw) > MaxRaw; q.Truncated {
		raw = raw[:MaxRaw]
	}
	q.Raw = raw
	return q
}

// QuarantineID names a run within its source, and is a function of the run alone:
// a job that fails again replaces its earlier failure.
func QuarantineID(run string) string {
	if len(run) > record.MaxID/2 {
		h := fnv.New64a()
		h.Write([]byte(run)) // never fails
		return fmt.Sprintf("%x", h.Sum64())
	}
	return strings.ToValidUTF8(run, "\uFFFD")
}

// trimText bounds texts that come from a plugin.
func trimText(s string) string { return text.Clip(s, 4<<10) }
