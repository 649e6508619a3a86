package action

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// mixed writes a name in any case.
func mixed(chance *rand.Rand, name string) string {
	b := []byte(name)
	for i := range b {
		if chance.IntN(2) == 0 {
			b[i] = strings.ToUpper(name)[i]
		}
	}
	return string(b)
}

// Records with all that the receiver cannot tell apart or store: what it then has are
// the sums of all records but those that the plan names.
func TestPlan_WhatTheReceiverCannotTellApart_IsCountedOrNamed(t *testing.T) {
	for seed := range uint64(30) {
		chance := rand.New(rand.NewPCG(seed, 28))
		send := []string{"", "send = \"jobs\"\n", "send = \"jobs\"\njobs_version = \"0.3\"\n"}[seed%3]
		r := newRig(t, send+`
site "UNI-EXAMPLE" { ids = ["nemo"] }
fields {
  VO             = record.meta.vo[0]
  SubmitHost     = record.meta.host[0]
  GlobalUserName = try(record.meta.dn[0], null)
  VOGroup        = try(record.meta.group[0], null)
  VORole         = try(record.meta.role[0], null)
  Infrastructure = try(record.meta.kind[0], null)
  NodeCount      = try(record.components.Nodes.amount, null)
  LocalJobId     = record.meta.job[0]
  Queue          = try(record.meta.queue[0], null)
  MemoryReal     = try(record.components.Memory.amount, null)
}
`)
		names := func(key string, list ...string) record.MetaEntry {
			return record.MetaEntry{Key: key, Values: []string{mixed(chance, list[chance.IntN(len(list))])}}
		}
		want := map[string]total{} // by record
		for i := range 200 {
			id := fmt.Sprintf("nemo-%03d", i)
			one := job(id, "nemo", fmt.Sprintf("2026-08-%02dT00:00:00Z", 1+chance.IntN(3)), 1+chance.IntN(1000))
			one.Meta = record.Meta{
				names("collector_type", "slurm", "htcondor", strings.Repeat("c", 1+chance.IntN(150))),
				names("dn", "none", "null", "/DC=org/CN=a", "/DC=org/CN=b"), names("group", "none", "/elf", "null"), names("host", "ce1", "ce2", "none"),
				names("job", fmt.Sprint("job", i/2), id), names("kind", "grid", "local", "none", "infrastructure-of-everybody"),
				names("queue", "long", strings.Repeat("q", 150)), names("role", "pilot", "null"),
				{Key: "site_id", Values: []string{"nemo"}}, names("vo", "elf", "none", "null", "dwarf"),
			}
			for k := range one.Meta {
				if name := one.Meta[k].Key; chance.IntN(4) == 0 && name != "site_id" && name != "vo" && name != "host" && name != "job" {
					one.Meta[k].Key = "not-" + name
				}
			}
			one.Meta = one.Meta.Sorted()
			if chance.IntN(20) == 0 {
				one.Components[1].Amount = math.MaxInt32 + chance.Int64N(10)
			}
			if chance.IntN(3) == 0 {
				one.Components = append(one.Components, record.Component{Name: "Nodes", Amount: chance.Int64N(3)}, record.Component{Name: "Memory", Amount: 1 << (10 * chance.Int64N(5))})
			}
			r.data.records = append(r.data.records, one)
			seconds, _ := one.Runtime()
			want[id] = total{1, seconds, one.Components[1].Amount}
		}
		now := at("2026-08-20T00:00:00Z")
		p := r.plans(t, "2026-08-20T00:00:00Z", nil)
		receiver := &apeltest.Receiver{}
		for _, e := range p.Effects {
			if err := receiver.Take(text(t, e), now); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		var sum, got total
		left := map[string]bool{}
		for _, note := range p.Notes {
			if _, ids, ok := strings.Cut(note, "nemo-"); ok && strings.Contains(note, "left out: ") {
				for id := range strings.SplitSeq("nemo-"+ids, ", ") {
					left[id] = true
				}
			}
		}
		for id, one := range want {
			if !left[id] {
				sum = total{sum.jobs + one.jobs, sum.wall + one.wall, sum.cpu + one.cpu}
			}
		}
		if header := "APEL-norm"; send == "" {
			got = total{receiver.Sum(header, "NumberOfJobs"), receiver.Sum(header, "WallDuration"), receiver.Sum(header, "CpuDuration")}
		} else {
			header = "APEL-indi"
			got = total{int64(len(receiver.Rows(header))), receiver.Sum(header, "WallDuration"), receiver.Sum(header, "CpuDuration")}
		}
		if got != sum || receiver.Sum("APEL-sync", "NumberOfJobs") != got.jobs || got.jobs < 50 || (len(left) > 0) != p.Partial {
			t.Errorf("seed %d %s: the receiver has %+v and is told of %d jobs, and %d of 200 records that are not left out make %+v; partial: %t\n%s",
				seed, send, got, receiver.Sum("APEL-sync", "NumberOfJobs"), 200-len(left), sum, p.Partial, strings.Join(p.Notes, "\n"))
		}
	}
}
