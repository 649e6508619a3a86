package buffer

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// What the values of the file look like. All numbers are big-endian.

// encodeState gives first, last and bytes (8 bytes each) and the digest.
func (s *state) encodeState() []byte {
	v := binary.BigEndian.AppendUint64(nil, s.first)
	v = binary.BigEndian.AppendUint64(v, s.last)
	v = binary.BigEndian.AppendUint64(v, uint64(s.bytes))
	return append(v, s.digest[:]...)
}

func parseHead(v []byte) (state, error) {
	var s state
	if len(v) != 24+len(s.digest) {
		return s, fmt.Errorf("%w: a head of %d bytes", ErrFormat, len(v))
	}
	s.first = binary.BigEndian.Uint64(v)
	s.last = binary.BigEndian.Uint64(v[8:])
	s.bytes = int64(binary.BigEndian.Uint64(v[16:]))
	copy(s.digest[:], v[24:])
	if s.first == 0 || s.last == math.MaxUint64 || s.first > s.last+1 || s.bytes < 0 {
		return state{}, fmt.Errorf("%w: a head with the frames %d to %d in %d bytes", ErrFormat, s.first, s.last, s.bytes)
	}
	return s, nil
}

// encodeAck gives the epoch, the frame and the time in microseconds.
func encodeAck(a Ack) []byte {
	v := append([]byte(nil), a.Epoch[:]...)
	v = binary.BigEndian.AppendUint64(v, a.Through)
	return binary.BigEndian.AppendUint64(v, uint64(a.At.UnixMicro()))
}

func parseAck(v []byte) (Ack, bool) {
	var a Ack
	if len(v) != len(a.Epoch)+16 {
		return a, false
	}
	copy(a.Epoch[:], v)
	a.Through = binary.BigEndian.Uint64(v[16:])
	a.At = time.UnixMicro(int64(binary.BigEndian.Uint64(v[24:]))).UTC()
	return a, true
}

// encodeRewind gives the microseconds to step back and for whom.
func encodeRewind(back time.Duration, cluster string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(back.Microseconds())), cluster...)
}

func parseRewind(v []byte) (back time.Duration, cluster string, ok bool) {
	if len(v) < 8 {
		return 0, "", false
	}
	n := binary.BigEndian.Uint64(v)
	if n > uint64(math.MaxInt64/time.Microsecond) {
		return 0, "", false
	}
	return time.Duration(n) * time.Microsecond, string(v[8:]), true
}

// encodeNote gives the digest and the record's id.
func encodeNote(o OpenRun) []byte {
	return append(binary.BigEndian.AppendUint64(nil, o.Digest), o.Record...)
}

func parseNote(run string, v []byte) (OpenRun, bool) {
	if len(v) < 8 {
		return OpenRun{}, false
	}
	return OpenRun{Run: run, Record: string(v[8:]), Digest: binary.BigEndian.Uint64(v)}, true
}

// parseClock reads what [Clock.bytes] wrote; nothing is a clock that has not run.
func parseClock(v []byte) (int64, error) {
	if v == nil {
		return 0, nil
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("%w: a clock of %d bytes", ErrFormat, len(v))
	}
	return int64(binary.BigEndian.Uint64(v)), nil
}

// writtenAt is when a stored chunk was appended; [record.None] when value is none.
func writtenAt(value []byte) record.Time {
	if len(value) < 8 {
		return record.None
	}
	return record.Time(binary.BigEndian.Uint64(value))
}

func sequenceKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func openKey(s Source, run string) []byte { return append(append(s.storageKey(), 0), run...) }

func queueKey(s Source, cluster string) []byte { return append(append(s.storageKey(), 0), cluster...) }
