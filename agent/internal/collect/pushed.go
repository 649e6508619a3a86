package collect

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// translateJobs translates the jobs of a message.
func (t *translator) translateJobs(d *draft, resp *bursarv1.CollectResponse) {
	for _, job := range resp.GetJobs() {
		t.translateJob(d, job, "")
	}
	if n := len(resp.GetRecords()) + len(resp.GetStops()); n > 0 {
		t.addRefusal(d, &bursarv1.Refused{Run: "pushed", Message: fmt.Sprintf("the plugin sent %d whole records or stops, and did not declare that it does", n)})
	}
}

// translatePushes translates what a source hands on for clients of AUDITOR. Nothing of it
// is compared with what was sent before: what a push changes, only the store can
// tell, which has those of all agents.
func (t *translator) translatePushes(d *draft, resp *bursarv1.CollectResponse) {
	for _, r := range resp.GetRecords() {
		t.pushedRecord(d, r)
	}
	for _, s := range resp.GetStops() {
		t.addStatement(d, record.Write{ID: s.GetId(), Op: record.OpStop, Stop: record.Time(s.GetStop()), Version: record.Version{Ended: true}})
	}
	if n := len(resp.GetJobs()); n > 0 {
		t.addRefusal(d, &bursarv1.Refused{Run: "jobs", Message: fmt.Sprintf("the plugin sent %d jobs, and declared that it hands on whole records", n)})
	}
}

func (t *translator) pushedRecord(d *draft, message *bursarv1.Record) {
	var r record.Record
	text, err := proto.Marshal(message)
	if err == nil {
		err = wire.DecodeRecord(text, &r)
	}
	if err != nil {
		t.addRefusal(d, &bursarv1.Refused{Message: fmt.Sprintf("record of the plugin: %v", err), Raw: text})
		return
	}
	t.addStatement(d, record.Write{ID: r.ID, Op: record.OpPut, Record: &r, Version: record.Version{Ended: !r.Open()}})
}

// addStatement hands on one statement of the origin that all pushes share.
func (t *translator) addStatement(d *draft, w record.Write) {
	w.Origin, w.Rank, w.Version.Observed = record.Pushed, record.RankPush, t.observe()
	if err := w.Validate(); err != nil {
		t.quarantineStatement(d, &w, err)
		return
	}
	d.counts.Records++
	f := wire.Frame{Rank: w.Rank, Version: w.Version, Kind: wire.KindStop, ID: w.ID, Stop: w.Stop}
	if w.Op == record.OpPut {
		f.Kind, f.Record = wire.KindRecord, *w.Record
	}
	d.append.Frames = append(d.append.Frames, wire.AppendFrame(nil, &f))
}

// quarantineStatement puts an invalid statement into quarantine.
func (t *translator) quarantineStatement(d *draft, w *record.Write, err error) {
	d.counts.Quarantined++
	t.addFrame(d, &wire.Frame{Kind: wire.KindQuarantine, Quarantine: translate.QuarantineInvalid(w, err)})
}
