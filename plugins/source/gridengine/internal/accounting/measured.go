package accounting

// measured reports whether the value of a column was. Grid Engine writes 0 for what it
// has no value of: accounting(5) says that fields of rusage may be 0 depending on the
// operating system, and a run that ends before the first sample, or whose host is
// lost, has none of the samples.
func (l *Line) measured(column int) bool {
	if l.above(column) {
		return true
	}
	switch column {
	case ruMaxrss, ruIxrss, ruIsmrss, ruIdrss, ruIsrss, maxvmem, maxrss, maxpss:
		return false // nothing runs without memory
	case mem, io, iow, ioops:
		return l.above(mem, io, maxvmem, maxrss, maxpss) // the other samples
	case ruUtime, ruStime, ruMinflt, cpu:
		return l.above(ruUtime, ruStime, ruMaxrss, ruMinflt, cpu) // nothing runs without a page fault
	}
	return true
}

// above reports whether one of the columns has a number above 0.
func (l *Line) above(columns ...int) bool {
	for _, c := range columns {
		if f, err := decimal(l.fields[c]); err == nil && f > 0 {
			return true
		}
	}
	return false
}
