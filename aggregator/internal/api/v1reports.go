package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/workbook"
)

// reportRoutes are those of reports.
func (s *Server) reportRoutes() []route {
	return []route{
		{http.MethodGet, "/v1/reports", s.v1Reports},
		{http.MethodGet, "/v1/reports/{report}", s.withView(s.v1Report)},
	}
}

// v1Reports is GET /v1/reports: which reports there are and what they take.
func (s *Server) v1Reports(w http.ResponseWriter, r *http.Request) {
	if len(r.URL.RawQuery) > 0 {
		answerProblem(w, http.StatusBadRequest, "the list of reports takes no parameters; a report does: GET /v1/reports/{report}?"+r.URL.RawQuery)
		return
	}
	d, err := s.currentDirectory()
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	set := d.Settings()
	out := v1.Reports{Keys: v1.ReportKeys{User: set.UserKey, Group: set.GroupKey}}
	for _, e := range report.Catalogue() {
		out.Reports = append(out.Reports, e.Own(report.Keys(out.Keys)).Report)
	}
	answerJSON(w, http.StatusOK, out)
}

// v1Report is GET /v1/reports/{report}. The report asks /v1 within the process, so it
// has what the principal may see, and no more. The view only says that this node can
// answer, and from where on.
func (s *Server) v1Report(w http.ResponseWriter, r *http.Request, _ *access.View) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return newRefusal(http.StatusBadRequest, "%v", err)
	}
	f, err := reportFormOf(query)
	if err != nil {
		return err
	}
	d, err := report.Make(r.Context(), v1.API{Caller: s}, r.PathValue("report"), query, s.currentTime().Std())
	if err != nil {
		return reportRefusal(err)
	}
	var out bytes.Buffer
	if err := f.writeReport(d, &out); err != nil {
		return err
	}
	f.setHeaders(w.Header(), d, out.Bytes())
	answerBytes(w, http.StatusOK, out.Bytes())
	return nil
}

// reportRefusal says whose fault it is that there is no report.
func reportRefusal(err error) error {
	problem, refused := errors.AsType[*client.Problem](err)
	switch {
	case errors.Is(err, report.ErrUnknown), errors.Is(err, report.ErrNothing):
		return newRefusal(http.StatusNotFound, "%v", err)
	case errors.Is(err, report.ErrQuery):
		return newRefusal(http.StatusBadRequest, "%v", err)
	case refused:
		return &refusal{status: problem.Status, detail: problem.Detail, after: problem.RetryAfter}
	}
	return err
}

// reportForm is how a report is sent.
type reportForm struct {
	format   string
	download bool
}

// reportFormOf takes the words out of a query that are no report's own.
func reportFormOf(query url.Values) (f reportForm, err error) {
	f.format = "json"
	for name, words := range map[string][]string{"format": {"json", "csv", "html", "xlsx"}, "download": {"1", "true", "0", "false"}} {
		list := query[name]
		query.Del(name)
		if len(list) == 0 {
			continue
		}
		if len(list) > 1 || !slices.Contains(words, list[0]) {
			return f, newRefusal(http.StatusBadRequest, "%s is %q, want one of %s", name, list, strings.Join(words, ", "))
		}
		if name == "format" {
			f.format = list[0]
		} else {
			f.download = list[0] == "1" || list[0] == "true"
		}
	}
	return f, nil
}

func (f *reportForm) writeReport(d *report.Document, out *bytes.Buffer) error {
	switch f.format {
	case "csv":
		return d.WriteCSV(out)
	case "html":
		return d.WriteHTML(out)
	case "xlsx":
		return d.WriteXLSX(out)
	default:
		return d.WriteJSON(out)
	}
}

// setHeaders says what is sent. A document of HTML may use its own style sheet and do
// nothing else, whatever stands in it.
func (f *reportForm) setHeaders(h http.Header, d *report.Document, body []byte) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	switch f.format {
	case "csv":
		h.Set("Content-Type", "text/csv; charset=utf-8")
	case "html":
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src "+styleSource(body)+"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
	case "xlsx":
		h.Set("Content-Type", workbook.ContentType)
	default:
		h.Set("Content-Type", "application/json")
	}
	if f.download {
		h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="bursar-%s-%s.%s"`, d.Report, d.Made.Format("2006-01-02"), f.format))
	}
}

// styleSource allows the style sheet of a document and no other, by its hash.
func styleSource(body []byte) string {
	_, rest, begins := bytes.Cut(body, []byte("<style>"))
	style, _, ends := bytes.Cut(rest, []byte("</style>"))
	if !begins || !ends {
		return "'none'"
	}
	sum := sha256.Sum256(style)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
