package accounting

import (
	"cmp"
	"fmt"
)

// isMeasured reports whether the value of a column was. Grid Engine writes 0 for what it
// has no value of: accounting(5) says that fields of rusage may be 0 depending on the
// operating system, and a run that ends before the first sample, or whose host is
// lost, has none of the samples.
//
// The error names a column that tells and cannot be read.
func (l *Line) isMeasured(column int) (bool, error) {
	if yes, err := l.anyAbove(column); yes || err != nil {
		return yes, err
	}
	switch column {
	case ruMaxrss, ruIxrss, ruIsmrss, ruIdrss, ruIsrss, maxvmem, maxrss, maxpss:
		return false, nil // nothing runs without memory
	case mem, io, iow, ioops:
		return l.anyAbove(mem, io, maxvmem, maxrss, maxpss) // the other samples
	case ruUtime, ruStime, ruMinflt, cpu:
		return l.anyAbove(ruUtime, ruStime, ruMaxrss, ruMinflt, cpu) // nothing runs without a page fault
	}
	return true, nil
}

// anyAbove reports whether one of the columns has a number above 0.
func (l *Line) anyAbove(columns ...int) (yes bool, unsure error) {
	for _, c := range columns {
		s := l.fields[c]
		if s == "" || s == none {
			continue
		}
		switch f, err := parseDecimal(s); {
		case err != nil:
			unsure = cmp.Or(unsure, fmt.Errorf("column %s: %w", Name(c), err))
		case f > 0:
			return true, nil
		}
	}
	return false, unsure
}
