package hcl

import "github.com/bursar-accounting/bursar/proto/text"

// Suggest returns the candidate that is closest to name, see [text.Suggest].
func Suggest(name string, candidates []string) string { return text.Suggest(name, candidates) }

// DidYouMean is the sentence that suggests a name, see [text.DidYouMean].
func DidYouMean(name string, candidates []string) string { return text.DidYouMean(name, candidates) }
