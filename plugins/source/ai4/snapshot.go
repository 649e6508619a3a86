package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// sighting is a job as one snapshot saw it.
type sighting struct {
	namespace, job, alloc, status                                        string
	name, owner, title, description, image, command, datacenter, problem string
	submit, start, stop                                                  time.Time // zero: not known
	use                                                                  amounts
	unread                                                               []sdk.Unread // of submit and use
}

// amounts are what a run had; nil is not known.
type amounts struct{ cores, mhz, gpus, memory, disk *int64 }

// entry is a job in the file.
type entry struct {
	Job         *string   `json:"job_ID"`
	Name        any       `json:"name"`
	Status      *string   `json:"status"`
	Owner       any       `json:"owner"`
	Title       any       `json:"title"`
	Description any       `json:"description"`
	Image       any       `json:"docker_image"`
	Command     any       `json:"docker_command"`
	Submit      any       `json:"submit_time"`
	Resources   *resource `json:"resources"`
	Alloc       *string   `json:"alloc_ID"`
	Datacenter  any       `json:"datacenter"`
	Problem     any       `json:"error_msg"`
	Start       *string   `json:"alloc_start"`
	Stop        *string   `json:"alloc_end"`
}

type resource struct {
	Cores  json.RawMessage `json:"cpu_num"`
	MHz    json.RawMessage `json:"cpu_MHz"`
	GPUs   json.RawMessage `json:"gpu_num"`
	Memory json.RawMessage `json:"memory_MB"`
	Disk   json.RawMessage `json:"disk_MB"`
}

// bad is a part of a snapshot that cannot be read.
type bad struct {
	where string // within the file
	raw   []byte
	err   error
}

// readSnapshot hands the jobs of a snapshot to each, and what cannot be read as
// one to refuse. A file that breaks off, or is no snapshot from some place on,
// is used up to there; that it is so is refused too. The error is that of r.
func readSnapshot(r io.Reader, zone *time.Location, each func(*sighting), refuse func(bad)) error {
	p := parser{dec: json.NewDecoder(r), zone: zone, each: each, refuse: refuse}
	err := p.parseFile()
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errShape) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file breaks off")
	}
	refuse(bad{where: fmt.Sprintf("byte %d", p.dec.InputOffset()), err: fmt.Errorf("%w; what is before it was read", err)})
	return nil
}

// errShape: valid JSON that is no snapshot.
var errShape = errors.New("this is no snapshot, which is an object of lists of jobs by namespace")

type parser struct {
	dec    *json.Decoder
	zone   *time.Location
	each   func(*sighting)
	refuse func(bad)
}

// parseFile reads {"namespace": [job…]…}.
func (p *parser) parseFile() error {
	if err := p.expectDelim('{'); err != nil {
		return err
	}
	for p.dec.More() {
		key, err := p.dec.Token()
		if err != nil {
			return err
		}
		if err := p.parseNamespace(fmt.Sprint(key)); err != nil {
			return err
		}
	}
	if err := p.expectDelim('}'); err != nil {
		return err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.Join(errShape, err)
	}
	return nil
}

func (p *parser) parseNamespace(name string) error {
	if err := p.expectDelim('['); err != nil {
		return err
	}
	for i := 0; p.dec.More(); i++ {
		var raw json.RawMessage
		if err := p.dec.Decode(&raw); err != nil {
			return err
		}
		p.parseEntry(name, i, raw)
	}
	return p.expectDelim(']')
}

func (p *parser) expectDelim(want json.Delim) error {
	token, err := p.dec.Token()
	if err == nil && token != want {
		err = errShape
	}
	return err
}

// parseEntry reads one job.
func (p *parser) parseEntry(namespace string, i int, raw json.RawMessage) {
	s, err := readEntry(namespace, raw, p.zone)
	if err != nil {
		p.refuse(bad{where: fmt.Sprintf("%s[%d]", namespace, i), raw: raw, err: err})
		return
	}
	p.each(s)
}

func readEntry(namespace string, raw []byte, zone *time.Location) (*sighting, error) {
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, plainError(err)
	}
	switch {
	case e.Job == nil || *e.Job == "":
		return nil, errors.New("job_ID is missing")
	case e.Status == nil || *e.Status == "":
		return nil, errors.New("status is missing")
	case e.Resources == nil:
		return nil, errors.New("resources are missing or null")
	case len(textOf(e.Alloc)) > maxID:
		return nil, fmt.Errorf("alloc_ID has %d bytes, more than %d", len(textOf(e.Alloc)), maxID)
	}
	s := &sighting{
		namespace: namespace, job: *e.Job, alloc: textOf(e.Alloc), status: *e.Status, name: textOrJSON(e.Name), owner: textOrJSON(e.Owner), title: textOrJSON(e.Title),
		description: textOrJSON(e.Description), image: textOrJSON(e.Image), command: textOrJSON(e.Command), datacenter: textOrJSON(e.Datacenter), problem: textOrJSON(e.Problem),
	}
	submit := textOrJSON(e.Submit)
	s.noteUnread("submit", parseTime("submit_time", &submit, zone, &s.submit))
	s.noteUnread("cores", parseAmount("cpu_num", e.Resources.Cores, &s.use.cores))
	s.noteUnread("cpu_mhz", parseAmount("cpu_MHz", e.Resources.MHz, &s.use.mhz))
	s.noteUnread("gpus", parseAmount("gpu_num", e.Resources.GPUs, &s.use.gpus))
	s.noteUnread("memory_mb", parseAmount("memory_MB", e.Resources.Memory, &s.use.memory))
	s.noteUnread("disk_mb", parseAmount("disk_MB", e.Resources.Disk, &s.use.disk))
	return s, errors.Join(parseTime("alloc_start", e.Start, time.UTC, &s.start), parseTime("alloc_end", e.Stop, time.UTC, &s.stop))
}

// noteUnread notes that an attribute cannot be read without which the run can be told.
func (s *sighting) noteUnread(attribute string, err error) {
	if err != nil {
		s.unread = append(s.unread, sdk.Unread{Attribute: attribute, Problem: err.Error()})
	}
}

// fillUnread takes over from an earlier sighting what cannot be read in this one.
func (s *sighting) fillUnread(before *sighting) {
	s.unread = slices.DeleteFunc(slices.Clone(s.unread), func(u sdk.Unread) bool {
		if u.Attribute == "submit" {
			s.submit = before.submit
			return !s.submit.IsZero()
		}
		into, from := s.use.amountOf(u.Attribute), before.use.amountOf(u.Attribute)
		*into = *from
		return *into != nil
	})
}

// amountOf is the amount of an attribute.
func (a *amounts) amountOf(attribute string) **int64 {
	return map[string]**int64{"cores": &a.cores, "cpu_mhz": &a.mhz, "gpus": &a.gpus, "memory_mb": &a.memory, "disk_mb": &a.disk}[attribute]
}

// maxID bounds the id of an allocation, so that what is made of it can name a run.
const maxID = 512

// plainError says what is wrong in the words of the file.
func plainError(err error) error {
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if typ.Field == "" {
			return fmt.Errorf("it is a %s, not a job", typ.Value)
		}
		return fmt.Errorf("%s is a %s", typ.Field, typ.Value)
	}
	return err
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// textOrJSON is a text of the user's; what is none is written as JSON.
func textOrJSON(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// The ways in which times are written, beside RFC 3339.
const plainTime = "2006-01-02 15:04:05"

// parseTime reads a time, which may be missing. Nomad writes a time that is not
// set as null or as the first moment of the year 1.
func parseTime(name string, text *string, zone *time.Location, into *time.Time) error {
	if text == nil || *text == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, *text)
	if err != nil {
		t, err = time.ParseInLocation(plainTime, *text, zone)
	}
	if err != nil {
		return fmt.Errorf("%s is %.40q, which is not a time", name, *text)
	}
	if y := t.Year(); y < 1 || y > 9999 || y > 1 && y < 1970 {
		return fmt.Errorf("%s is in the year %d", name, y)
	}
	if t.Year() > 1 {
		*into = t.UTC()
	}
	return nil
}

// parseAmount reads a number that is not negative, which may be missing.
func parseAmount(name string, raw json.RawMessage, into **int64) error {
	var n *json.Number // also of a text
	err := json.Unmarshal(raw, &n)
	if len(raw) == 0 || err == nil && n == nil {
		return nil
	}
	f := -1.0
	if err == nil {
		f, err = n.Float64()
	}
	f = math.RoundToEven(f)
	if err != nil || f < 0 || f > 1<<53 {
		return fmt.Errorf("%s is %.40s, which is not an amount", name, raw)
	}
	v := int64(f)
	*into = &v
	return nil
}

// timeOf reads the time in the name of a snapshot file, in UTC.
func timeOf(base string) (time.Time, bool) {
	name, ok := strings.CutSuffix(base, ".json")
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15-04-05", "2006-01-02T15:04:05Z"} {
		if t, err := time.Parse(layout, name); ok && err == nil && utf8.ValidString(base) && t.Year() >= 1970 {
			return t, true
		}
	}
	return time.Time{}, false
}
