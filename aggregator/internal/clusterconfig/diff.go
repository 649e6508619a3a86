package clusterconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/hcl"
)

// Difference is one thing that the files of a node and the cluster's
// configuration do not agree in.
type Difference struct {
	// Block is the name of the block, such as agent "head1".
	Block string
	// At is where the files say it, as file:line; "" when only the cluster does.
	At string
	// Text says what differs, for people.
	Text string
}

// String is one line for people.
func (d Difference) String() string {
	line := d.Block + " " + d.Text
	if d.At == "" {
		return line
	}
	return d.At + ": " + line
}

// Diff returns where files and cluster differ, in the order of their blocks.
func Diff(files, cluster []hcl.Member) []Difference { return diffMembers(files, cluster, "", "") }

// diffMembers compares what stands in the block of that name, which is at. Blocks within a block
// may stand in any order, and that order counts only where nothing else differs.
func diffMembers(files, cluster []hcl.Member, within, at string) (list []Difference) {
	ours, theirs := sortedMembers(files), sortedMembers(cluster)
	for len(ours) > 0 || len(theirs) > 0 {
		c := 0
		switch {
		case len(ours) == 0:
			c = 1
		case len(theirs) == 0:
			c = -1
		default:
			c = compareMembers(ours[0], theirs[0])
		}
		var here, there *hcl.Member
		if c <= 0 {
			here, ours = &ours[0], ours[1:]
		}
		if c >= 0 {
			there, theirs = &theirs[0], theirs[1:]
		}
		list = append(list, diffMember(here, there, within, at)...)
	}
	if len(list) == 0 && !slices.EqualFunc(blocksOf(files), blocksOf(cluster), func(a, b hcl.Member) bool { return compareMembers(a, b) == 0 }) {
		list = []Difference{{strings.TrimSpace(within), at, "has its blocks in another order than in the cluster"}}
	}
	return list
}

// diffMember compares what has the same name; nil is not there.
func diffMember(here, there *hcl.Member, within, at string) []Difference {
	one := cmp.Or(here, there)
	switch name := within + one.Header(); {
	case one.Value != nil:
		a, b := &hcl.Member{}, &hcl.Member{}
		if here != nil {
			a, at = here, placeOf(here.Range)
		}
		if there != nil {
			b = there
		}
		if bytes.Equal(a.Value, b.Value) {
			return nil
		}
		return []Difference{{strings.TrimSpace(within), at, fmt.Sprintf("has %s = %s in these files and %s in the cluster", one.Name, writtenForm(a.Value), writtenForm(b.Value))}}
	case there == nil:
		return []Difference{{name, placeOf(here.Range), "stands in these files only: " + summaryOf(here)}}
	case here == nil:
		return []Difference{{name, "", "stands in the cluster's configuration only: " + summaryOf(there)}}
	default:
		return diffMembers(here.Members, there.Members, name+" ", placeOf(here.Range))
	}
}

func blocksOf(list []hcl.Member) []hcl.Member {
	return slices.DeleteFunc(slices.Clone(list), func(m hcl.Member) bool { return m.Value != nil })
}

func placeOf(r hcl.Range) string { return r.Filename + ":" + strconv.Itoa(r.Start.Line) }

func sortedMembers(list []hcl.Member) []hcl.Member {
	return slices.SortedStableFunc(slices.Values(list), compareMembers)
}

// compareMembers orders values before blocks, and these by type and labels.
func compareMembers(a, b hcl.Member) int {
	if (a.Value == nil) != (b.Value == nil) {
		if a.Value != nil {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.Labels, b.Labels))
}

// maxWritten bounds what is shown of a value.
const maxWritten = 400

// writtenForm is a value as it would stand in a file.
func writtenForm(raw json.RawMessage) string {
	if raw == nil {
		return "nothing"
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		text = fmt.Sprintf("%q", text)
	} else {
		text = string(raw)
	}
	if len(text) <= maxWritten {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxWritten], ""), len(text))
}

// summaryOf says what stands in a block, in one line.
func summaryOf(b *hcl.Member) string {
	var parts []string
	for i := range b.Members {
		m := &b.Members[i]
		if m.Value != nil {
			parts = append(parts, m.Name+" = "+writtenForm(m.Value))
		} else {
			parts = append(parts, m.Header()+" { "+summaryOf(m)+" }")
		}
	}
	if len(parts) == 0 {
		return "empty"
	}
	return strings.Join(parts, ", ")
}
