package grid

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/accounting"
)

// Job is what qstat tells of a job, or of several tasks of an array.
type Job struct {
	User    string
	Queue   string // "" of jobs that wait
	Running bool
	Tasks   int64
}

// ReadJobs reads what qstat -xml prints and calls yield for each entry.
func ReadJobs(r io.Reader, yield func(Job)) error {
	type entry struct {
		State string `xml:"state,attr"`
		Owner string `xml:"JB_owner"`
		Queue string `xml:"queue_name"`
		Tasks string `xml:"tasks"`
	}
	return eachElement(r, "job_info", "job_list", func(d *xml.Decoder, start *xml.StartElement) error {
		var e entry
		if err := d.DecodeElement(&e, start); err != nil {
			return err
		}
		n, err := taskCount(e.Tasks)
		if err != nil {
			return err
		}
		if e.Owner == "" {
			return errors.New("a job has no owner")
		}
		switch e.State {
		case "running":
			queue, _, _ := strings.Cut(e.Queue, "@")
			yield(Job{User: e.Owner, Queue: queue, Running: true, Tasks: n})
		case "pending":
			yield(Job{User: e.Owner, Tasks: n})
		default:
			return fmt.Errorf("%q is not a state of a job that is known", e.State)
		}
		return nil
	})
}

// taskCount counts the tasks of a list such as 4, 1-100:2 or 3,7-9:1; one where there is
// none.
func taskCount(list string) (int64, error) {
	if list = strings.TrimSpace(list); list == "" {
		return 1, nil
	}
	total := int64(0)
	for item := range strings.SplitSeq(list, ",") {
		span, step, stepped := strings.Cut(item, ":")
		first, last, ranged := strings.Cut(span, "-")
		if !ranged {
			last = first
		}
		if !stepped {
			step = "1"
		}
		a, err1 := strconv.ParseUint(first, 10, 31)
		b, err2 := strconv.ParseUint(last, 10, 31)
		s, err3 := strconv.ParseUint(step, 10, 31)
		if errors.Join(err1, err2, err3) != nil || b < a || s == 0 {
			return 0, fmt.Errorf("%q is not a list of tasks", list)
		}
		total += int64((b-a)/s) + 1
	}
	return total, nil
}

// Host is a host that runs jobs.
type Host struct {
	Name     string
	Cores    int64            // processors; 0 where they are not known
	MemoryMB int64            // in units of 2^20 bytes; 0 where it is not known
	Slots    map[string]int64 // by queue
	GPUs     int64            // qhost does not tell them: see Consumables
}

// unknown is how qhost writes what it does not know, as of a host that is down.
const unknown = "-"

// ReadHosts reads what qhost -F mem_total -q -xml prints. No host at all is an error.
func ReadHosts(r io.Reader) ([]Host, error) {
	type value struct {
		Name string `xml:"name,attr"`
		Text string `xml:",chardata"`
	}
	type entry struct {
		Name   string  `xml:"name,attr"`
		Values []value `xml:"hostvalue"`
		Finer  []value `xml:"resourcevalue"` // with more digits
		Queues []struct {
			Name   string  `xml:"name,attr"`
			Values []value `xml:"queuevalue"`
		} `xml:"queue"`
	}
	var hosts []Host
	err := eachElement(r, "qhost", "host", func(d *xml.Decoder, start *xml.StartElement) error {
		var e entry
		if err := d.DecodeElement(&e, start); err != nil {
			return err
		}
		if e.Name == "global" {
			return nil
		}
		h := Host{Name: e.Name, Slots: map[string]int64{}}
		for _, v := range append(e.Values, e.Finer...) {
			if err := h.setValue(v.Name, strings.TrimSpace(v.Text)); err != nil {
				return fmt.Errorf("host %s: %w", e.Name, err)
			}
		}
		for _, q := range e.Queues {
			for _, v := range q.Values {
				if v.Name != "slots" {
					continue
				}
				n, err := parseCount(strings.TrimSpace(v.Text))
				if err != nil {
					return fmt.Errorf("host %s: queue %s: %w", e.Name, q.Name, err)
				}
				h.Slots[q.Name] = n
			}
		}
		hosts = append(hosts, h)
		return nil
	})
	if err == nil && len(hosts) == 0 {
		err = errors.New("there is no host in the output")
	}
	return hosts, err
}

func (h *Host) setValue(name, text string) (err error) {
	if text == unknown {
		return nil
	}
	switch name {
	case "num_proc":
		h.Cores, err = parseCount(strings.TrimSuffix(text, ".000000"))
	case "mem_total":
		n, ok := accounting.Bytes(text)
		if !ok || n > maxBytes {
			return fmt.Errorf("mem_total: %q is not an amount", text)
		}
		h.MemoryMB = n >> 20
	}
	return err
}

// Bounds of what a host has: sums over all stay far from the limits of int64.
const (
	maxBytes = 1 << 60
	maxCount = 1 << 40
)

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n > maxCount {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return int64(n), nil
}

// eachElement calls use at each element of that name. The whole document must be
// there, and root its outermost element.
func eachElement(r io.Reader, root, name string, use func(*xml.Decoder, *xml.StartElement) error) error {
	d := xml.NewDecoder(&printable{r})
	seen := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && seen {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the output is not whole: %w", err)
		}
		start, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case !seen && start.Name.Local != root:
			return fmt.Errorf("the output is of %q instead of %q", start.Name.Local, root)
		case start.Name.Local == name:
			if err := use(d, &start); err != nil {
				return err
			}
		}
		seen = seen || ok
	}
}

// printable replaces what XML may not have in it and names of jobs may.
type printable struct{ r io.Reader }

// Read reads and replaces.
func (p *printable) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	for i, c := range b[:n] {
		if c >= 0x80 || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			b[i] = '?'
		}
	}
	return n, err
}
