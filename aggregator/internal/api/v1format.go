package api

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// ndjson is a record of /v1 a line.
func ndjson() format { return format{contentType: "application/x-ndjson", add: appendLine} }

// csvFormat is a table whose columns meta and components are JSON.
func csvFormat() format {
	return format{contentType: "text/csv; charset=utf-8", head: csvHead, add: appendCSV}
}

// appendV1 writes a row as /v1 shows it.
func appendV1(b []byte, row *columns.Row) []byte {
	rec := row.Shown()
	return wire.AppendV1JSON(b, &rec, wire.V1Extra{Origin: row.Origin, Rank: row.Rank, Seq: row.Seq, Received: row.Received, Changed: row.Changed})
}

func appendLine(b []byte, row *columns.Row) ([]byte, error) {
	return append(appendV1(b, row), '\n'), nil
}

const csvHead = "record_id,start_time,stop_time,runtime,submit_time,state,exit_code,exit_signal,origin,rank,meta,components\n"

// appendCSV writes a row with meta and components as JSON.
func appendCSV(b []byte, row *columns.Row) ([]byte, error) {
	r := row.Shown()
	meta, err := json.Marshal(metaMap(r.Meta))
	if err != nil {
		return b, err
	}
	components, err := json.Marshal(componentList(r.Components))
	if err != nil {
		return b, err
	}
	runtime := ""
	if n, ok := r.Runtime(); ok {
		runtime = strconv.FormatInt(n, 10)
	}
	code, signal := "", ""
	if r.Exit.Known {
		code, signal = strconv.Itoa(int(r.Exit.Code)), strconv.Itoa(int(r.Exit.Signal))
	}
	var line bytes.Buffer
	out := csv.NewWriter(&line)
	err = out.Write([]string{r.ID, r.Start.String(), orBlank(r.Stop), runtime, orBlank(r.Submit), r.State, code, signal, row.Origin.String(), row.Rank.String(), string(meta), string(components)})
	out.Flush()
	return append(b, line.Bytes()...), errors.Join(err, out.Error())
}

func orBlank(t record.Time) string {
	if !t.Present() {
		return ""
	}
	return t.String()
}

func metaMap(m record.Meta) map[string][]string {
	if m == nil {
		return nil
	}
	out := map[string][]string{}
	for i := range m {
		out[m[i].Key] = m[i].Values
	}
	return out
}

type jsonComponent struct {
	Name   string      `json:"name"`
	Amount int64       `json:"amount"`
	Kind   string      `json:"kind"`
	Scores []jsonScore `json:"scores"`
}

type jsonScore struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

func componentList(in []record.Component) []jsonComponent {
	out := make([]jsonComponent, 0, len(in))
	for i := range in {
		c := jsonComponent{Name: in[i].Name, Amount: in[i].Amount, Kind: in[i].Kind.String(), Scores: []jsonScore{}}
		for _, s := range in[i].Scores {
			c.Scores = append(c.Scores, jsonScore{s.Name, s.Value})
		}
		out = append(out, c)
	}
	return out
}
