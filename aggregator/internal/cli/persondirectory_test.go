package cli

import (
	"strings"
	"testing"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestNamesInDirectory_EachPlaceOfAName_IsNamed(t *testing.T) {
	d := &v1.Directory{
		People:   []v1.Person{{ID: "al"}, {ID: "alpha", Groups: []string{"beta"}}},
		Projects: []v1.Project{{ID: "bell", Users: []string{"al"}, PI: "alpha"}, {ID: "beta", Groups: []string{"alpha"}}, {ID: "gamma"}},
	}
	for name, want := range map[string]string{
		"al": "a person, a user of project bell", "alpha": "a person, a group, the PI of project bell", "beta": "a group, a project", "gam": "",
	} {
		if got := strings.Join(namesInDirectory(d, name), ", "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
