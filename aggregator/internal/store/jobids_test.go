package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
)

// jobIDs are the ids of a job, and whether these are all.
func jobIDs(t testing.TB, b *box, job string) (list []string, whole bool) {
	t.Helper()
	b.view(func(v *View) {
		var err error
		if whole, err = v.JobIDs(job, func(id string) error {
			list = append(list, id)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
	return list, whole
}

func TestJobIDs_BehindPrefixesOfAnyKind_AreFound(t *testing.T) {
	b := newBox(t)
	ids := []string{
		"4711", "4711-1767225600", "nemo-4711", "nemo-4711_1", "nemo-4711_12", "nemo-47110", "nemo-47110_4", "nemo-14711", "nemo-4711a", "job4711", "job4711-1767225600",
		"grid2-4711", "grid2-4711.batch", "grid3-4712", "site.org/ce1/4711", "Ünal-4711", "nemo-9_4711", "nemo-b-4711", "uni:4711+x",
		"0f8fad5b-d9cb-469f-a165-70867728950e", "k8s-0f8fad5b-d9cb-469f-a165-70867728950e",
	}
	for i := range 3000 {
		ids = append(ids, fmt.Sprintf("nemo-%d_%d", 10_000+i, i), fmt.Sprintf("%08x-d9cb-469f-a165-70867728950e", 0x9e3779b9*uint32(i+1)))
	}
	var writes []record.Write
	for i, id := range ids {
		r := sample(id, i)
		if i%10 == 0 {
			r.Stop = record.None
		}
		writes = append(writes, put(r, int64(i+1)))
	}
	for part := range slices.Chunk(writes, 3000) {
		b.ingest("head1", t0, part...)
	}
	b.apply(&DeleteCommand{IDs: []string{"grid2-4711"}, Now: t0})
	for job, want := range map[string]string{
		"4711":                                 "4711 4711-1767225600 grid2-4711 grid2-4711.batch job4711 job4711-1767225600 nemo-4711 nemo-4711_1 nemo-4711_12 nemo-b-4711 site.org/ce1/4711 uni:4711+x Ünal-4711",
		"nemo-4711":                            "nemo-4711 nemo-4711_1 nemo-4711_12",
		"4711_1":                               "nemo-4711_1",
		"0f8fad5b-d9cb-469f-a165-70867728950e": "0f8fad5b-d9cb-469f-a165-70867728950e k8s-0f8fad5b-d9cb-469f-a165-70867728950e",
		"12":                                   "", // a task of an array is not a job
		"471":                                  "",
		"":                                     "",
	} {
		list, _ := jobIDs(t, b, job)
		if slices.Sort(list); strings.Join(list, " ") != want {
			t.Errorf("%s:\n got %s\nwant %s", job, strings.Join(list, " "), want)
		}
	}
}

func TestJobIDs_NumberInTheLabelOfASource_IsNotTheJobOfThatNumber(t *testing.T) {
	b := newBox(t)
	var writes []record.Write
	for i := range 300 {
		writes = append(writes, put(sample(fmt.Sprintf("grid2-slurm-%d", 1000+i), i), int64(i+1)), put(sample(fmt.Sprintf("grid3-%d", 1000+i), i), int64(i+1)))
	}
	b.ingest("head1", t0, append(writes, put(sample("grid2-slurm-2", 1), 1), put(sample("grid3-3", 1), 1))...)
	if list, _ := jobIDs(t, b, "2"); !slices.Equal(list, []string{"grid2-slurm-2"}) {
		t.Errorf("job 2: %v", list)
	}
	if list, _ := jobIDs(t, b, "3"); !slices.Equal(list, []string{"grid3-3"}) {
		t.Errorf("job 3: %v", list)
	}
}

func TestJobIDs_PrefixesBeyondNumber_AreSaidToBeLeftOut(t *testing.T) {
	b := newBox(t)
	var writes []record.Write
	for i := range mostRoots + 10 {
		writes = append(writes, put(sample(fmt.Sprintf("%c%c%c-1", 'a'+i/676, 'a'+i/26%26, 'a'+i%26), i), int64(i+1)))
	}
	b.ingest("head1", t0, writes[:mostRoots]...)
	if list, whole := jobIDs(t, b, "1"); !whole || len(list) != mostRoots {
		t.Errorf("%d ids, all: %v", len(list), whole)
	}
	b.ingest("head1", t0, writes[mostRoots:]...)
	if _, whole := jobIDs(t, b, "1"); whole {
		t.Error("nothing is said to be left out")
	}
}
