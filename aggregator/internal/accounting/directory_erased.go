package accounting

import "strings"

// ErasedPrefix begins what takes the place of a user's name that was erased.
const ErasedPrefix = "erased-"

// ErasedUser is what takes the place of a user's name: a code of letters and digits. A
// project that is not "" stays that of the usage, whatever the directory says of its users.
func ErasedUser(code, project string) string {
	if project == "" {
		return ErasedPrefix + code
	}
	return ErasedPrefix + code + "." + project
}

// erasedProject is the project of [ErasedUser].
func erasedProject(user string) (string, bool) {
	rest, erased := strings.CutPrefix(user, ErasedPrefix)
	if !erased {
		return "", false
	}
	_, project, found := strings.Cut(rest, ".")
	return project, found && project != ""
}
