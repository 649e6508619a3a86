package commandline

import "strings"

// Refusal is an error of a connection: the error says what was asked, Tried is where and
// whence that is, Do is what to type, in which {} stands for the command.
type Refusal struct {
	Err       error
	Tried, Do string
}

// Unwrap returns the error itself.
func (r Refusal) Unwrap() error { return r.Err }

// Error is the error in one line.
func (r Refusal) Error() string { return strings.ReplaceAll(r.Err.Error(), "\n", "; ") }

// Lines are the second and the third line of a message about the error of a command.
func (r Refusal) Lines(command string) string {
	return "Tried: " + r.Tried + "\nType:  " + strings.ReplaceAll(r.Do, "{}", command)
}
