package wire

import (
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// sameRecord is the equality of records: an absent meta and an empty one differ,
// an absent list and an empty one do not.
func sameRecord(a, b *record.Record) string {
	return cmp.Diff(a, b, cmp.Comparer(func(x, y record.Meta) bool {
		return (x == nil) == (y == nil) && cmp.Equal([]record.MetaEntry(x), []record.MetaEntry(y), emptyIsNil)
	}), emptyIsNil)
}

// emptyIsNil compares empty and absent lists as equal.
var emptyIsNil = cmp.Options{
	cmp.FilterValues(func(x, y []string) bool { return len(x)+len(y) == 0 }, cmp.Ignore()),
	cmp.FilterValues(func(x, y []record.Component) bool { return len(x)+len(y) == 0 }, cmp.Ignore()),
	cmp.FilterValues(func(x, y []record.Score) bool { return len(x)+len(y) == 0 }, cmp.Ignore()),
	cmp.FilterValues(func(x, y []byte) bool { return len(x)+len(y) == 0 }, cmp.Ignore()),
}

// text draws valid names: plain, long, escaped in JSON and beyond ASCII.
func text() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-zA-Z0-9_./-]{1,12}`),
		rapid.StringMatching(`[a-z]{100,200}`),
		rapid.SampledFrom([]string{"\"", "\\", "a\nb\tc\rd\be\f", "\x00\x1f\x7f", "ё", "👩‍👩‍👧", "é", "<&>", " x ", "a\u2028", "\U0010ffff"}),
	)
}

func times() *rapid.Generator[record.Time] {
	return rapid.OneOf(
		rapid.Just(record.Time(0)),
		rapid.Custom(func(t *rapid.T) record.Time {
			return record.Time(rapid.Int64Range(int64(record.MinTime), int64(record.MaxTime)).Draw(t, "time"))
		}),
		rapid.Custom(func(t *rapid.T) record.Time {
			return record.Time(rapid.Int64Range(1_600_000_000, 1_900_000_000).Draw(t, "second")) * record.Second
		}),
	)
}

func maybe(times *rapid.Generator[record.Time]) *rapid.Generator[record.Time] {
	return rapid.OneOf(rapid.Just(record.None), times)
}

func components() *rapid.Generator[[]record.Component] {
	score := rapid.Custom(func(t *rapid.T) record.Score {
		return record.Score{Name: text().Draw(t, "name"), Value: rapid.Float64Range(0, 1e300).Draw(t, "value")}
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) record.Component {
		return record.Component{
			Name:   text().Draw(t, "name"),
			Amount: rapid.Int64Min(0).Draw(t, "amount"),
			Kind:   rapid.SampledFrom([]record.Kind{record.Rate, record.Total}).Draw(t, "kind"),
			Scores: rapid.SliceOfN(score, 0, 3).Draw(t, "scores"),
		}
	}), 0, 4)
}

func meta() *rapid.Generator[record.Meta] {
	return rapid.Custom(func(t *rapid.T) record.Meta {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		m := record.Meta{}
		for key, values := range rapid.MapOfN(text(), rapid.SliceOfN(text(), 0, 3), 0, 4).Draw(t, "meta") {
			m = append(m, record.MetaEntry{Key: key, Values: values})
		}
		return m.Sorted()
	})
}

// auditors draws records with the fields of AUDITOR alone.
func auditors() *rapid.Generator[record.Record] {
	return rapid.Custom(func(t *rapid.T) record.Record {
		r := record.Record{
			ID: text().Draw(t, "id"), Meta: meta().Draw(t, "meta"), Components: components().Draw(t, "components"),
			Start: times().Draw(t, "start"), Stop: maybe(times()).Draw(t, "stop"), Submit: record.None,
		}
		for i := range r.Components {
			r.Components[i].Kind = record.Rate
		}
		return r
	})
}

func records() *rapid.Generator[record.Record] {
	return rapid.Custom(func(t *rapid.T) record.Record {
		r := auditors().Draw(t, "record")
		r.Components = components().Draw(t, "components")
		r.Submit = maybe(times()).Draw(t, "submit")
		r.State = rapid.SampledFrom([]string{"", "COMPLETED"}).Draw(t, "state")
		if rapid.Bool().Draw(t, "exited") {
			r.Exit = record.Exit{Known: true, Code: rapid.Int32().Draw(t, "code"), Signal: rapid.Int32().Draw(t, "signal")}
		}
		return r
	})
}

func frames() *rapid.Generator[Frame] {
	return rapid.Custom(func(t *rapid.T) Frame {
		f := Frame{
			SourceType: rapid.SampledFrom([]string{"", "slurm"}).Draw(t, "type"), SourceLabel: rapid.SampledFrom([]string{"", "nemo"}).Draw(t, "label"),
			Rank: record.Rank(rapid.IntRange(0, 4).Draw(t, "rank")), Settles: rapid.SampledFrom([]string{"", "q1"}).Draw(t, "settles"), IDReused: rapid.Bool().Draw(t, "reused"),
			Version: record.Version{Ended: rapid.Bool().Draw(t, "ended"), Observed: rapid.Int64Min(0).Draw(t, "observed")},
			Kind:    Kind(rapid.IntRange(int(KindRecord), int(KindCount)).Draw(t, "kind")),
		}
		fill(t, &f)
		return f
	})
}

func fill(t *rapid.T, f *Frame) {
	count := rapid.Int64Min(0)
	switch f.Kind {
	case KindRecord:
		f.Record = records().Draw(t, "record")
		f.ID = f.Record.ID
	case KindStop:
		f.ID, f.Stop = text().Draw(t, "id"), times().Draw(t, "stop")
	case KindWithdraw:
		f.ID, f.Run = text().Draw(t, "id"), RunOf(maybe(times()).Draw(t, "start"), maybe(times()).Draw(t, "submit"))
	case KindQuarantine:
		f.Quarantine = Quarantine{ID: text().Draw(t, "id"), Reason: "mapping", Message: text().Draw(t, "message"),
			RecordID: text().Draw(t, "record"), Raw: rapid.SliceOf(rapid.Byte()).Draw(t, "raw"), Truncated: rapid.Bool().Draw(t, "cut")}
	case KindGap:
		f.Gap = Gap{From: times().Draw(t, "from"), To: times().Draw(t, "to"), Reason: text().Draw(t, "reason")}
	case KindWatermark:
		f.Watermark, f.Begin = times().Draw(t, "to"), times().Draw(t, "begin")
	case KindCensus:
		f.Census.At = times().Draw(t, "at")
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			f.Census.Rows = append(f.Census.Rows, CensusRow{text().Draw(t, "user"), text().Draw(t, "queue"), count.Draw(t, "running"), count.Draw(t, "pending")})
		}
	case KindCapacity:
		f.Capacity = Capacity{From: times().Draw(t, "from"), Components: components().Draw(t, "components")}
	case KindDirectory:
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			f.Directory.Rows = append(f.Directory.Rows, DirectoryRow{text().Draw(t, "user"), rapid.SliceOfN(text(), 0, 3).Draw(t, "groups"), text().Draw(t, "name"), ""})
		}
	case KindCheckpoint:
		f.Checkpoint = rapid.SliceOf(rapid.Byte()).Draw(t, "state")
	case KindCount:
		f.Count = Count{From: times().Draw(t, "from"), To: times().Draw(t, "to"), At: times().Draw(t, "at"), Counted: count.Draw(t, "counted"),
			Records: count.Draw(t, "records"), Filtered: count.Draw(t, "filtered"), Quarantined: count.Draw(t, "quarantined"),
			Shared: count.Draw(t, "shared"), Skipped: count.Draw(t, "skipped")}
	}
}

// message is r as the generated code has it.
func message(r *record.Record) *bursarv1.Record {
	m := &bursarv1.Record{Id: r.ID, MetaAbsent: r.Meta == nil, Components: componentMessages(r.Components), Start: int64(r.Start), State: r.State}
	for _, e := range r.Meta {
		m.Meta = append(m.Meta, &bursarv1.MetaEntry{Key: e.Key, Values: e.Values})
	}
	if stop := int64(r.Stop); r.Stop != record.None {
		m.Stop = &stop
	}
	if submit := int64(r.Submit); r.Submit != record.None {
		m.Submit = &submit
	}
	if r.Exit.Known {
		m.Exit = &bursarv1.Exit{Code: r.Exit.Code, Signal: r.Exit.Signal}
	}
	return m
}

func componentMessages(components []record.Component) (list []*bursarv1.Component) {
	for _, c := range components {
		m := &bursarv1.Component{Name: c.Name, Amount: c.Amount, Kind: bursarv1.Kind(c.Kind)}
		for _, s := range c.Scores {
			m.Scores = append(m.Scores, &bursarv1.Score{Name: s.Name, Value: s.Value})
		}
		list = append(list, m)
	}
	return list
}

func frameMessage(f *Frame) *bursarv1.Frame {
	m := &bursarv1.Frame{SourceType: f.SourceType, SourceLabel: f.SourceLabel, Rank: uint32(f.Rank),
		Observed: f.Version.Observed, Ended: f.Version.Ended, Settles: f.Settles, IdReused: f.IDReused}
	switch f.Kind {
	case KindRecord:
		m.Body = &bursarv1.Frame_Record{Record: message(&f.Record)}
	case KindStop:
		m.Body = &bursarv1.Frame_Stop{Stop: &bursarv1.Stop{Id: f.ID, Stop: int64(f.Stop)}}
	case KindWithdraw:
		m.Body = &bursarv1.Frame_Withdraw{Withdraw: &bursarv1.Withdraw{Id: f.ID, Start: int64(f.Run.Start), Submit: int64(f.Run.Submit)}}
	case KindQuarantine:
		q := f.Quarantine
		m.Body = &bursarv1.Frame_Quarantine{Quarantine: &bursarv1.Quarantine{Id: q.ID, Reason: q.Reason, Message: q.Message, RecordId: q.RecordID, Raw: q.Raw, Truncated: q.Truncated}}
	case KindGap:
		m.Body = &bursarv1.Frame_Gap{Gap: &bursarv1.Gap{From: int64(f.Gap.From), To: int64(f.Gap.To), Reason: f.Gap.Reason}}
	case KindWatermark:
		m.Body = &bursarv1.Frame_Watermark{Watermark: &bursarv1.Watermark{CompleteTo: int64(f.Watermark), CompleteFrom: int64(f.Begin)}}
	case KindCensus:
		c := &bursarv1.Census{At: int64(f.Census.At)}
		for _, row := range f.Census.Rows {
			c.Rows = append(c.Rows, &bursarv1.CensusRow{User: row.User, Queue: row.Queue, Running: row.Running, Pending: row.Pending})
		}
		m.Body = &bursarv1.Frame_Census{Census: c}
	case KindCapacity:
		m.Body = &bursarv1.Frame_Capacity{Capacity: &bursarv1.Capacity{From: int64(f.Capacity.From), Components: componentMessages(f.Capacity.Components)}}
	case KindDirectory:
		d := &bursarv1.Directory{}
		for _, row := range f.Directory.Rows {
			d.Rows = append(d.Rows, &bursarv1.DirectoryRow{User: row.User, Groups: row.Groups, Name: row.Name, Address: row.Address})
		}
		m.Body = &bursarv1.Frame_Directory{Directory: d}
	case KindCheckpoint:
		m.Body = &bursarv1.Frame_Checkpoint{Checkpoint: &bursarv1.Checkpoint{State: f.Checkpoint}}
	case KindCount:
		c := f.Count
		m.Body = &bursarv1.Frame_Count{Count: &bursarv1.Count{From: int64(c.From), To: int64(c.To), At: int64(c.At), Counted: c.Counted, Records: c.Records,
			Filtered: c.Filtered, Quarantined: c.Quarantined, Shared: c.Shared, Skipped: c.Skipped}}
	}
	return m
}
