package action

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
)

func TestRows_NothingConfigured_HaveNodeCountAndDescription(t *testing.T) {
	collected := func(values ...string) record.Record {
		one := job("1", "nemo", "2026-08-10T00:00:00Z", 60)
		if values != nil {
			one.Meta = append(record.Meta{{Key: "collector_type", Values: values}}, one.Meta...)
		}
		return one
	}
	for _, c := range []struct {
		site, fields string
		record       record.Record
		want         string
	}{
		{"", "", collected(), "InfrastructureDescription: BURSAR-UNKNOWN-UNKNOWN\nNodeCount: 1\n"},
		{"ce = \"ARC\"\n", "", collected("slurm", "other"), "InfrastructureDescription: BURSAR-ARC-slurm\nNodeCount: 1\n"},
		{"ce = \"ARC\"\n", "", collected("slürm"), "ce1.example.org\nNodeCount: 1\n"},
		{"ce = \"ARC\"\n", "", collected(strings.Repeat("s", 90)), "ce1.example.org\nNodeCount: 1\n"},
		{"", "InfrastructureDescription = \"AUDITOR_0.11.2-ARC-slurm\"\nNodeCount = 3\n", collected("slurm"), "InfrastructureDescription: AUDITOR_0.11.2-ARC-slurm\nNodeCount: 3\n"},
	} {
		r := newRig(t, strings.Replace(mapped, "fields {\n", "fields {\n"+c.fields, 1)+"site \"UNI-EXAMPLE\" {\nids = [\"nemo\"]\n"+c.site+"}\n")
		r.data.records = []record.Record{c.record}
		p := r.plans(t, "2026-08-20T00:00:00Z", nil)
		named := strings.Contains(strings.Join(p.Notes, "\n"), "UNI-EXAMPLE 2026-08: 1 records are reported without InfrastructureDescription, which the receiver would refuse: ")
		if named == strings.Contains(c.want, "Description") || len(p.Effects) != 2 || !strings.Contains(text(t, p.Effects[1]), c.want) {
			t.Errorf("%s %s: %d effects, %v\nwant %s", c.site, c.fields, len(p.Effects), p.Notes, c.want)
		}
	}
	for _, bad := range []string{"ce = \"\"", "ce = \"a\\nb\"", "ce = \"" + strings.Repeat("c", 101) + "\""} {
		if _, err := configure(t, "from = \"2026-08\"\ndirectory {\n  path = \""+t.TempDir()+"\"\n}\n"+mapped+"site \"A\" {\n"+bad+"\n}\n"); err == nil || !strings.Contains(err.Error(), "invalid ce") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
