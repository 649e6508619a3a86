package hcl

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// ValueDecoder is implemented, on the pointer, by types that read themselves
// from an evaluated value. The value is known, not null, and may carry marks.
// The range is where it is written. The decoder puts the attribute's name and
// place before the error, which says what is wrong and what was expected. In
// the error, text that came from file() or env() is replaced by "***".
type ValueDecoder interface {
	DecodeHCL(v cty.Value, r Range) error
}

// sensitive marks a value that came from file() or env(), and masked is shown of it.
type sensitive struct{}

const masked = "***"

// readText reads a text by parse.
func readText[T any](v cty.Value, parse func(string) (T, error)) (out T, err error) {
	s, err := stringOf(v)
	if err != nil {
		return out, err
	}
	return parse(s)
}

// stringOf gives a string, number or boolean as text, without marks.
func stringOf(v cty.Value) (string, error) {
	v, _ = v.Unmark()
	s, err := convert.Convert(v, cty.String)
	if err != nil || s.IsNull() || !s.IsKnown() {
		return "", fmt.Errorf("expected a string, not %s", friendlyName(v.Type()))
	}
	s, _ = s.Unmark()
	return s.AsString(), nil
}

// friendlyName names a type as its writer thinks of it.
func friendlyName(t cty.Type) string {
	switch {
	case t == cty.String:
		return "a string"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case t.IsListType() || t.IsTupleType() || t.IsSetType():
		return "a list"
	case t.IsMapType() || t.IsObjectType():
		return "a map"
	case t == cty.DynamicPseudoType:
		return "null"
	}
	return t.FriendlyName()
}

// List is several values, or one that is written without brackets.
type List[T any] []T

func (List[T]) orOne() {}

// Strings are several texts, or one that is written without brackets.
type Strings = List[string]

// Absolute is an absolute path, or empty.
type Absolute string

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Absolute) UnmarshalText(text []byte) error {
	if len(text) > 0 && !filepath.IsAbs(string(text)) {
		return fmt.Errorf("%q is not an absolute path", clipText(string(text)))
	}
	*a = Absolute(text)
	return nil
}

// Duration is a length of time, never negative, written as ParseDuration reads it.
type Duration struct {
	time.Duration
	// Range is where it is written; zero for a default.
	Range Range
}

// DecodeHCL implements ValueDecoder.
func (d *Duration) DecodeHCL(v cty.Value, r Range) error {
	parsed, err := readText(v, ParseDuration)
	if err == nil {
		*d = Duration{Duration: parsed, Range: r}
	}
	return err
}

// Size is a number of bytes, never negative, written as ParseSize reads it.
type Size struct {
	// Bytes is the size.
	Bytes int64
	// Range is where it is written; zero for a default.
	Range Range
}

// DecodeHCL implements ValueDecoder.
func (s *Size) DecodeHCL(v cty.Value, r Range) error {
	n, err := readText(v, ParseSize)
	if err == nil {
		*s = Size{Bytes: n, Range: r}
	}
	return err
}

// String is the size in the largest binary unit that shows it exactly, such as "8GiB".
func (s Size) String() string {
	n, unit := s.Bytes, ""
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, u
	}
	if unit == "" {
		unit = "B"
	}
	return strconv.FormatInt(n, 10) + unit
}

// Address is a host and a port, written as "host:port". The host may be empty (all
// interfaces), a name, an IPv4 address or an IPv6 address in brackets; the port is a
// number from 0 (the system picks one) to 65535.
type Address struct {
	// Host is a name or an IP address without brackets; empty for all interfaces.
	Host string
	// Port is from 0 to 65535.
	Port int
	// Range is where it is written; zero for a default.
	Range Range
}

// DecodeHCL implements ValueDecoder.
func (a *Address) DecodeHCL(v cty.Value, r Range) error {
	parsed, err := readText(v, parseAddress)
	if err == nil {
		*a, a.Range = parsed, r
	}
	return err
}

// IsZero says whether no address is set.
func (a Address) IsZero() bool { return a.Host == "" && a.Port == 0 }

// String is "host:port" as net.Dial and net.Listen take it; "" when none is set.
func (a Address) String() string {
	if a.IsZero() && a.Range == (Range{}) {
		return ""
	}
	return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
}

// Time is an instant, written in RFC 3339 such as "2024-01-01T00:00:00Z", or as a day,
// which is its first moment in UTC.
type Time struct {
	time.Time
	// Range is where it is written; zero for a default.
	Range Range
}

// DecodeHCL implements ValueDecoder.
func (t *Time) DecodeHCL(v cty.Value, r Range) error {
	s, err := stringOf(v)
	if err != nil {
		return err
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if parsed, err := time.Parse(layout, s); err == nil {
			*t = Time{Time: parsed, Range: r}
			return nil
		}
	}
	return fmt.Errorf("%q is not a time; expected RFC 3339, like \"2024-01-01T00:00:00Z\", or a day, like \"2024-01-01\"", clipText(s))
}

// Path names a file or directory. A relative path counts from the directory of
// the file that it is written in.
type Path struct {
	// Path is what to open: absolute, or relative to the working directory when
	// the configuration file was named relatively.
	Path string
	// Range is where it is written; zero for a default.
	Range Range
}

// DecodeHCL implements ValueDecoder.
func (p *Path) DecodeHCL(v cty.Value, r Range) error {
	s, err := stringOf(v)
	switch {
	case err != nil:
		return err
	case s == "":
		return errors.New("a path cannot be empty")
	case strings.ContainsRune(s, 0):
		return errors.New("a path cannot contain a NUL byte")
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(filepath.Dir(r.Filename), s)
	}
	*p = Path{Path: s, Range: r}
	return nil
}

// String is the path.
func (p Path) String() string { return p.Path }

// String is a text that remembers where it is written and
// whether it came from file() or env().
type String struct {
	// Value is the text.
	Value string
	// Sensitive is set when the text came from file() or env().
	Sensitive bool
	// Range is where it is written; zero for a default.
	Range Range
}

// DecodeHCL implements ValueDecoder.
func (s *String) DecodeHCL(v cty.Value, r Range) error {
	text, err := stringOf(v)
	if err != nil {
		return err
	}
	*s = String{Value: text, Sensitive: v.HasMark(sensitive{}), Range: r}
	return nil
}

// String is the text, or "***" when it is sensitive. Use Value for the text itself.
func (s String) String() string {
	if s.Sensitive {
		return masked
	}
	return s.Value
}

// GoString is String, quoted.
func (s String) GoString() string { return strconv.Quote(s.String()) }

// LogValue implements slog.LogValuer.
func (s String) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText gives the text, or "***" when it is sensitive.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
