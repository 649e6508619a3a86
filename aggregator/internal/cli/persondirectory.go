package cli

import (
	"slices"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

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
