package nomad

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"
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
