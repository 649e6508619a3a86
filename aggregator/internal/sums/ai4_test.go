package sums

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// ai4World is a small Nomad cluster: testdata/ai4-world.json.
type ai4World struct {
	Jobs []struct {
		ID, NS string
		Meta   map[string]string
	}
	Allocs []struct {
		ID, Job                string
		Starts                 []time.Time
		End                    *time.Time
		Cores, GPUs, Mem, Disk int64
	}
}

// load posts the world's allocations, each a record of its own from its first start
// to its end.
func (w *ai4World) load(b *box) {
	job := map[string]int{}
	for i := range w.Jobs {
		job[w.Jobs[i].ID] = i
	}
	for _, a := range w.Allocs {
		j := &w.Jobs[job[a.Job]]
		r := record.Record{ID: a.ID, Start: record.Time(a.Starts[0].UnixMicro()), Stop: record.None, Submit: record.None}
		if a.End != nil {
			r.Stop = record.Time(a.End.UnixMicro())
		}
		r.Meta = record.Meta{{Key: "job", Values: []string{j.ID}}, {Key: "namespace", Values: []string{j.NS}}}
		if owner := j.Meta["owner"]; owner != "" {
			r.Meta = append(r.Meta, record.MetaEntry{Key: "owner", Values: []string{owner}})
		}
		for name, amount := range map[string]int64{"cpu": a.Cores, "gpu": a.GPUs, "memory_MB": a.Mem, "disk_MB": a.Disk} {
			r.Components = append(r.Components, record.Component{Name: name, Amount: amount})
		}
		b.post(r)
	}
}

func instant(t *testing.T, text string) record.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return record.Time(at.UnixMicro())
}

// hours sums up the buckets of a component, in hours.
func hours(a *Answer, g int, name string) *big.Rat {
	c, ok := a.find(name, record.Rate)
	sum := new(big.Int)
	for b := range len(a.Edges) - 1 {
		if ok {
			sum.Add(sum, c.Used[g*(len(a.Edges)-1)+b].Big())
		}
	}
	return new(big.Rat).SetFrac(sum, big.NewInt(3600*million))
}

func (a *Answer) find(name string, kind record.Kind) (*Component, bool) {
	for i := range a.Components {
		if c := &a.Components[i]; c.Name == name && c.Kind == kind {
			return c, true
		}
	}
	return nil, false
}

// TestTheWorldOfAI4IsCountedAsItWas compares with testdata/ai4-truth.txt, which is
// exact interval arithmetic: by job and by namespace, from the index and from the
// rows, in one window and in three days that add up to it.
func TestTheWorldOfAI4IsCountedAsItWas(t *testing.T) {
	text, err := os.ReadFile("testdata/ai4-world.json")
	if err != nil {
		t.Fatal(err)
	}
	var w ai4World
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	b := newBox(t, 1)
	w.load(b)
	want := truth(t)
	days := []record.Time{instant(t, "2025-03-01T00:00:00Z"), instant(t, "2025-03-02T00:00:00Z"), instant(t, "2025-03-03T00:00:00Z"), instant(t, "2025-03-04T00:00:00Z")}
	for _, edges := range [][]record.Time{{days[0], days[3]}, days} {
		for _, dims := range [][]string{{"namespace", "job"}, {"owner"}} {
			x := newIndex(t, Options{Views: b, Life: life}, dims)
			got := map[string]string{}
			for _, by := range [][]string{{"namespace", "job"}, {"namespace"}} {
				a, err := x.Answer(context.Background(), Query{Edges: edges, By: by, Now: instant(t, "2025-03-05T00:00:00Z")})
				if err != nil {
					t.Fatal(err)
				}
				for g := range a.Groups {
					name := strings.Join(a.Groups[g].Values, " ")
					got[name] = fmt.Sprint("cpu ", hours(a, g, "cpu").FloatString(4), " gpu ", hours(a, g, "gpu").FloatString(4))
					if len(by) == 1 {
						got[name] += fmt.Sprint(" memory ", hours(a, g, "memory_MB").FloatString(2), " disk ", hours(a, g, "disk_MB").FloatString(2))
					}
				}
			}
			for name, line := range want {
				if got[name] != line {
					t.Errorf("%d buckets, dimensions %v: %s is %s, want %s", len(edges)-1, dims, name, got[name], line)
				}
			}
		}
	}
}

// truth reads the expected figures by namespace, and by namespace and job.
func truth(t *testing.T) map[string]string {
	f, err := os.Open("testdata/ai4-truth.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, ns := map[string]string{}, ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0:
		case len(words) == 1:
			ns = words[0]
		case words[0] == "total":
			out[ns] = fmt.Sprint("cpu ", words[2], " gpu ", words[4], " memory ", words[6], " disk ", words[8])
		default:
			out[ns+" "+words[0]] = fmt.Sprint("cpu ", words[5], " gpu ", words[7])
		}
	}
	return out
}
