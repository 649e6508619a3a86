package commandline

import (
	"strings"

	"github.com/spf13/cobra"
)

// TwoDashes turns -option into --option, so that both may be written. It leaves
// alone -h, negative numbers, and all that stands behind "--" or is the value of
// an option.
func TwoDashes(root *cobra.Command, args []string) []string {
	out := make([]string, 0, len(args))
	value := false // this argument is the value of the option before it
	for i, a := range args {
		switch {
		case a == "--":
			return append(out, args[i:]...)
		case value:
			value = false
		case len(a) > 2 && a[0] == '-' && isLetter(a[1]) && isLetter(a[2]):
			a = "-" + a
			value = hasValue(root, a[2:])
		case len(a) > 3 && strings.HasPrefix(a, "--"):
			value = hasValue(root, a[2:])
		}
		out = append(out, a)
	}
	return out
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// hasValue reports whether the argument behind the option belongs to it.
// Options of one name take a value in all commands or in none.
func hasValue(cmd *cobra.Command, option string) bool {
	f := cmd.Flags().Lookup(option)
	if f == nil {
		f = cmd.PersistentFlags().Lookup(option)
	}
	if f != nil {
		return f.NoOptDefVal == ""
	}
	for _, sub := range cmd.Commands() {
		if hasValue(sub, option) {
			return true
		}
	}
	return false
}
