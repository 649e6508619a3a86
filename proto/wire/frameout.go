package wire

// AppendFrame appends f as a bursarv1.Frame: the bytes that the generated code
// gives. A Kind that is none of the constants gives a frame without a body, which
// no reader accepts.
func AppendFrame(b []byte, f *Frame) []byte {
	b = appendString(b, 1, f.SourceType)
	b = appendString(b, 2, f.SourceLabel)
	b = appendUint(b, 3, uint64(f.Rank))
	b = appendSint(b, 4, f.Version.Observed)
	b = appendBool(b, 5, f.Version.Ended)
	b = appendString(b, 6, f.Settles)
	if f.Kind < KindRecord || f.Kind > KindCount {
		return b
	}
	b, mark := begin(b, uint64(f.Kind))
	return end(appendBody(b, f), mark)
}

func appendBody(b []byte, f *Frame) []byte {
	switch f.Kind {
	case KindRecord:
		return AppendRecord(b, &f.Record)
	case KindStop:
		return appendSint(appendString(b, 1, f.ID), 2, int64(f.Stop))
	case KindWithdraw:
		return appendString(b, 1, f.ID)
	case KindQuarantine:
		return appendQuarantine(b, &f.Quarantine)
	case KindGap:
		b = appendSint(b, 1, int64(f.Gap.From))
		b = appendSint(b, 2, int64(f.Gap.To))
		return appendString(b, 3, f.Gap.Reason)
	case KindWatermark:
		return appendSint(b, 1, int64(f.Watermark))
	case KindCensus:
		return appendCensus(b, &f.Census)
	case KindCapacity:
		return appendComponents(appendSint(b, 1, int64(f.Capacity.From)), 2, f.Capacity.Components)
	case KindDirectory:
		return appendDirectory(b, &f.Directory)
	case KindCheckpoint:
		return appendString(b, 1, view(f.Checkpoint))
	case KindCount:
		return appendCount(b, &f.Count)
	}
	return b
}

func appendQuarantine(b []byte, q *Quarantine) []byte {
	b = appendString(b, 1, q.ID)
	b = appendString(b, 2, q.Reason)
	b = appendString(b, 3, q.Message)
	b = appendString(b, 4, q.RecordID)
	b = appendString(b, 5, view(q.Raw))
	return appendBool(b, 6, q.Truncated)
}

func appendCensus(b []byte, c *Census) []byte {
	b = appendSint(b, 1, int64(c.At))
	for i := range c.Rows {
		row := &c.Rows[i]
		var mark int
		b, mark = begin(b, 2)
		b = appendString(b, 1, row.User)
		b = appendString(b, 2, row.Queue)
		b = appendUint(b, 3, uint64(row.Running))
		b = appendUint(b, 4, uint64(row.Pending))
		b = end(b, mark)
	}
	return b
}

func appendDirectory(b []byte, d *Directory) []byte {
	for i := range d.Rows {
		row := &d.Rows[i]
		var mark int
		b, mark = begin(b, 1)
		b = appendString(b, 1, row.User)
		for _, g := range row.Groups {
			b = appendElement(b, 2, g)
		}
		b = appendString(b, 3, row.Name)
		b = appendString(b, 4, row.Address)
		b = end(b, mark)
	}
	return b
}

func appendCount(b []byte, c *Count) []byte {
	b = appendSint(b, 1, int64(c.From))
	b = appendSint(b, 2, int64(c.To))
	b = appendSint(b, 3, int64(c.At))
	for i, n := range [...]int64{c.Counted, c.Records, c.Filtered, c.Quarantined, c.Shared, c.Skipped} {
		b = appendUint(b, uint64(4+i), uint64(n))
	}
	return b
}
