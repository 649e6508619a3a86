package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// widths are the bytes of a value in RowBinary by the type of its column. Texts have their
// length before them.
var widths = map[string]int{"Int8": 1, "Date": 2, "UInt32": 4, "DateTime('UTC')": 4, "Int64": 8, "UInt64": 8, decimal: 16}

// blockOf makes one block in the format Native of rows in RowBinary. A server inserts a block
// as a whole: of RowBinary it takes the rows before the point at which a request was cut off,
// and may make several blocks of what is whole.
func blockOf(columns []column, rows []byte) ([]byte, error) {
	values, nulls := make([][]byte, len(columns)), make([][]byte, len(columns))
	count, whole := uint64(0), len(rows)
	for ; len(rows) > 0; count++ {
		if count == 1 { // room for rows like the first one
			more := len(rows)/(whole-len(rows)) + 1
			for i := range values {
				values[i] = slices.Grow(values[i], more*len(values[i]))
				nulls[i] = slices.Grow(nulls[i], more*len(nulls[i]))
			}
		}
		for i := range columns {
			kind := columns[i].kind
			if kind == maybeDecimal {
				if len(rows) == 0 {
					return nil, fmt.Errorf("row %d: column %s: %w", count, columns[i].name, io.ErrUnexpectedEOF)
				}
				kind, nulls[i], rows = decimal, append(nulls[i], rows[0]), rows[1:]
				if nulls[i][count] == isNull {
					values[i] = append(values[i], make([]byte, widths[decimal])...)
					continue
				}
			}
			n, err := valueBytes(kind, rows)
			if err != nil {
				return nil, fmt.Errorf("row %d: column %s: %w", count, columns[i].name, err)
			}
			values[i] = append(values[i], rows[:n]...)
			rows = rows[n:]
		}
	}
	block := make([]byte, 0, whole+64*(len(columns)+1))
	block = binary.AppendUvarint(binary.AppendUvarint(block, uint64(len(columns))), count)
	for i, c := range columns {
		block = append(append(appendText(appendText(block, c.name), c.kind), nulls[i]...), values[i]...)
	}
	return block, nil
}

// valueBytes is how many bytes the first value of a row takes.
func valueBytes(kind string, row []byte) (int, error) {
	n, ok := widths[kind]
	if kind == "String" {
		length, size := binary.Uvarint(row)
		if size <= 0 || length > uint64(len(row)) {
			return 0, io.ErrUnexpectedEOF
		}
		n, ok = size+int(length), true
	}
	switch {
	case !ok:
		return 0, fmt.Errorf("unknown type %q", kind)
	case n > len(row):
		return 0, io.ErrUnexpectedEOF
	}
	return n, nil
}
