package compat

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"time"

	"github.com/bursar-accounting/bursar/proto/auditor/utilization"
	"github.com/bursar-accounting/bursar/proto/csvtext"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// AuditorUtilization is the table of AUDITOR's utilization plugin, as CSV, of a month of UTC that
// has ended.
func AuditorUtilization(ctx context.Context, r v1.API, rules *utilization.Rules, period string, now time.Time) ([]byte, error) {
	all, err := r.Usage(ctx, &v1.UsageQuery{Window: period, Zone: "UTC", Measure: "records"})
	if err != nil {
		return nil, err
	}
	if all.Complete.Limited {
		return nil, errors.New("AUDITOR's figures are those of all users, and this principal may see some records only; report utilization and report usage without -compat are for these")
	}
	from, to := all.Window.From.UTC(), all.Window.To.UTC()
	switch {
	case from.Day() != 1 || !from.AddDate(0, 1, 0).Equal(to):
		return nil, fmt.Errorf("period %q is not a month: AUDITOR's table is of one, such as last-month or 2026-03", period)
	case to.After(now):
		return nil, fmt.Errorf("period %q has not ended: use an earlier one, such as last-month", period)
	}
	rows, err := rules.Table(from, to, func(from, to time.Time) iter.Seq2[record.Record, error] {
		return recordsStopped(ctx, r, from, to)
	})
	if err != nil {
		return nil, fmt.Errorf("AUDITOR's utilization of %s: %w", period, err)
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	_ = w.Write(utilization.Columns()) // into memory
	for _, row := range rows {
		row[0] = csvtext.Harmless(row[0])
		_ = w.Write(row) // as above
	}
	w.Flush()
	return text.Bytes(), w.Error()
}

// recordsStopped are the records that stopped from a time on and before another, those in
// archives included.
func recordsStopped(ctx context.Context, r v1.API, from, to time.Time) iter.Seq2[record.Record, error] {
	return func(yield func(record.Record, error) bool) {
		q := &v1.ListRecordsQuery{Archived: new(true), StopTime: v1.TimeTest{Gte: v1.Time{Time: from}, Lt: v1.Time{Time: to}}}
		address, err := url.Parse(v1.ListRecordsAddress(q, ""))
		if err != nil {
			yield(record.Record{}, err)
			return
		}
		for line, err := range r.Caller.Stream(ctx, address.Path, address.Query()) {
			var job record.Record
			if err == nil {
				job, err = wire.DecodeRecordJSON(line)
			}
			if !yield(job, err) || err != nil {
				return
			}
		}
	}
}
