package wire

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRecordsHaveTheBytesOfTheGeneratedCode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := records().Draw(t, "record")
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(message(&r))
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendRecord([]byte("x"), &r); !bytes.Equal(got[1:], want) {
			t.Fatalf("got %x\nwant %x", got[1:], want)
		}
		var back record.Record
		if err := DecodeRecord(want, &back); err != nil {
			t.Fatal(err)
		}
		if diff := sameRecord(&r, &back); diff != "" {
			t.Fatal(diff)
		}
		if r.Digest() != back.Digest() {
			t.Fatal("the digest changed")
		}
	})
}

func TestFramesHaveTheBytesOfTheGeneratedCode(t *testing.T) {
	var d Lender
	rapid.Check(t, func(t *rapid.T) {
		f := frames().Draw(t, "frame")
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(frameMessage(&f))
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendFrame(nil, &f); !bytes.Equal(got, want) {
			t.Fatalf("got %x\nwant %x", got, want)
		}
		var back Frame
		if err := d.Frame(want, &back); err != nil {
			t.Fatal(err)
		}
		if diff := sameRecord(&f.Record, &back.Record); f.Kind == KindRecord && diff != "" {
			t.Fatal(diff)
		}
		f.Record, back.Record = record.Record{}, record.Record{}
		if diff := cmp.Diff(f, back, emptyIsNil); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestALenderNeverReusesWhatItGave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Lender
		list := rapid.SliceOfN(records(), 1, 30).Draw(t, "records")
		back := make([]record.Record, len(list))
		for i := range list {
			if err := d.Record(AppendRecord(nil, &list[i]), &back[i]); err != nil {
				t.Fatal(err)
			}
		}
		for i := range list {
			if diff := sameRecord(&list[i], &back[i]); diff != "" {
				t.Fatal(i, diff)
			}
		}
	})
}

func TestALenderThatWasResetDecodesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Lender
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			list := rapid.SliceOfN(records(), 1, 20).Draw(t, "records")
			back := make([]record.Record, len(list))
			for i := range list {
				if err := d.Record(AppendRecord(nil, &list[i]), &back[i]); err != nil {
					t.Fatal(err)
				}
			}
			for i := range list {
				if diff := sameRecord(&list[i], &back[i]); diff != "" {
					t.Fatal(i, diff)
				}
			}
			d.Reset()
		}
	})
}

func TestUnknownFieldsArePassedOver(t *testing.T) {
	extra := protowire.AppendTag(nil, 100, protowire.VarintType)
	extra = protowire.AppendVarint(extra, 1<<40)
	extra = protowire.AppendTag(extra, 101, protowire.BytesType)
	extra = protowire.AppendBytes(extra, []byte("later"))
	extra = protowire.AppendTag(extra, 102, protowire.Fixed32Type)
	extra = protowire.AppendFixed32(extra, 7)
	extra = protowire.AppendTag(extra, 103, protowire.Fixed64Type)
	extra = protowire.AppendFixed64(extra, 7)
	f := Frame{Kind: KindWithdraw, ID: "run"}
	var got Frame
	if err := DecodeFrame(append(AppendFrame(nil, &f), extra...), &got); err != nil || got.ID != "run" {
		t.Errorf("%+v, %v", got, err)
	}
	r := record.Record{ID: "run", Stop: record.None, Submit: record.None}
	var back record.Record
	if err := DecodeRecord(append(AppendRecord(nil, &r), extra...), &back); err != nil || back.ID != "run" {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestMalformedProtobufIsAnError(t *testing.T) {
	stop := AppendFrame(nil, &Frame{Kind: KindStop, ID: "run", Stop: 1})
	cases := map[string][]byte{
		"no body":                     AppendFrame(nil, &Frame{SourceType: "slurm"}),
		"nothing":                     nil,
		"a body of a later kind":      protowire.AppendBytes(protowire.AppendTag(nil, 20, protowire.BytesType), []byte("x")),
		"two bodies":                  append(bytes.Clone(stop), stop...),
		"a body that is a number":     {10 << 3, 1},
		"a cut body":                  stop[:len(stop)-1],
		"a length beyond the end":     {11<<3 | 2, 200},
		"a length without end":        {11<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a number over 64 bits":       {5 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},
		"a rank over 8 bits":          append([]byte{3 << 3, 0x80, 0x02}, stop...),
		"a group":                     append([]byte{7<<3 | 3}, stop...),
		"field zero":                  append([]byte{0, 1}, stop...),
		"a known field of other type": append([]byte{1 << 3, 1}, stop...),
	}
	for name, b := range cases {
		var f Frame
		if err := DecodeFrame(b, &f); !errors.Is(err, ErrProto) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFrameIsTheStatementOfItsSource(t *testing.T) {
	v := record.Version{Ended: true, Observed: 7}
	from := record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	r := record.Record{ID: "run"}
	cases := []struct {
		name string
		f    Frame
		want record.Write
	}{
		{"record", Frame{SourceType: "slurm", SourceLabel: "nemo", Rank: 4, Version: v, Kind: KindRecord, Record: r},
			record.Write{ID: "run", Op: record.OpPut, Origin: from, Rank: 4, Version: v, Record: &r, Stop: record.None}},
		{"pushed stop", Frame{Rank: 2, Version: v, Kind: KindStop, ID: "run", Stop: 9},
			record.Write{ID: "run", Op: record.OpStop, Rank: 2, Version: v, Stop: 9}},
		{"withdrawal", Frame{SourceType: "slurm", SourceLabel: "nemo", Rank: 4, Version: v, Kind: KindWithdraw, ID: "run"},
			record.Write{ID: "run", Op: record.OpWithdraw, Origin: from, Rank: 4, Version: v, Stop: record.None}},
	}
	for _, c := range cases {
		got, ok := c.f.Write("head1")
		if diff := cmp.Diff(c.want, got); diff != "" || !ok {
			t.Errorf("%s: %v %s", c.name, ok, diff)
		}
	}
	for k := KindQuarantine; k <= KindCount; k++ {
		if _, ok := (&Frame{Kind: k}).Write("head1"); ok {
			t.Errorf("%s is a statement", k)
		}
	}
}

// goldenRecord is the record of the golden files, for ever.
func goldenRecord() record.Record {
	return record.Record{
		ID: "nemo-slurm-1234567",
		Meta: record.Meta{
			{Key: "group_id", Values: []string{"atlas"}},
			{Key: "site_id", Values: []string{"nemo"}},
			{Key: "voms", Values: []string{"/atlas/Role=production", "ё\n\"x\""}},
		},
		Components: []record.Component{
			{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HEPScore23", Value: 21.5}, {Name: "one", Value: 1}}},
			{Name: "TotalCPU", Amount: 86400, Kind: record.Total},
		},
		Start: 1_700_000_000_000000, Stop: 1_700_003_600_123456, Submit: 1_699_999_000_000000,
		State: "COMPLETED", Exit: record.Exit{Known: true, Code: 1, Signal: 9},
	}
}

// golden returns the file's bytes, which -update sets to got.
func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFramesOfTheFirstFormatStayReadable(t *testing.T) {
	f := Frame{SourceType: "slurm", SourceLabel: "nemo", Rank: record.RankScheduler,
		Version: record.Version{Ended: true, Observed: 1_700_003_700_000000}, Settles: "q7", Kind: KindRecord, Record: goldenRecord()}
	want := golden(t, "frame1.pb", AppendFrame(nil, &f))
	if got := AppendFrame(nil, &f); !bytes.Equal(got, want) {
		t.Errorf("got %x\nwant %x", got, want)
	}
	var back Frame
	if err := DecodeFrame(want, &back); err != nil {
		t.Fatal(err)
	}
	f.ID = f.Record.ID
	if diff := cmp.Diff(f, back, emptyIsNil); diff != "" {
		t.Error(diff)
	}
}

func TestCountFramesStayReadable(t *testing.T) {
	f := Frame{SourceType: "slurm", SourceLabel: "nemo", Rank: record.RankScheduler, Version: record.Version{Observed: 1_700_092_800_000000}, Kind: KindCount,
		Count: Count{From: 1_699_920_000_000000, To: 1_700_006_400_000000, At: 1_700_013_600_000000, Counted: 1204, Records: 1100, Filtered: 99, Quarantined: 3, Shared: 2, Skipped: 7}}
	want := golden(t, "frame1-count.pb", AppendFrame(nil, &f))
	if got := AppendFrame(nil, &f); !bytes.Equal(got, want) {
		t.Errorf("got %x\nwant %x", got, want)
	}
	var back Frame
	if err := DecodeFrame(want, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, back, emptyIsNil); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecodeFrame(f *testing.F) {
	r := goldenRecord()
	f.Add(AppendFrame(nil, &Frame{SourceType: "slurm", Kind: KindRecord, Record: r}))
	for k := KindStop; k <= KindCount; k++ {
		f.Add(AppendFrame(nil, &Frame{Kind: k, ID: "run", Checkpoint: []byte{1}, Count: Count{From: 1, To: 2, Counted: 3, Skipped: 4}, Census: Census{Rows: make([]CensusRow, 2)}, Directory: Directory{Rows: make([]DirectoryRow, 2)}}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var frame, back Frame
		if err := DecodeFrame(b, &frame); err != nil {
			return
		}
		again := AppendFrame(nil, &frame)
		if err := DecodeFrame(again, &back); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, AppendFrame(nil, &back)) {
			t.Fatal("the second round differs")
		}
		var m, n bursarv1.Frame
		if proto.Unmarshal(b, &m) != nil { // text that is not UTF-8: Validate's business
			return
		}
		if err := proto.Unmarshal(again, &n); err != nil {
			t.Fatal(err)
		}
		m.ProtoReflect().SetUnknown(nil)
		if frame.Kind != Kind(m.ProtoReflect().WhichOneof(m.ProtoReflect().Descriptor().Oneofs().Get(0)).Number()) {
			t.Fatal("another kind")
		}
	})
}

func benchmarkRecords(n int) []record.Record {
	list := make([]record.Record, n)
	for i := range list {
		list[i] = record.Record{
			ID: "nemo-slurm-" + string(rune('0'+i%10)) + "234567",
			Meta: record.Meta{{Key: "account", Values: []string{"bw20f007"}}, {Key: "group_id", Values: []string{"atlas"}}, {Key: "partition", Values: []string{"compute"}},
				{Key: "site_id", Values: []string{"nemo"}}, {Key: "user_id", Values: []string{"ab1234"}}},
			Components: []record.Component{
				{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HEPScore23", Value: 21.5}}},
				{Name: "Memory", Amount: 16000}, {Name: "TotalCPU", Amount: 86400, Kind: record.Total}, {Name: "Energy", Amount: 123456, Kind: record.Total}},
			Start: 1_700_000_000_123456, Stop: 1_700_003_600_654321, Submit: 1_699_999_000_000000,
			State: "COMPLETED", Exit: record.Exit{Known: true},
		}
	}
	return list
}

func perRecord(b *testing.B, n int) {
	b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "rec/s")
}

func encodedRecords(n int) (encoded [][]byte) {
	for _, r := range benchmarkRecords(n) {
		encoded = append(encoded, AppendRecord(nil, &r))
	}
	return encoded
}

func decodeAll(b *testing.B, d *Lender, r *record.Record, encoded [][]byte) {
	for _, e := range encoded {
		if err := d.Record(e, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	encoded := encodedRecords(1000)
	b.ReportAllocs()
	for b.Loop() {
		var d Lender
		var r record.Record
		decodeAll(b, &d, &r, encoded)
	}
	perRecord(b, len(encoded))
}

func BenchmarkDecodeRecordAndReset(b *testing.B) {
	encoded := encodedRecords(1000)
	b.ReportAllocs()
	var d Lender
	for b.Loop() {
		d.Reset()
		var r record.Record
		decodeAll(b, &d, &r, encoded)
	}
	perRecord(b, len(encoded))
}

func BenchmarkAppendRecord(b *testing.B) {
	list := benchmarkRecords(1000)
	var buf []byte
	for b.Loop() {
		for i := range list {
			buf = AppendRecord(buf[:0], &list[i])
		}
	}
	perRecord(b, len(list))
}
