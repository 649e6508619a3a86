package daemon_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// bulkOf is a post of n records that have little in common, so that it is
// larger than an entry of the log.
func bulkOf(prefix string, n int) string {
	random := rand.New(rand.NewPCG(1, 1))
	list := make([]string, 0, n)
	for i := range n {
		raw := make([]byte, 100)
		for k := range raw {
			raw[k] = byte(random.Uint32())
		}
		list = append(list, strings.Replace(recordJSON(fmt.Sprint(prefix, i)), `"a"`, `"`+hex.EncodeToString(raw)+`"`, 1))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestWritesOfEveryKindAreTakenByEveryNode(t *testing.T) {
	t.Parallel()
	names := []string{"agg1", "agg2", "agg3"}
	s := newSite(t, names...)
	s.start(names...)
	s.post("agg1", "first")
	for _, name := range names { // two of them follow
		id := "of-" + name
		open := strings.Replace(recordJSON(id), `,"stop_time":"2023-02-24T01:00:00Z"`, "", 1)
		bulk := bulkOf("bulk-"+name, 4000)
		for _, c := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"POST", "/record", open, 200, ""},
			{"POST", "/record", open, 500, "RECORD_EXISTS"},
			{"PUT", "/record", `{"record_id":"` + id + `","components":[],"stop_time":"2023-02-24T01:27:58Z"}`, 200, ""},
			{"PUT", "/record", `{"record_id":"nobody","components":[],"stop_time":"2023-02-24T01:27:58Z"}`, 404, "Updating unknown record nobody not possible."},
			{"GET", "/record/" + id, "", 200, `"stop_time":"2023-02-24T01:27:58Z"`},
			{"DELETE", "/v1/records/" + id, "", 204, ""},
			{"GET", "/record/" + id, "", 404, "there is no record"},
			{"POST", "/v1/records/" + id + ":undelete", "", 204, ""},
			{"POST", "/record", open, 200, ""},
			{"POST", "/records", bulk, 200, ""}, // larger than an entry
			{"POST", "/records", bulk, 500, "RECORD_EXISTS"},
			{"GET", "/v1/agents", "", 200, `"agents":[]`},
		} {
			status, _, got, err := s.request(name, c.method, c.path, c.body)
			// Broken off, or the outcome unknown: a busy machine had another leader meanwhile.
			for tries := 0; (err != nil || status == 503) && tries < 5; tries++ {
				status, _, got, err = s.request(name, c.method, c.path, c.body)
				if c.method == "POST" && strings.Contains(got, "RECORD_EXISTS") {
					status, got = c.status, c.want // it had been taken
				}
				if status == 404 && c.status == 204 { // as above
					status = c.status
				}
			}
			if err != nil || status != c.status || !strings.Contains(got, c.want) {
				t.Errorf("%s %s on %s: %d %.200s %v, want %d %s", c.method, c.path, name, status, got, err, c.status, c.want)
			}
		}
	}
	for _, name := range names {
		s.has(name, 1+3*4001)
	}
}

func TestAStaleReadSaysHowOldItMayBe(t *testing.T) {
	t.Parallel()
	names := []string{"agg1", "agg2", "agg3"}
	s := newSite(t, names...)
	s.start(names...)
	s.post("agg1", "r1")
	for _, name := range names {
		status, header, body, err := s.request(name, "GET", "/v1/records?consistency=stale&max_age=0s", "")
		if err != nil || status != 200 || !strings.Contains(body, `"r1"`) || header.Get("X-Applied-Index") == "" || header.Get("X-Last-Contact") == "" {
			t.Errorf("%s: %d %v %s %v", name, status, header, body, err)
		}
	}
	s.stop("agg2")
	s.stop("agg3")
	s.until("the last node answers stale reads only", func() error {
		status, header, _, err := s.request("agg1", "GET", "/v1/records?consistency=stale", "")
		if err != nil || status != 200 || header.Get("X-Last-Contact") == "" {
			return fmt.Errorf("a stale read: %d %v %w", status, header, err)
		}
		if status, _, body, err := s.request("agg1", "GET", "/v1/records?consistency=stale&max_age=1ms", ""); err != nil || status != 503 {
			return fmt.Errorf("a read that must be newer: %d %s %w", status, body, err)
		}
		if status, _, body, err := s.request("agg1", "GET", "/v1/records", ""); err != nil || status != 503 {
			return fmt.Errorf("a linearizable read: %d %s %w", status, body, err)
		}
		return nil
	})
}
