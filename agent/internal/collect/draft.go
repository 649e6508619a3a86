package collect

import (
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/plugins/translate"
	"github.com/bursar-accounting/bursar/proto/record"
)

// draft is an append in the making, and what to remember once it is on disk.
type draft struct {
	append buffer.Append
	counts Counts
	sent   map[string]sent
	notes  map[string]*buffer.OpenRun  // on running jobs; nil: dropped
	days   map[record.Time]bool        // in which runs ended that are sent
	found  []func(*translate.Findings) // about the records, in order
}

func newDraft(source buffer.Source) *draft {
	return &draft{append: buffer.Append{Source: source}, sent: map[string]sent{}, notes: map[string]*buffer.OpenRun{}, days: map[record.Time]bool{}}
}

func (d *draft) addNote(note buffer.OpenRun) { d.notes[note.Run] = &note }

// marker is the run of a note that names no run: the source has had jobs in
// quarantine. No job has that name.
const marker = ""

// writeNotes writes the notes into the append. A run is either opened or closed in
// it, whatever became of it on the way.
func (d *draft) writeNotes() {
	d.append.Opened, d.append.Closed = nil, nil
	for _, run := range slices.Sorted(maps.Keys(d.notes)) {
		if note := d.notes[run]; note != nil {
			d.append.Opened = append(d.append.Opened, *note)
		} else {
			d.append.Closed = append(d.append.Closed, run)
		}
	}
}

// lastSent returns what the run was last sent as.
func (t *translator) lastSent(d *draft, run string) (sent, bool) {
	if s, ok := d.sent[run]; ok {
		return s, true
	}
	return t.memory.findRun(run)
}

// runNote returns the note on a run that was sent as running.
func (t *translator) runNote(d *draft, run string) (buffer.OpenRun, bool) {
	if note, ok := d.notes[run]; ok {
		if note == nil {
			return buffer.OpenRun{}, false
		}
		return *note, true
	}
	note, ok := t.open[run]
	return note, ok
}

// dropNote drops the note on a run. What never reached the disk need not be deleted
// there.
func (t *translator) dropNote(d *draft, run string) {
	delete(d.notes, run)
	if _, ok := t.open[run]; ok {
		d.notes[run] = nil
	}
}

// noteQuarantined remembers that a run is in quarantine. A note on it no longer says what
// it was sent as, so that its return to that is no repetition after a restart
// either.
func (t *translator) noteQuarantined(d *draft, run string, s sent) {
	d.sent[run] = s
	if note, open := t.runNote(d, run); open {
		note.Digest = s.fingerprint
		d.addNote(note)
	}
	t.markQuarantine(d)
}

// markQuarantine notes that the source has had jobs in quarantine.
func (t *translator) markQuarantine(d *draft) {
	if _, marked := t.runNote(d, marker); !marked {
		d.addNote(buffer.OpenRun{Run: marker})
	}
}

// mayBeQuarantined says that a run that memory does not know may be in quarantine. Then
// its next frame settles it, which is harmless for one that is not.
func (t *translator) mayBeQuarantined(d *draft) bool {
	_, marked := t.runNote(d, marker)
	return t.amnesia || marked && t.memory.partial
}
