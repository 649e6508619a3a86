package v1

import "slices"

// Find returns the measure of a name, which belongs to the answer; nil where the answer does
// not have it, such as a component that no record has.
func (u *Usage) Find(name string) *Measure {
	i := slices.IndexFunc(u.Measures, func(m Measure) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &u.Measures[i]
}
