package usage

import (
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// JSON writes the table in columns. complete is JSON that says how complete the records
// are.
func (s *Table) JSON(complete []byte, send func([]byte) error) error {
	l := &lines{send: send}
	b := s.AppendAbout(append(l.buf, '{'), complete)
	b = s.appendEdges(append(b, `,"edges":`...))
	b = appendTexts(append(b, `,"labels":`...), s.Labels)
	b = appendBools(append(b, `,"partial":`...), s.partial)
	b = s.appendGroups(append(b, `,"groups":`...))
	l.buf = append(b, `,"measures":[`...)
	for i := range s.Columns {
		c := &s.Columns[i]
		l.buf = c.appendHead(appendComma(l.buf, i))
		if err := s.sendValues(l, c); err != nil {
			return err
		}
		l.buf = s.appendTotals(l.buf, c)
	}
	l.buf = append(l.buf, "]}\n"...)
	return l.flush(0)
}

// AppendJSON is JSON of a table that is not sent, without the end of the line.
func (s *Table) AppendJSON(b, complete []byte) []byte {
	_ = s.JSON(complete, func(piece []byte) error { // which does not fail
		b = append(b, piece...)
		return nil
	})
	return b[:len(b)-1]
}

// AppendAbout writes what is known of the table beside its figures, without braces.
func (s *Table) AppendAbout(b, complete []byte) []byte {
	r := s.Request
	b = strconv.AppendUint(append(b, `"index":`...), s.Index, 10)
	b = strconv.AppendUint(append(b, `,"seq":`...), s.Seq, 10)
	b = appendQuoted(append(b, `,"way":`...), s.now.Way)
	b = appendSpan(append(b, `,"window":`...), r.Word, r.Window.From, r.Window.To)
	b = appendQuoted(append(b, `,"zone":`...), r.Zone.String())
	b = orNull(append(b, `,"bucket":`...), r.Bucket.String())
	b = appendQuoted(append(b, `,"credit":`...), creditWord(r.Credit))
	b = append(b, `,"compared_with":`...)
	if r.Versus == nil {
		b = append(b, "null,\"comparable\":null"...)
	} else {
		b = appendSpan(b, r.VersusWord, r.Versus.From, r.Versus.To)
		b = strconv.AppendBool(append(b, `,"comparable":`...), r.isComparable(r.Known))
	}
	b = s.appendKnown(append(b, `,"known":`...))
	b = appendTexts(append(b, `,"by":`...), r.By)
	b = strconv.AppendUint(append(b, `,"open":`...), s.Open, 10)
	b = strconv.AppendUint(append(b, `,"several":`...), s.Several, 10)
	b = strconv.AppendUint(append(b, `,"records":`...), s.Records, 10)
	b = s.appendBasis(b)
	return append(append(b, `,"complete":`...), complete...)
}

// appendBasis writes what energy and CO2 rest on, in kWh; nothing where neither is asked for.
func (s *Table) appendBasis(b []byte) []byte {
	basis := s.now.Basis
	if basis == nil {
		return b
	}
	kWh := Column{Kind: Worth}
	b = kWh.appendSum(append(b, `,"energy":{"total":`...), basis.Total)
	b = kWh.appendSum(append(b, `,"measured":`...), basis.Measured)
	b = kWh.appendSum(append(b, `,"without_factor":`...), basis.WithoutFactor)
	b = kWh.appendSum(append(b, `,"default_pue":`...), basis.DefaultPUE)
	b = kWh.appendSum(append(b, `,"default_load":`...), basis.DefaultLoad)
	return append(appendMeterBasis(b, basis.Meter), '}')
}

// appendMeterBasis writes where meters leave something unknown; nothing of nil.
func appendMeterBasis(b []byte, m *sums.MeterBasis) []byte {
	if m == nil {
		return b
	}
	kWh := Column{Kind: Worth}
	b = append(b, `,"meter":{"gaps":[`...)
	for i, g := range m.Gaps {
		b = appendQuoted(append(appendComma(b, i), `{"meter":`...), g.Meter)
		b = append(appendTime(append(appendTime(append(b, `,"from":`...), g.From), `,"to":`...), g.To), '}')
	}
	b = append(b, `],"exceeded":[`...)
	for i, e := range m.Exceeded {
		b = appendTime(append(appendComma(b, i), `{"from":`...), e.From)
		b = append(kWh.appendSum(append(appendTime(append(b, `,"to":`...), e.To), `,"by":`...), e.By), '}')
	}
	return append(strconv.AppendInt(append(b, `],"more":`...), int64(m.More), 10), '}')
}

func creditWord(c sums.Credit) string {
	if c == sums.AtStop {
		return "stop"
	}
	return "spread"
}

func appendSpan(b []byte, word string, from, to record.Time) []byte {
	b = orNull(append(b, `{"word":`...), word)
	b = appendTime(append(b, `,"from":`...), from)
	b = appendTime(append(b, `,"to":`...), to)
	return append(b, '}')
}

func appendTime(b []byte, t record.Time) []byte {
	return append(t.Append(append(b, '"')), '"')
}

// appendKnown writes the known part of the window; null where none of it is known.
func (s *Table) appendKnown(b []byte) []byte {
	from, to := s.Known()
	if from == to {
		return append(b, "null"...)
	}
	b = appendTime(append(b, `{"from":`...), from)
	b = append(appendTime(append(b, `,"to":`...), to), `,"later":[`...)
	for i, s := range s.Request.laterSources() {
		b = appendQuoted(append(appendComma(b, i), `{"source":`...), s.Source)
		b = append(appendTime(append(b, `,"from":`...), s.From), '}')
	}
	return append(b, "]}"...)
}

func appendBools(b []byte, list []bool) []byte {
	b = append(b, '[')
	for i, v := range list {
		b = strconv.AppendBool(appendComma(b, i), v)
	}
	return append(b, ']')
}

func (s *Table) appendEdges(b []byte) []byte {
	b = append(b, '[')
	for i, e := range s.Edges {
		b = appendTime(appendComma(b, i), e)
	}
	return append(b, ']')
}

func appendTexts(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, t := range list {
		b = appendQuoted(appendComma(b, i), t)
	}
	return append(b, ']')
}

func (s *Table) appendGroups(b []byte) []byte {
	b = append(b, '[')
	for i := range s.Groups {
		g := &s.Groups[i]
		b = append(appendComma(b, i), `{"values":[`...)
		for k, v := range g.Values {
			if b = appendComma(b, k); g.Lacks[k] {
				b = append(b, "null"...)
			} else {
				b = appendQuoted(b, v)
			}
		}
		b = strconv.AppendInt(append(b, `],"others":`...), int64(g.Others), 10)
		b = append(b, '}')
	}
	return append(b, ']')
}

func (c *Column) appendHead(b []byte) []byte {
	b = appendQuoted(append(b, `{"name":`...), c.Name)
	b = orNull(append(b, `,"component":`...), c.Component)
	b = orNull(append(b, `,"score":`...), c.Score)
	b = appendQuoted(append(b, `,"kind":`...), c.Kind.String())
	b = orNull(append(b, `,"unit":`...), c.Unit)
	return append(b, `,"values":[`...)
}

// appendTotals writes what follows the cells of a column.
func (s *Table) appendTotals(b []byte, c *Column) []byte {
	b = append(b, `],"totals":[`...)
	for g := range s.Groups {
		b = s.appendWhole(appendComma(b, g), c, g)
	}
	b = s.appendAll(append(b, `],"total":`...), c)
	b = s.appendLacking(append(b, `,"lacking":`...), c)
	b = s.appendUnpriced(append(b, `,"unpriced":`...), c)
	b = append(b, `,"without":`...)
	if c.without == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, *c.without, 10)
	}
	b = strconv.AppendBool(append(b, `,"shared":`...), c.supply.isShared(len(s.Groups)))
	b = s.appendCompared(append(b, `,"compared":`...), c)
	return append(b, '}')
}

// pieceCells is about how many cells are written at a time.
const pieceCells = 1 << 13

// sendValues writes all cells: of many that is nearly all of the work, so that all
// processors take part while the first are sent. Each has two pieces in hand.
func (s *Table) sendValues(l *lines, c *Column) error {
	step := max(1, pieceCells/s.bucketCount())
	pieces := (len(s.Groups) + step - 1) / step
	writers := min(runtime.GOMAXPROCS(0), 8, pieces)
	if writers < 2 {
		l.buf = s.appendGroupValues(l.buf, c, 0, len(s.Groups))
		return l.flush(tablePiece)
	}
	if err := l.flush(0); err != nil {
		return err
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	defer wait.Wait()
	defer close(stop)
	ready, free := make([]chan []byte, writers), make([]chan []byte, writers)
	for i := range writers {
		ready[i], free[i] = make(chan []byte, 2), make(chan []byte, 2) // which is all of its pieces
		free[i] <- nil
		free[i] <- nil
		wait.Go(func() {
			for n := i; n < pieces; n += writers {
				select {
				case b := <-free[i]:
					ready[i] <- s.appendGroupValues(appendComma(b[:0], n), c, n*step, min((n+1)*step, len(s.Groups)))
				case <-stop:
					return
				}
			}
		})
	}
	for n := range pieces {
		piece := <-ready[n%writers]
		if err := l.send(piece); err != nil {
			return err
		}
		free[n%writers] <- piece
	}
	return nil
}

// appendGroupValues writes the cells of some groups.
func (s *Table) appendGroupValues(b []byte, c *Column, from, to int) []byte {
	sums := c.isExact() && c.cells.over == nil && !slices.Contains(s.unknown, true)
	at := from * s.bucketCount()
	for g := from; g < to; g++ {
		untold := s.hasNoFigure(c, g)
		for bucket := range s.bucketCount() {
			switch {
			case untold || s.isUnknown(c, g, bucket):
				b = append(b, "null"...)
			case sums:
				b = c.appendSum(b, c.cells.sum[at])
			default:
				b = c.appendFigure(b, &c.cells, at)
			}
			b = append(b, ',')
			at++
		}
	}
	if to > from {
		b = b[:len(b)-1]
	}
	return b
}

// appendAll writes the total of all groups.
func (s *Table) appendAll(b []byte, c *Column) []byte {
	if c.total == nil || c.apart && len(s.Groups) > 1 || len(s.Groups) == 1 && s.hasNoFigure(c, 0) ||
		!slices.Contains(s.unknown, false) && !c.total.hasValue(0) {
		return append(b, "null"...)
	}
	return c.appendFigure(b, c.total, 0)
}

// appendLacking writes what has no score, of all buckets together: the total and
// by group; null when nothing lacks it, or there is none to lack.
func (s *Table) appendLacking(b []byte, c *Column) []byte {
	if c.total == nil || c.total.lacking == nil || c.total.lacking[0].IsZero() {
		return append(b, "null"...)
	}
	b = c.appendSum(append(b, `{"total":`...), c.total.lacking[0])
	b = append(b, `,"totals":[`...)
	for g := range s.Groups {
		b = c.appendSum(appendComma(b, g), c.whole.lacking[g])
	}
	return append(b, "]}"...)
}

// appendUnpriced writes what of components has no price, of all buckets together;
// null for what has no prices.
func (s *Table) appendUnpriced(b []byte, c *Column) []byte {
	if c.Kind != Worth {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, l := range c.total.worth.Lacking {
		of := Column{Kind: Total}
		if l.Kind != record.Total {
			of = Column{Kind: Rate}.withTimeUnit(c.hours)
		}
		b = appendQuoted(append(appendComma(b, i), `{"component":`...), l.Component)
		b = orNull(append(b, `,"unit":`...), of.Unit)
		b = append(of.appendSum(append(b, `,"total":`...), l.Used[0]), '}')
	}
	return append(b, ']')
}

// appendCompared writes the other window, by group.
func (s *Table) appendCompared(b []byte, c *Column) []byte {
	if c.before == nil {
		return append(b, "null"...)
	}
	for _, part := range []struct {
		head string
		cell func([]byte, *Column, int) []byte
	}{{`{"before":[`, s.appendBefore}, {`],"difference":[`, s.appendDifference}, {`],"relative":[`, s.appendRelative}} {
		b = append(b, part.head...)
		for g := range s.Groups {
			b = part.cell(appendComma(b, g), c, g)
		}
	}
	return append(b, "]}"...)
}
