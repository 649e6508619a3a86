package erasure

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Prefix begins what takes the place of a name, and the ids of substitutes.
const Prefix = accounting.ErasedPrefix

// Keys says what becomes of the values of a meta key. Values of keys that are in neither set
// are texts, in which a name is replaced where it stands as a word.
type Keys struct {
	// Users are the keys of which a value as a whole is a user.
	Users map[string]bool
	// Totals are the keys on which totals depend: nothing is replaced.
	Totals map[string]bool
	// Drop are keys that a substitute lacks.
	Drop []string
}

// NewKeys returns what becomes of values, where users, groups and hosts have these keys. Others
// name users too.
func NewKeys(user, group, host string, others ...string) *Keys {
	k := &Keys{Users: map[string]bool{}, Totals: map[string]bool{}}
	for _, key := range append([]string{user, "user_id"}, others...) {
		k.Users[key] = true
	}
	// Beside those of the directory, the keys of the sources' mappings that name groups,
	// projects and places, and what decides whether a record is counted as a job.
	for _, key := range []string{
		group, host, "group_id", "account", "department", "namespace", "pi", "project", "vo",
		"site_id", "cluster", "datacenter", "glidein_site", "node_pool", "partition", "qos", "schedd", record.PartKey,
	} {
		k.Totals[key] = true
	}
	return k
}

// Replace returns a value of a key with the replacement in the place of the name.
func (k *Keys) Replace(key, value, name, by string) string {
	switch {
	case k.Totals[key]:
	case !k.Users[key]:
		return ReplaceWord(value, name, by)
	case value == name:
		return by
	}
	return value
}

// Meta returns the meta of a substitute. The keys that are dropped are left out.
func (k *Keys) Meta(m record.Meta, name, by string) (out record.Meta) {
	for _, e := range m {
		if k.isDropped(e.Key) {
			continue
		}
		values := slices.Clone(e.Values)
		for i, v := range values {
			values[i] = k.Replace(e.Key, v, name, by)
		}
		out = append(out, record.MetaEntry{Key: e.Key, Values: values})
	}
	return out
}

// isDropped reports whether substitutes lack a key.
func (k *Keys) isDropped(key string) bool { return slices.Contains(k.Drop, key) }

// ID is the id of the substitute of a record, which follows from its id.
func ID(id string) string {
	return fmt.Sprintf(Prefix+"%x", sha256.Sum256([]byte(id)))[:len(Prefix)+32]
}
