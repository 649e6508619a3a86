package cli

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// keyRules says what an erasure does to the values of a meta key. Values of all other keys are
// texts, in which words are replaced.
type keyRules struct {
	user  map[string]bool // the value as a whole is a user
	total map[string]bool // nothing is replaced
}

// newKeyRules returns the rules for a person.
func (who *person) newKeyRules() *keyRules {
	k, keys := &keyRules{map[string]bool{}, map[string]bool{}}, &who.directory.Keys
	for _, key := range []string{who.key, keys.User, "user_id"} {
		k.user[key] = true
	}
	// Beside those of the directory, the keys of the sources' mappings that name groups,
	// projects and places, and what decides whether a record is counted as a job.
	for _, key := range []string{
		keys.Group, keys.Host, "group_id", "account", "department", "namespace", "pi", "project", "vo",
		"site_id", "cluster", "datacenter", "glidein_site", "node_pool", "partition", "qos", "schedd", record.PartKey,
	} {
		k.total[key] = true
	}
	return k
}

// replace returns a value of a key with the replacement in the place of the name.
func (k *keyRules) replace(key, value, name, by string) string {
	switch {
	case k.total[key]:
	case !k.user[key]:
		return replaceWord(value, name, by)
	case value == name:
		return by
	}
	return value
}

// hasWord reports whether the name stands in the text as a word.
func hasWord(text, name string) bool { return replaceWord(text, name, "") != text }

// replaceWord returns the text with the replacement wherever the name stands as a word, so that
// no name of which it is a part is touched: letters, digits, marks, _ and - beside it belong to
// another name, and so does a point that stands between it and one of them.
func replaceWord(text, name, by string) string {
	var out strings.Builder
	from, at := 0, 0
	for {
		i := strings.Index(text[at:], name)
		if i < 0 || name == "" {
			return out.String() + text[from:]
		}
		i += at
		end := i + len(name)
		if continuesName(text[:i], utf8.DecodeLastRuneInString, strings.TrimSuffix) || continuesName(text[end:], utf8.DecodeRuneInString, strings.TrimPrefix) {
			_, size := utf8.DecodeRuneInString(text[i:])
			at = i + size
			continue
		}
		out.WriteString(text[from:i] + by)
		from, at = end, end
	}
}

// continuesName reports whether the text beside a name belongs to the same name. next is the
// rune beside it, and trim takes a point away from that side.
func continuesName(text string, next func(string) (rune, int), trim func(text, point string) string) bool {
	r, size := next(trim(text, "."))
	return size > 0 && (r == '_' || r == '-' || r == utf8.RuneError || unicode.In(r, unicode.L, unicode.M, unicode.N))
}

// namesInDirectory lists where the directory has a name, as that of a user, a group or a project.
func namesInDirectory(d *v1.Directory, name string) (places []string) {
	isGroup := slices.ContainsFunc(d.People, func(p v1.Person) bool { return slices.Contains(p.Groups, name) }) ||
		slices.ContainsFunc(d.Projects, func(p v1.Project) bool { return slices.Contains(p.Groups, name) })
	if slices.ContainsFunc(d.People, func(p v1.Person) bool { return p.ID == name }) {
		places = append(places, "a person")
	}
	if isGroup {
		places = append(places, "a group")
	}
	for i := range d.Projects {
		p := &d.Projects[i]
		if p.ID == name {
			places = append(places, "a project")
		}
		if slices.Contains(p.Users, name) {
			places = append(places, "a user of project "+p.ID)
		}
		if string(p.PI) == name {
			places = append(places, "the PI of project "+p.ID)
		}
	}
	return places
}
