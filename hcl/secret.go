package hcl

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/zclconf/go-cty/cty"
)

// masked is what is shown instead of a secret.
const masked = "***"

// Secret is a text that is never shown: String, every verb of fmt, JSON, text
// encoding and slog give "***". It must come from file() or env(). Copies share
// the text. Two secrets are compared by Equal.
type Secret struct {
	// value is behind a function, so that printers that walk through
	// unexported fields find an address only.
	value func() string
	// Range is where it is written; zero for a default.
	Range Range
}

// NewSecret wraps a text that came from elsewhere than the configuration.
func NewSecret(s string) Secret { return Secret{value: func() string { return s }} }

// Reveal is the text itself; "" when none is set.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return s.value()
}

// IsZero says whether the secret is not set or empty.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// Equal says whether both hold the same text.
func (s Secret) Equal(o Secret) bool { return s.Reveal() == o.Reveal() }

// DecodeHCL implements ValueDecoder. A text that is written into the
// configuration itself is refused.
func (s *Secret) DecodeHCL(v cty.Value, r Range) error {
	text, err := stringOf(v)
	switch {
	case err != nil:
		return err
	case !v.HasMark(sensitive{}):
		return errors.New("a secret is not written into the configuration; use file(\"…\") or env(\"…\")")
	case text == "":
		return errors.New("the secret is empty")
	}
	*s = Secret{value: NewSecret(text).value, Range: r}
	return nil
}

// String is "***".
func (s Secret) String() string { return masked }

// GoString is "***".
func (s Secret) GoString() string { return masked }

// Format writes "***" for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, masked) }

// MarshalText gives "***".
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// MarshalJSON gives "***".
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + masked + `"`), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(masked) }
