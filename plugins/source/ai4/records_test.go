package main

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

var update = flag.Bool("update", false, "write the golden file")

// The aggregator's tests make the reports of ai4-accounting of these records.
func TestImport_RecordedSnapshots_GiveTheGoldenRecords(t *testing.T) {
	const path = "testdata/records.ndjson"
	var columns []*bursarv1.Attribute
	for _, a := range jobAttributes() {
		columns = append(columns, &bursarv1.Attribute{Name: a.Name, Type: bursarv1.Type(a.Type)})
	}
	m, diags := mapping.Compile(mapping.Options{Agent: "import", Type: "ai4", Label: "cloud", Attributes: columns, Default: defaultMapping})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var out []byte
	stream := sdk.NewStream(jobAttributes(), func(_ context.Context, b sdk.Batch) error {
		for _, j := range b.Jobs {
			r, keep, err := m.Map(sent(j))
			if err != nil {
				return err
			}
			if keep {
				out = append(wire.AppendV1JSON(out, &r, wire.V1Extra{}), '\n')
			}
		}
		return nil
	})
	s := &source{settings: from(absolute(t, "testdata/snapshots")), zone: time.UTC}
	if err := s.Collect(t.Context(), sdk.Start{}, stream); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(out)); diff != "" {
		t.Errorf("%s (-want +got); write it anew with -update\n%s", path, diff)
	}
}

// sent is a job as it comes to the daemon.
func sent(j sdk.Job) *bursarv1.Job {
	out := &bursarv1.Job{Run: j.Run, Ended: j.Ended}
	for i, a := range jobAttributes() {
		v := j.Values[i]
		one := &bursarv1.Value{}
		switch {
		case v.IsNull():
		case a.Type == sdk.TypeString:
			one.Kind = &bursarv1.Value_StringValue{StringValue: v.Str()}
		case a.Type == sdk.TypeInt:
			one.Kind = &bursarv1.Value_IntValue{IntValue: v.Int()}
		case a.Type == sdk.TypeBool:
			one.Kind = &bursarv1.Value_BoolValue{BoolValue: v.Bool()}
		case a.Type == sdk.TypeTime:
			one.Kind = &bursarv1.Value_IntValue{IntValue: v.Time().UnixMicro()}
		}
		out.Values = append(out.Values, one)
	}
	return out
}
