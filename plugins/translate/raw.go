package translate

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// MaxRaw bounds the raw input that a quarantined job keeps, in bytes.
const MaxRaw = 64 << 10

// rawJob is a job as quarantine keeps it: readable, and enough to map it again.
type rawJob struct {
	Run        string         `json:"run"`
	Ended      bool           `json:"ended"`
	Excluded   bool           `json:"excluded,omitempty"`
	Attributes map[string]any `json:"attributes"`
	// Unread says of attributes that cannot be read why.
	Unread   map[string]string `json:"unread,omitempty"`
	Findings []rawFinding      `json:"findings,omitempty"`
}

type rawFinding struct {
	Kind  string `json:"kind"`
	About string `json:"about,omitempty"`
	What  string `json:"what,omitempty"`
	Do    string `json:"do,omitempty"`
}

// Raw writes a job as JSON with the names of its attributes; those that are null
// are left out. The second result is true when it was cut to [MaxRaw] and can
// not be mapped again.
func Raw(job *bursarv1.Job, attributes []*bursarv1.Attribute) ([]byte, bool) {
	raw := rawJob{Run: job.GetRun(), Ended: job.GetEnded(), Excluded: job.GetExcluded(), Attributes: map[string]any{}}
	for i, v := range job.GetValues() {
		if i < len(attributes) && v.GetKind() != nil {
			raw.Attributes[attributes[i].GetName()] = plainValue(v)
		}
	}
	for _, u := range job.GetUnread() {
		if raw.Unread == nil {
			raw.Unread = map[string]string{}
		}
		raw.Unread[u.GetAttribute()] = u.GetProblem()
	}
	for _, f := range job.GetFindings() {
		raw.Findings = append(raw.Findings, rawFinding{f.GetKind(), f.GetAbout(), f.GetWhat(), f.GetDo()})
	}
	text, err := json.Marshal(raw)
	if err != nil {
		text = fmt.Appendf(nil, "%q", err.Error())
	}
	if len(text) > MaxRaw {
		return []byte(strings.ToValidUTF8(string(text[:MaxRaw]), "")), true
	}
	return text, false
}

// plainValue gives what JSON can hold. Numbers that it has no word for become null;
// bytes that are no text become {"bytes": base64}.
func plainValue(v *bursarv1.Value) any {
	switch k := v.GetKind().(type) {
	case *bursarv1.Value_StringValue:
		return k.StringValue
	case *bursarv1.Value_BytesValue:
		return map[string]any{"bytes": base64.StdEncoding.EncodeToString(k.BytesValue)}
	case *bursarv1.Value_IntValue:
		return k.IntValue
	case *bursarv1.Value_FloatValue:
		if math.IsNaN(k.FloatValue) || math.IsInf(k.FloatValue, 0) {
			return nil
		}
		return k.FloatValue
	case *bursarv1.Value_BoolValue:
		return k.BoolValue
	case *bursarv1.Value_ListValue:
		list := []any{}
		for _, e := range k.ListValue.GetValues() {
			list = append(list, plainValue(e))
		}
		return list
	case *bursarv1.Value_MapValue:
		object := map[string]any{}
		for name, e := range k.MapValue.GetValues() {
			object[name] = plainValue(e)
		}
		return object
	}
	return nil
}

// ParseRaw reads what [Raw] wrote. The error says that it cannot be mapped again: it was
// cut, or is input as the source read it.
func ParseRaw(text []byte, attributes []*bursarv1.Attribute) (*bursarv1.Job, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var raw rawJob
	if err := decoder.Decode(&raw); err != nil || raw.Run == "" {
		return nil, errors.New("input as the source read it, or the beginning of a job, cannot be mapped again: correct it where the source reads it, then collect its time again with bursar-agent recollect")
	}
	job := &bursarv1.Job{Run: raw.Run, Ended: raw.Ended, Excluded: raw.Excluded}
	for _, a := range attributes {
		v, err := richValue(raw.Attributes[a.GetName()], a.GetType())
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", a.GetName(), err)
		}
		job.Values = append(job.Values, v)
	}
	for _, name := range slices.Sorted(maps.Keys(raw.Unread)) {
		job.Unread = append(job.Unread, &bursarv1.Unread{Attribute: name, Problem: raw.Unread[name]})
	}
	for _, f := range raw.Findings {
		job.Findings = append(job.Findings, &bursarv1.Finding{Kind: f.Kind, About: f.About, What: f.What, Do: f.Do})
	}
	return job, nil
}

// richValue is the inverse of plain for an attribute of that type.
func richValue(v any, typ bursarv1.Type) (*bursarv1.Value, error) {
	if n, ok := v.(json.Number); ok && typ == bursarv1.Type_TYPE_FLOAT {
		f, err := n.Float64()
		return &bursarv1.Value{Kind: &bursarv1.Value_FloatValue{FloatValue: f}}, err
	}
	whole := typ == bursarv1.Type_TYPE_MAP // the attribute itself is an object
	return ValueOf(v, func(x map[string]any) (*bursarv1.Value, error) {
		text, ok := x["bytes"].(string)
		if first := whole; first || !ok || len(x) != 1 {
			whole = false
			return nil, nil
		}
		b, err := base64.StdEncoding.DecodeString(text)
		return &bursarv1.Value{Kind: &bursarv1.Value_BytesValue{BytesValue: b}}, err
	})
}
