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
	b = appendBool(b, 7, f.IDReused)
	if f.Kind < KindRecord || f.Kind > KindCount {
		return b
	}
	b, mark := beginMessage(b, uint64(f.Kind))
	if f.Kind == KindRecord {
		return endMessage(AppendRecord(b, &f.Record), mark)
	}
	rare := *f // a copy, so that frames with records stay on the stack
	if f.Kind == KindCapacity {
		b = appendFields(b, &rare.Capacity.From, componentField{nil, f.Capacity.Components})
	} else {
		b = appendFields(b, rare.bodyFields()...)
	}
	return endMessage(b, mark)
}
