package join

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// Token lets one machine join.
type Token struct {
	ID        [8]byte
	Secret    [20]byte
	Authority identity.Digest // the fingerprint of the authority's certificate
}

// ErrToken is wrapped by the error about a text that is no token.
var ErrToken = errors.New("not a token")

// mark begins every token, and says its format.
const mark = "b1_"

// New makes a token of the authority.
func New(authority identity.Digest) Token {
	t := Token{Authority: authority}
	_, _ = rand.Read(t.ID[:]) // it never fails
	_, _ = rand.Read(t.Secret[:])
	return t
}

// Name is the token's id in words, which is no secret.
func (t Token) Name() string { return hex.EncodeToString(t.ID[:]) }

// String returns the token as [Parse] reads it.
func (t Token) String() string {
	all := append(append(t.ID[:], t.Secret[:]...), t.Authority[:]...)
	return mark + base64.RawURLEncoding.EncodeToString(all)
}

// Parse reads a token. The error wraps [ErrToken], and does not hold the text.
func Parse(text string) (t Token, err error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), mark)
	all, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if !ok || err != nil || len(all) != len(t.ID)+len(t.Secret)+len(t.Authority) {
		return t, fmt.Errorf("%w: copy the whole line that bursar token create printed; a token begins with %s", ErrToken, mark)
	}
	rest := all[copy(t.ID[:], all):]
	copy(t.Authority[:], rest[copy(t.Secret[:], rest):])
	return t, nil
}
