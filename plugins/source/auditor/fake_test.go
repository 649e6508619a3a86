package main

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// fake is a server that answers as AUDITOR 0.11 does.
type fake struct {
	*httptest.Server

	mu      sync.Mutex
	records map[string]record.Record
	prefix  string   // of the ids that fill makes
	odd     []string // are written into each answer that has records with a stop
	down    bool     // the database: answers are empty, and the health check fails
	cut     int      // answers that end in the middle of their third record
	asked   int      // for records
}

func newFake(t testing.TB) *fake {
	f := &fake{records: map[string]record.Record{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health_check", func(w http.ResponseWriter, _ *http.Request) {
		if f.mu.Lock(); f.down {
			w.WriteHeader(http.StatusInternalServerError)
		}
		f.mu.Unlock()
	})
	mux.HandleFunc("GET /records", f.list)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// add keeps a record; a negative stop is none. Times are seconds.
func (f *fake) add(id string, start, stop float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := record.Record{
		ID: id, Start: record.Time(start * 1e6), Stop: record.None, Submit: record.None,
		Meta: record.Meta{{Key: "group_id", Values: []string{"a", "b"}}, {Key: "site_id", Values: []string{"hpc"}}},
		Components: []record.Component{
			{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HEPscore23", Value: 10.1}}},
			{Name: "TotalCPU", Amount: 77}, {Name: "Cores", Amount: 1},
		},
	}
	if stop >= 0 {
		r.Stop = record.Time(stop * 1e6)
	}
	f.records[id] = r
}

// list answers GET /records.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	all := []record.Record{}
	for _, one := range f.records {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b record.Record) int { // open ones last
		return cmp.Or(cmp.Compare(uint64(a.Stop), uint64(b.Stop)), strings.Compare(a.ID, b.ID))
	})
	stopped, limit := false, len(all)
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, text, _ := strings.Cut(pair, "=")
		text = strings.ReplaceAll(text, "%3A", ":")
		at, _ := record.ParseTime(text)
		keep := func(ok func(record.Record) bool) {
			all = slices.DeleteFunc(all, func(r record.Record) bool { return !ok(r) })
		}
		switch name {
		case "stop_time[gte]":
			stopped = true
			keep(func(r record.Record) bool { return !r.Open() && r.Stop >= at })
		case "stop_time[lt]":
			keep(func(r record.Record) bool { return !r.Open() && r.Stop < at })
		case "record_id":
			keep(func(r record.Record) bool { return r.ID == text })
		case "sort_by[desc]":
			slices.Reverse(all)
		case "limit":
			limit, _ = strconv.Atoi(text)
		default:
			http.Error(w, `{"error":"unknown field `+name+`"}`, http.StatusBadRequest)
			return
		}
	}
	if f.down {
		return
	}
	all = all[:min(limit, len(all))]
	for i := range all {
		w.Write(wire.AppendJSON(nil, &all[i]))
		if f.cut > 0 && i == 1 {
			f.cut--
			w.Write([]byte(`{"record_id":"h`))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	for _, odd := range f.odd {
		if stopped && len(all) > 0 {
			w.Write([]byte(odd))
		}
	}
}

// month is a time of a test in which records stop.
var month = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// stops are seconds of the month in which n records stop, some together.
func (f *fake) fill(n int) {
	for i := range n {
		at := float64(month.Unix() + int64(i/3)*61)
		f.add(f.prefix+"slurm-"+strconv.Itoa(i), at-3600.25, at+0.000001*float64(i%2))
	}
}
