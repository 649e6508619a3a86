package source

import (
	"flag"
	"os"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

var update = flag.Bool("update", false, "write the golden files")

// checkRecords compares the records of all runs with testdata/ai4-records.ndjson, of
// which the aggregator's tests make the reports of that cluster.
func (s *site) checkRecords() {
	s.t.Helper()
	const path = "testdata/ai4-records.ndjson"
	got := s.records()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		s.t.Errorf("%s (-want +got)\n%s", path, diff)
	}
}

// records are those of all runs, a line each, by their start.
func (s *site) records() string {
	s.t.Helper()
	file, diags := hcl.Parse("agent.hcl", []byte(s.readmeRecord()))
	if diags.HasErrors() {
		s.t.Fatal(diags)
	}
	var attributes []*bursarv1.Attribute
	for _, a := range run.Attributes() {
		attributes = append(attributes, &bursarv1.Attribute{Name: a.Name, Type: bursarv1.Type(a.Type)})
	}
	m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: "nomad", Label: "cloud", Attributes: attributes, Default: Mapping, Record: file.Body})
	if diags.HasErrors() {
		s.t.Fatal(diags)
	}
	var list []record.Record
	for _, j := range s.jobs {
		r, keep, err := m.Map(sent(j))
		if err != nil {
			s.t.Fatal(err)
		}
		if keep {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b record.Record) int {
		if a.Start != b.Start {
			return int(max(-1, min(1, a.Start-b.Start)))
		}
		return strings.Compare(a.ID, b.ID)
	})
	var out []byte
	for i := range list {
		out = append(wire.AppendV1JSON(out, &list[i], wire.V1Extra{}), '\n')
	}
	return string(out)
}

// sent is a job as it comes to the daemon.
func sent(j sdk.Job) *bursarv1.Job {
	out := &bursarv1.Job{Run: j.Run, Ended: j.Ended}
	for i, a := range run.Attributes() {
		out.Values = append(out.Values, sentValue(a.Type, j.Values[i]))
	}
	return out
}

func sentValue(typ sdk.Type, v sdk.Value) *bursarv1.Value {
	if v.IsNull() {
		return &bursarv1.Value{}
	}
	switch typ {
	case sdk.TypeString:
		return &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: v.Str()}}
	case sdk.TypeInt:
		return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: v.Int()}}
	case sdk.TypeFloat:
		return &bursarv1.Value{Kind: &bursarv1.Value_FloatValue{FloatValue: v.Float()}}
	case sdk.TypeBool:
		return &bursarv1.Value{Kind: &bursarv1.Value_BoolValue{BoolValue: v.Bool()}}
	case sdk.TypeTime:
		return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: v.Time().UnixMicro()}}
	default: // no mapping here has lists or maps
		return &bursarv1.Value{}
	}
}

// readmeRecord is the record block that the README has for the files of ai4-papi.
func (s *site) readmeRecord() string {
	s.t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		s.t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "## Files for ai4-papi\n")
	_, block, _ := strings.Cut(section, "```hcl\nrecord {\n")
	block, _, found := strings.Cut(block, "\n}\n```")
	if !found {
		s.t.Fatal("README.md has no record block for ai4-papi")
	}
	return block
}
