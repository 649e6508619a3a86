package sacct

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxField is how many bytes of a field are kept.
const MaxField = 256 << 10

// Row is one row of sacct's output.
type Row struct {
	Fields []string // in the order of the columns
	Cut    int      // the column that was longer than MaxField and was cut; -1 for none
}

// Rows splits sacct's output into rows. Memory is bounded by one row.
type Rows struct {
	in        *bufio.Reader
	delimiter []byte
	columns   int

	row    []byte
	ends   []int // of the fields in row
	search int   // where the next delimiter may begin
	cut    int
	number int
}

// NewRows reads rows of so many columns, each ended by delimiter.
func NewRows(r io.Reader, delimiter string, columns int) *Rows {
	return &Rows{in: bufio.NewReaderSize(r, 256<<10), delimiter: []byte(delimiter), columns: columns}
}

// Next returns the next row, which stays valid, and io.EOF after the last one.
// Output that ends within a row, or a row with too many columns, is an error.
func (r *Rows) Next() (Row, error) {
	r.row, r.ends, r.search, r.cut = r.row[:0], r.ends[:0], 0, -1
	r.number++
	for {
		chunk, err := r.in.ReadSlice('\n')
		if len(chunk) == 0 && errors.Is(err, io.EOF) {
			return r.endOfRows()
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return Row{}, fmt.Errorf("row %d: %w", r.number, err)
		}
		if done, err := r.addChunk(chunk); done || err != nil {
			return r.finishRow(), err
		}
	}
}

// endOfRows is the end of the output. Lines that a wrapper printed are no row.
func (r *Rows) endOfRows() (Row, error) {
	if len(r.row) == 0 || (r.number == 1 && len(r.ends) == 0 && r.row[len(r.row)-1] == '\n') {
		return Row{}, io.EOF
	}
	return Row{}, fmt.Errorf("row %d: sacct's output ends after %d of %d columns", r.number, len(r.ends), r.columns)
}

// addChunk adds a piece of output, which ends with a newline if it can, and says
// whether the row is complete.
func (r *Rows) addChunk(chunk []byte) (bool, error) {
	r.row = append(r.row, chunk...)
	for len(r.ends) < r.columns {
		i := bytes.Index(r.row[r.search:], r.delimiter)
		if i < 0 {
			r.search = max(r.search, len(r.row)-len(r.delimiter)+1)
			r.dropExcess()
			return false, nil
		}
		r.ends = append(r.ends, r.search+i)
		r.search += i + len(r.delimiter)
	}
	switch rest := r.row[r.search:]; {
	case len(rest) == 0:
		return false, nil
	case len(rest) == 1 && rest[0] == '\n':
		return true, nil
	}
	return false, fmt.Errorf("row %d: sacct's output has more than the %d columns that were asked for", r.number, r.columns)
}

// dropExcess drops what a field has beyond MaxField, except what may be the
// beginning of a delimiter.
func (r *Rows) dropExcess() {
	start := 0
	if n := len(r.ends); n > 0 {
		start = r.ends[n-1] + len(r.delimiter)
	}
	tail := len(r.delimiter) - 1
	if len(r.row)-start <= MaxField+tail {
		return
	}
	r.cut = len(r.ends)
	end := len(r.row) - tail
	r.row = append(r.row[:start+MaxField], r.row[end:]...)
	r.search = start + MaxField
}

func (r *Rows) finishRow() Row {
	if len(r.ends) < r.columns {
		return Row{}
	}
	text, fields, start := string(r.row), make([]string, r.columns), 0
	for i, end := range r.ends {
		fields[i] = text[start:min(end, start+MaxField)]
		if end-start > MaxField {
			r.cut = i
		}
		start = end + len(r.delimiter)
	}
	// What a wrapper prints before sacct's first row is no part of it.
	if i := strings.LastIndexByte(fields[0], '\n'); i >= 0 {
		fields[0] = fields[0][i+1:]
	}
	return Row{Fields: fields, Cut: r.cut}
}
