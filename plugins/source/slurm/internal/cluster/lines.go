package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

const maxLine = 1 << 20

// eachLine calls yield with each line of r without its newline. A line that does not
// end or is too long is an error.
func eachLine(r io.Reader, yield func(line string) error) error {
	in := bufio.NewReaderSize(r, maxLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("line %d: the output ends within it", n)
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("line %d is longer than %d bytes", n, maxLine)
		case err != nil:
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := yield(string(line[:len(line)-1])); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// splitRow splits a line at "|" into so many fields, of which the last may hold more of
// them. A line without any is no row: wrappers and -M print such.
func splitRow(line string, fields int) ([]string, bool, error) {
	parts := strings.SplitN(line, "|", fields)
	switch len(parts) {
	case fields:
		return parts, true, nil
	case 1:
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("%d fields instead of %d", len(parts), fields)
}
