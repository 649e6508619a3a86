package api

import (
	"net/http"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// usageQuery is a query of /v1/usage.
type usageQuery struct {
	usage.Request

	format string
}

// parseUsage reads a query of /v1/usage.
func (s *Server) parseUsage(r *http.Request, now record.Time) (q usageQuery, err error) {
	in, err := decodeQuery[struct {
		v1.UsageQuery
		Format string `query:"format" enum:"json,ndjson,csv,parquet"`
	}](r)
	if err != nil {
		return q, err
	}
	filters := recordFilters{RecordID: in.RecordID, StartTime: in.StartTime, StopTime: in.StopTime, Runtime: in.Runtime, Meta: in.Meta, Component: in.Component}
	q.Where, q.Now, q.format = filters.storeQuery(), now, in.Format
	q.Where.Wait, q.Where.Open = numberRange(in.Wait), onlyOpen(in.Open)
	if accept := r.Header.Get("Accept"); q.format == "" {
		q.format = formatOf(accept)
		if strings.Contains(accept, parquetType) {
			q.format = "parquet"
		}
	}
	if q.Zone, err = s.parseZone(in.Zone); err != nil {
		return q, err
	}
	if err := q.setTimes(&in.UsageQuery); err != nil {
		return q, err
	}
	return q, q.setFigures(&in.UsageQuery)
}

// setTimes sets the window, its buckets and what it is compared with.
func (q *usageQuery) setTimes(in *v1.UsageQuery) error {
	window, err := parseNeededWindow(in.Window, in.From, in.To, q.Now, q.Zone)
	if err != nil {
		return err
	}
	if q.Bucket, err = calendar.ParseUnit(in.Bucket); err != nil {
		return newRefusal(http.StatusBadRequest, "%v", err)
	}
	q.Word, q.Window = in.Window, window.InIntervals(q.Bucket, q.Zone)
	if q.VersusWord = in.Compare; q.VersusWord == "" {
		return nil
	}
	other, err := q.Window.Comparison(q.VersusWord, q.Now, q.Zone)
	switch {
	case err != nil:
		return newRefusal(http.StatusBadRequest, "%v", err)
	case q.Bucket != calendar.None && q.format != "json":
		return newRefusal(http.StatusBadRequest, "a comparison is of whole windows, and a line of format=%s is of a bucket; leave bucket or compare out, or ask for format=json", q.format)
	}
	q.Versus = &other
	return nil
}

// setFigures sets what is to be shown of whom.
func (q *usageQuery) setFigures(in *v1.UsageQuery) (err error) {
	q.By, q.Measures, q.Components = listValues(in.By), listValues(in.Measure), listValues(in.Components)
	q.People, q.CPU, q.Cores, q.Order, q.Top = in.People, in.CPU, in.Cores, in.Order, in.Top
	q.Credit, q.Hours = parseCredit(in.Credit), in.Unit == "hour"
	for _, key := range q.By {
		if wrong := record.ValidateName(key); wrong != "" {
			return newRefusal(http.StatusBadRequest, "by: invalid meta key %q: %s", key, wrong)
		}
	}
	if q.Top > usage.MaxCells {
		return newRefusal(http.StatusBadRequest, "top is %d, want how many groups have a line of their own, at most %d", q.Top, usage.MaxCells)
	}
	q.Having, err = parseConditions(in.Where)
	return err
}

// listValues are the values of a list, none of an empty one.
func listValues(list string) []string {
	if list == "" {
		return nil
	}
	return v1.SplitList(list)
}
