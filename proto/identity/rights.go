package identity

import (
	"fmt"
	"slices"
	"strings"
)

// Rights are the roles of a client: what it may do at the REST interface. The
// zero value may do nothing.
type Rights uint8

// The roles of clients, by name.
const (
	// Monitor sees figures of the whole: metrics, status, agents and sources.
	Monitor Rights = 1 << iota
	// Read sees records and what comes of them, as far as its row filter goes.
	Read
	// Write adds records and closes them.
	Write
	// Operate deletes records, settles quarantine, imports, and gives orders to
	// agents. It includes Read and Monitor.
	Operate
	// Admin changes the cluster itself. It includes all others.
	Admin
)

// rightNames are the names, in the order of the bits.
func rightNames() []string { return []string{"monitor", "read", "write", "operate", "admin"} }

// RightNames lists the names of all roles of clients.
func RightNames() []string { return rightNames() }

// ParseRights reads names of roles with commas between them, such as
// "read,write". The error wraps [ErrIdentity].
func ParseRights(text string) (Rights, error) {
	var r Rights
	for name := range strings.SplitSeq(text, ",") {
		at := slices.Index(rightNames(), name)
		if at < 0 {
			return 0, fmt.Errorf("%w: %q is no role of a client, want some of %s", ErrIdentity, name, strings.Join(rightNames(), ", "))
		}
		if r&(1<<at) != 0 {
			return 0, fmt.Errorf("%w: duplicate role %s", ErrIdentity, name)
		}
		r |= 1 << at
	}
	return r, nil
}

// String returns the names with commas between them, as ParseRights reads them;
// "" for none.
func (r Rights) String() string {
	var names []string
	for i, name := range rightNames() {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// Whole returns r with what its roles include.
func (r Rights) Whole() Rights {
	if r&Admin != 0 {
		r |= Monitor | Read | Write | Operate
	}
	if r&Operate != 0 {
		r |= Monitor | Read
	}
	return r
}

// Any reports whether r has at least one of the roles, included ones too.
func (r Rights) Any(of Rights) bool { return r.Whole()&of != 0 }
