package api

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/proto/csvtext"
)

// withTable answers what h answers, and with format=csv the list of that name in it as
// a table: a column for each field, in the order of the fields, and lists and objects
// in a field as JSON. No text in it is a formula for a spreadsheet.
func (s *Server) withTable(list string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r, format, err := extractFormat(r)
		switch {
		case err != nil:
			s.answerError(w, r, err)
		case format == "csv":
			k := &bufferedResponse{head: http.Header{}, status: http.StatusOK}
			h(k, r)
			if err := k.makeTable(list); err != nil {
				s.answerError(w, r, err)
				return
			}
			maps.Copy(w.Header(), k.head)
			answerBytes(w, k.status, k.body.Bytes())
		default:
			h(w, r)
		}
	}
}

// extractFormat takes the format out of a request.
func extractFormat(r *http.Request) (_ *http.Request, format string, err error) {
	values := r.URL.Query()
	list, asked := values["format"]
	switch {
	case !asked:
		return r, formatOf(r.Header.Get("Accept")), nil
	case len(list) > 1:
		return r, "", newRefusal(http.StatusBadRequest, "format given more than once")
	case list[0] != "json" && list[0] != "csv":
		return r, "", newRefusal(http.StatusBadRequest, "format is %q, want json or csv", list[0])
	}
	values.Del("format")
	out := r.Clone(r.Context())
	out.URL.RawQuery = values.Encode()
	return out, list[0], nil
}

// makeTable makes a table of a list in an answer. What is no answer stays as it is.
func (k *bufferedResponse) makeTable(name string) error {
	if k.status != http.StatusOK {
		return nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(k.body.Bytes(), &all); err != nil {
		return fmt.Errorf("make a table: %w", err)
	}
	var list []cells
	if err := json.Unmarshal(all[name], &list); err != nil {
		return fmt.Errorf("make a table of %s: %w", name, err)
	}
	if string(all["more"]) == "true" {
		return newRefusal(http.StatusUnprocessableEntity, "there are more than %d, and a table of some would look as if it were all; format=json says so", len(list))
	}
	k.body.Reset()
	k.head.Set("Content-Type", "text/csv; charset=utf-8")
	return writeTable(list, csv.NewWriter(&k.body))
}

func writeTable(list []cells, out *csv.Writer) error {
	var head []string
	for _, row := range list {
		for _, f := range row {
			if !slices.Contains(head, f.name) {
				head = append(head, f.name)
			}
		}
	}
	lines := [][]string{head}
	for _, row := range list {
		line := make([]string, len(head))
		for _, f := range row {
			line[slices.Index(head, f.name)] = f.text
		}
		lines = append(lines, line)
	}
	if len(head) == 0 {
		lines = nil
	}
	return out.WriteAll(lines)
}

// cells are those of an object, in its order.
type cells []cell

type cell struct{ name, text string }

// UnmarshalJSON implements json.Unmarshaler.
func (c *cells) UnmarshalJSON(text []byte) error {
	in := json.NewDecoder(bytes.NewReader(text))
	if _, err := in.Token(); err != nil {
		return err
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		*c = append(*c, cell{fmt.Sprint(name), plainText(value)})
	}
	return nil
}

// plainText is a value of JSON as a table has it.
func plainText(value json.RawMessage) string {
	var text string
	switch {
	case string(value) == "null":
		return ""
	case json.Unmarshal(value, &text) == nil:
		return csvtext.Harmless(text)
	}
	return string(value)
}
