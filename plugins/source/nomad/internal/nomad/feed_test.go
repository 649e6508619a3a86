package nomad

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTheRecordedStreamIsReadWhole(t *testing.T) {
	text, err := os.ReadFile("testdata/event-stream.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	allocations, jobs := map[string]bool{}, map[string]*Job{}
	changes := 0
	var stopped []string
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		events, err := ParseEvents(line)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Index == 0 || e.Type == "" {
				t.Errorf("%+v", e)
			}
			if e.Stopped != nil {
				stopped = append(stopped, e.Stopped.JobID)
				continue
			}
			if e.Job != nil {
				jobs[e.Job.ID] = e.Job
				continue
			}
			changes++
			allocations[e.Allocation.ID] = true
			if e.Allocation.AllocatedResources == nil || e.Allocation.CreateTime == 0 || e.Allocation.ModifyIndex != e.Index {
				t.Errorf("%+v", e.Allocation)
			}
		}
	}
	if len(allocations) != 13 || changes != 42 {
		t.Errorf("%d allocations in %d changes", len(allocations), changes)
	}
	if !slices.Equal(stopped, []string{"websvc"}) {
		t.Errorf("stopped jobs: %v", stopped)
	}
	j := jobs["batch-ok"]
	if j == nil || j.Meta["user"] != "alice@uni.eu" || len(j.TaskGroups) != 1 || len(j.TaskGroups[0].Tasks) != 2 {
		t.Fatalf("%+v", j)
	}
	main := j.TaskGroups[0].Tasks[0]
	if main.Driver != "raw_exec" || main.Config.Command != "/bin/sh" || len(main.Config.Args) != 2 || main.Meta["step"] != "main" {
		t.Errorf("%+v", main)
	}
}

func TestTheRecordedListingsAreRead(t *testing.T) {
	read := func(name string, into any) {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	var allocations []Allocation
	read("allocations.json", &allocations)
	for _, a := range allocations {
		if a.JobVersion == nil || a.AllocatedResources == nil || len(a.TaskStates) == 0 || a.NodeName != "rig-nomad" {
			t.Errorf("%+v", a)
		}
	}
	var nodes []Node
	read("nodes.json", &nodes)
	if n := nodes[0]; n.NodeResources.Cpu.TotalCpuCores != 2 || n.NodeResources.Memory.MemoryMB != 4096 || len(n.NodeResources.Devices[0].Instances) != 2 || n.Datacenter != "dc1" {
		t.Errorf("%+v", n)
	}
	var jobs []JobStub
	read("jobs.json", &jobs)
	if jobs[0].JobSummary == nil || jobs[0].CreateIndex != 12 || jobs[2].Meta["project"] != "P9" {
		t.Errorf("%+v", jobs[0])
	}
}

func TestWhatRanIsCutToWhatARecordNeeds(t *testing.T) {
	var c TaskConfig
	text := `{"image": 7, "command": "` + string(bytes.Repeat([]byte("ä"), 2000)) + `", "args": ["a", {"b": 1}, "c"], "auth": {"password": "x"}}`
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	if c.Image != "" || len(c.Command) != maxText || len(c.Args) != 3 || c.Args[2] != "c" {
		t.Errorf("image %q, command of %d bytes, args %v", c.Image, len(c.Command), c.Args)
	}
}

// No one takes the events of a stream: what waits is bounded in number and in bytes,
// whatever the size of lines, and the feed ends with the reason.
func TestWhatWaitsIsBoundedInNumberAndBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &Feed{ready: make(chan struct{}, 1)}
		var err error
		put, bytes := 0, 0
		for range 1_000_000 {
			n := rapid.SampledFrom([]int{0, 1, 1, 10, 5000, 40_000}).Draw(t, "events")
			line := rapid.SampledFrom([]int{100, 10_000, 1 << 20, 20 << 20, 40 << 20}).Draw(t, "bytes")
			if err = f.addEvents(make([]Event, n), line); err != nil {
				break
			}
			if n > 0 {
				alone := put == 0
				if put, bytes = put+n, bytes+line; !alone && (put > maxQueue || bytes > maxBytes) {
					t.Fatalf("%d events of %d bytes wait", put, bytes)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "take") == 0 {
				events, _ := f.Take()
				if len(events) != put {
					t.Fatalf("%d events of %d", len(events), put)
				}
				put, bytes = 0, 0
			}
		}
		events, _ := f.Take()
		if !errors.Is(err, ErrSlow) || len(events) != put {
			t.Fatalf("%v, %d events of %d", err, len(events), put)
		}
	})
}

// A line that is greater than all that may wait is taken when nothing else waits, so
// that no stream is stuck behind it.
func TestALineThatIsTooLargeAloneIsTaken(t *testing.T) {
	f := &Feed{ready: make(chan struct{}, 1)}
	for range 3 {
		if err := f.addEvents(make([]Event, 1), maxLine); err != nil {
			t.Fatal(err)
		}
		if err := f.addEvents(make([]Event, 1), 1); !errors.Is(err, ErrSlow) {
			t.Fatal(err)
		}
		if events, _ := f.Take(); len(events) != 1 {
			t.Fatal(len(events))
		}
	}
}

// A server that sends without end to a reader that takes nothing: the feed stops
// reading.
func TestAFeedThatNobodyTakesFromStopsReading(t *testing.T) {
	line := []byte(`{"Index":7,"Events":[{"Topic":"Job","Type":"JobRegistered","Payload":{"Job":{"ID":"a","Name":"` + strings.Repeat("x", 1<<20) + `"}}}]}` + "\n")
	sent := make(chan int, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for ; r.Context().Err() == nil; n++ {
			if _, err := w.Write(line); err != nil {
				break
			}
		}
		sent <- n
	}))
	defer server.Close()
	f := NewClient(Config{Address: server.URL}).Follow(t.Context(), 0)
	<-f.done
	events, err := f.Take()
	if !errors.Is(err, ErrSlow) || len(events) == 0 || len(events)*len(line) > maxBytes {
		t.Errorf("%d events, %v", len(events), err)
	}
	f.Close()
	if n := <-sent; n > 2*maxBytes/len(line) {
		t.Errorf("the server could send %d lines of %d bytes", n, len(line))
	}
}

func FuzzEvents(f *testing.F) {
	text, err := os.ReadFile("testdata/event-stream.ndjson")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		f.Add(line)
	}
	f.Add([]byte(`{"Index":1,"Events":[{"Topic":"Allocation","Payload":{"Allocation":{"ID":"a","TaskStates":{"t":null}}}}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		events, err := ParseEvents(line)
		if err != nil {
			return
		}
		for _, e := range events {
			n := 0
			for _, there := range []bool{e.Allocation != nil, e.Job != nil, e.Stopped != nil} {
				if there {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%+v", e)
			}
		}
	})
}
