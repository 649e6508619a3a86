// Package getent reads what getent prints of users and groups.
package getent

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// ReadNames reads the names of users from lines of passwd: the GECOS field up to
// its first comma. Users without a name are left out.
func ReadNames(r io.Reader) (map[string]string, error) {
	names := map[string]string{}
	err := eachLine(r, 7, func(f []string) {
		name, _, _ := strings.Cut(f[4], ",")
		if name = strings.TrimSpace(name); name != "" {
			names[f[0]] = name
		}
	})
	return names, err
}

// ReadGroups reads the groups of users from lines of group: those that name a user
// as a member. A user's own group usually does not.
func ReadGroups(r io.Reader) (map[string][]string, error) {
	groups := map[string][]string{}
	err := eachLine(r, 4, func(f []string) {
		for user := range strings.SplitSeq(f[3], ",") {
			if user = strings.TrimSpace(user); user != "" && f[0] != "" {
				groups[user] = append(groups[user], f[0])
			}
		}
	})
	return groups, err
}

// maxLine of a group with very many members.
const maxLine = 16 << 20

// eachLine calls use with the fields of every line that has at least so many. A line
// that does not end is an error: the rest is missing.
func eachLine(r io.Reader, least int, use func([]string)) error {
	whole := &endings{r: r, last: '\n'}
	lines := bufio.NewScanner(whole)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if f := strings.Split(lines.Text(), ":"); len(f) >= least {
			use(f)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if whole.last != '\n' {
		return errors.New("the output ends within a line")
	}
	return nil
}

// endings remembers the last byte.
type endings struct {
	r    io.Reader
	last byte
}

// Read reads and remembers.
func (e *endings) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if n > 0 {
		e.last = p[n-1]
	}
	return n, err
}
