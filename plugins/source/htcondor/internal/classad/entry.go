package classad

import (
	"strconv"
	"strings"
)

// Banner is what the last line of each entry of a history file begins with.
const Banner = "*** "

// Entry is an entry of a history file: an ad and its banner.
type Entry struct {
	Text string // of the ad

	// Kind is the first word of the banner of an epoch, such as EPOCH; "" in a history.
	Kind string
	// Offset is where the ad begins in the file, as the banner says; -1 where it does not.
	Offset int64
	// Missing says that there is no banner: the file ends within the ad.
	Missing bool

	banner string
}

// ReadEntry splits an entry into ad and banner.
func ReadEntry(text string) Entry {
	e := Entry{Text: text, Offset: -1}
	at := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	if !strings.HasPrefix(text[at:], Banner) {
		e.Missing = true
		return e
	}
	e.Text, e.banner = text[:at], text[at+len(Banner):]
	if word, rest, _ := strings.Cut(e.banner, " "); !strings.Contains(word, "=") && !strings.HasPrefix(rest, "=") {
		e.Kind = word
	}
	if n, err := strconv.ParseInt(e.Field("Offset"), 10, 64); err == nil {
		e.Offset = n
	}
	return e
}

// Field is a number of the banner, as it is written; "" where it is not there. Some
// banners have spaces around the equals sign, others have none.
func (e *Entry) Field(name string) string {
	rest := e.banner
	for {
		i := strings.Index(rest, name)
		if i < 0 {
			return ""
		}
		bounded := i == 0 || rest[i-1] == ' '
		rest = rest[i+len(name):]
		value, ok := strings.CutPrefix(strings.TrimLeft(rest, " "), "=")
		if bounded && ok {
			value, _, _ = strings.Cut(strings.TrimLeft(value, " "), " ")
			return value
		}
	}
}
