package enrol

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
)

// The spaces of the documents.
const (
	tokenSpace = "tokens"
	agentSpace = "joined-agents"
	nodeSpace  = "joined-nodes"
)

// format is the version of the stored values.
const format = 1

// Bounds of tokens.
const (
	MinLife   = time.Minute
	MaxLife   = 7 * 24 * time.Hour
	listedFor = 30 * 24 * time.Hour // how long an ended token is listed
	maxCount  = 10_000
)

// View reads documents of the replicated state.
type View interface {
	Document(space, key string) ([]byte, bool, error)
	Documents(space, prefix string, yield func(store.Document) error) error
}

// Write commits a command.
type Write func(ctx context.Context, c store.Command) (any, error)

// Token is a token as it is stored: not its secret, but the hash of it.
type Token struct {
	Format    int             `json:"format"`
	ID        string          `json:"id"`
	Hash      identity.Digest `json:"hash"`
	Role      identity.Role   `json:"role"`
	Name      string          `json:"name,omitempty"` // the only name that it gives; "": any new one
	By        string          `json:"by"`
	Made      time.Time       `json:"made"`
	Expires   time.Time       `json:"expires"`
	Revoked   time.Time       `json:"revoked,omitzero"`
	RevokedBy string          `json:"revoked_by,omitempty"`
	Use       *Use            `json:"use,omitempty"`
}

// Use says what a token was exchanged for.
type Use struct {
	At   time.Time       `json:"at"`
	Name string          `json:"name"`
	From string          `json:"from"` // the address from which it came
	Key  identity.Digest `json:"key"`  // of the machine's public key
}

// State is how a token stands, in a word.
func (t *Token) State(now time.Time) string {
	switch {
	case !t.Revoked.IsZero():
		return "revoked"
	case t.Use != nil:
		return "used"
	case now.After(t.Expires):
		return "expired"
	}
	return "unused"
}

// The reasons for which a token, or a change, is refused.
var (
	ErrUnknown = errors.New("token not found")
	ErrJoins   = errors.New("this token is for a machine that joins")
	ErrExpired = errors.New("the token has expired")
	ErrUsed    = errors.New("the token was used already, by another key")
	ErrSpent   = errors.New("the token was used already, and its machine was removed or replaced since: make another with bursar token create")
	ErrRevoked = errors.New("the token was revoked")
	ErrRole    = errors.New("the token is for another role")
	ErrName    = errors.New("the name cannot be taken")
	ErrRequest = errors.New("the request is not valid")
	ErrChanged = errors.New("something else was committed at the same moment; try again")
)

// Wanted says what token to make.
type Wanted struct {
	Role identity.Role
	Name string
	Life time.Duration
	By   string
}

// Create makes a token of the authority. Its secret is nowhere but in what is returned.
func Create(ctx context.Context, v View, write Write, w Wanted, authority identity.Digest, now time.Time) (join.Token, error) {
	t := join.New(authority)
	switch {
	case w.Role != identity.Agent && w.Role != identity.Aggregator:
		return t, fmt.Errorf("%w: a token is for the role agent or aggregator, not %q", ErrRequest, w.Role)
	case w.Life < MinLife || w.Life > MaxLife:
		return t, fmt.Errorf("%w: a token lasts for 1m to 7d", ErrRequest)
	case w.Name != "" && identity.CheckName(w.Name) != nil:
		return t, fmt.Errorf("%w: %w", ErrRequest, identity.CheckName(w.Name))
	}
	list, err := Tokens(v)
	if err != nil {
		return t, err
	}
	c := &store.DocumentCommand{}
	for i := range list {
		if now.Sub(list[i].Expires) > listedFor {
			c.Sets = append(c.Sets, store.Document{Space: tokenSpace, Key: list[i].ID})
		}
	}
	if len(list)-len(c.Sets) >= maxCount {
		return t, fmt.Errorf("%w: there are %d tokens already", ErrRequest, maxCount)
	}
	next := Token{
		Format: format, ID: t.Name(), Hash: sha256.Sum256(t.Secret[:]), Role: w.Role, Name: w.Name, By: w.By,
		Made: now.UTC(), Expires: now.Add(w.Life).UTC(),
	}
	c.If = append(c.If, store.Document{Space: tokenSpace, Key: next.ID})
	c.Sets = append(c.Sets, encodeDocument(tokenSpace, next.ID, &next))
	return t, commitDocuments(ctx, write, c)
}

// Tokens lists the tokens, the newest first.
func Tokens(v View) ([]Token, error) {
	list, err := listValues[Token](v, tokenSpace)
	slices.SortFunc(list, func(a, b Token) int { return b.Made.Compare(a.Made) })
	return list, err
}

// Revoke makes a token of either kind worthless. A certificate that it has given stays
// valid.
func Revoke(ctx context.Context, v View, write Write, id, by string, now time.Time) error {
	t, raw, err := findValue[Token](v, tokenSpace, id)
	if err != nil {
		return err
	}
	if t == nil {
		return revokeBearer(ctx, v, write, id, by, now)
	}
	if !t.Revoked.IsZero() {
		return nil
	}
	t.Revoked, t.RevokedBy = now.UTC(), by
	return commitDocuments(ctx, write, &store.DocumentCommand{
		If: []store.Document{{Space: tokenSpace, Key: id, Value: raw}}, Sets: []store.Document{encodeDocument(tokenSpace, id, t)},
	})
}

func errorIf(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

// findUsable returns the stored token of a secret, or why it is refused. Who does not have the
// secret learns nothing of the token.
func findUsable(v View, t join.Token, key identity.Digest, now time.Time) (*Token, []byte, error) {
	stored, raw, err := findValue[Token](v, tokenSpace, t.Name())
	if err != nil {
		return nil, nil, err
	}
	hash := identity.Digest(sha256.Sum256(t.Secret[:]))
	switch {
	case stored == nil || subtle.ConstantTimeCompare(hash[:], stored.Hash[:]) != 1:
		return nil, nil, ErrUnknown
	case !stored.Revoked.IsZero():
		return nil, nil, ErrRevoked
	case stored.Use != nil && stored.Use.Key != key:
		return nil, nil, ErrUsed
	case now.After(stored.Expires):
		return nil, nil, ErrExpired
	}
	return stored, raw, nil
}

// encodeDocument makes the document of a value that is stored.
func encodeDocument(space, key string, value any) store.Document {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("enrol: encode: %v", err)) // strings, times and numbers cannot fail
	}
	return store.Document{Space: space, Key: key, Value: raw}
}

// findValue returns a stored value and its bytes; nil when there is none.
func findValue[T any](v View, space, key string) (*T, []byte, error) {
	raw, ok, err := v.Document(space, key)
	if err != nil || !ok {
		return nil, nil, err
	}
	value, err := decodeValue[T](space, key, raw)
	return value, raw, err
}

func decodeValue[T any](space, key string, raw []byte) (*T, error) {
	value := new(T)
	var version struct {
		Format int `json:"format"`
	}
	if err := errors.Join(json.Unmarshal(raw, &version), json.Unmarshal(raw, value)); err != nil {
		return nil, fmt.Errorf("%s %s: %w", space, key, err)
	}
	if version.Format != format {
		return nil, fmt.Errorf("%s %s: format %d, and this program knows %d", space, key, version.Format, format)
	}
	return value, nil
}

// listValues lists the values of a space.
func listValues[T any](v View, space string) (list []T, err error) {
	err = v.Documents(space, "", func(d store.Document) error {
		value, err := decodeValue[T](space, d.Key, d.Value)
		if err == nil {
			list = append(list, *value)
		}
		return err
	})
	return list, err
}

// commitDocuments writes a command whose conditions must hold.
func commitDocuments(ctx context.Context, write Write, c *store.DocumentCommand) error {
	result, err := write(ctx, c)
	if err != nil {
		return err
	}
	if r, ok := result.(store.DocumentResult); !ok || !r.Done {
		return ErrChanged
	}
	return nil
}
