package health

// Acknowledgement is what operators know of a finding and cannot or will not mend, such as
// a day whose log is lost.
type Acknowledgement struct {
	ID, About string // those of the finding
	Count     int64  // the finding is of so many at most; more is news
	Reason    string
}

// applyAcknowledgements makes notices of the warnings that are acknowledged. What is critical stays so.
func (j *judge) applyAcknowledgements() {
	for i := range j.found {
		f := &j.found[i]
		for _, a := range j.Acknowledged {
			if f.Severity == Warning && f.ID == a.ID && f.About == a.About && f.Count <= a.Count {
				f.Severity = Notice
				f.What += "; acknowledged: " + a.Reason
				if f.Public != "" {
					f.Public += "; acknowledged: " + a.Reason
				}
			}
		}
	}
}
