package enrol

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
	"github.com/bursar-accounting/bursar/proto/record"
)

// The spaces of the tokens of the API.
const (
	bearerSpace = "api-tokens"
	usedSpace   = "api-tokens-used"
)

// bearerMark begins every token of the API, and says its format.
const bearerMark = "bt1_"

// MaxBearerLife is how long a token of the API lasts at most.
const MaxBearerLife = 366 * 24 * time.Hour

// Scope is what a token may do.
type Scope struct {
	Roles string `json:"roles"` // as "read,write"
	// Rows, when there are any, are the only records: one of them must hold whole.
	Rows []map[string][]string `json:"rows,omitempty"`
	// Person, when not empty, sees the records that the directory gives that person, and
	// no others.
	Person string `json:"person,omitempty"`
	// Pseudonyms shows pseudonyms in the place of the names of persons.
	Pseudonyms bool `json:"pseudonyms,omitempty"`
}

// Rights are the roles; none where a later version wrote some that are not known here.
func (s *Scope) Rights() identity.Rights {
	rights, err := identity.ParseRights(s.Roles)
	if err != nil {
		return 0
	}
	return rights
}

// checkFields says what is wrong with a scope.
func (s *Scope) checkFields() error {
	rights, err := identity.ParseRights(s.Roles)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrRequest, err)
	case s.Pseudonyms && s.Person != "":
		return fmt.Errorf("%w: pseudonyms and a person exclude each other: who sees the records of one person knows the name", ErrRequest)
	case s.Pseudonyms && rights != identity.Read:
		return fmt.Errorf("%w: pseudonyms go with the role read alone; %s shows names or changes them", ErrRequest, rights)
	case s.Person != "" && len(s.Rows) > 0:
		return fmt.Errorf("%w: rows and a person exclude each other: name one of them", ErrRequest)
	case len(s.Person) > maxText:
		return fmt.Errorf("%w: the person is longer than %d bytes", ErrRequest, maxText)
	}
	for _, row := range s.Rows {
		if len(row) == 0 {
			return fmt.Errorf("%w: a row filter without keys shows no record", ErrRequest)
		}
		for key, values := range row {
			if wrong := record.ValidateName(key); wrong != "" || len(values) == 0 {
				return fmt.Errorf("%w: the row filter needs a key and values, such as group_id=atlas: %q %s", ErrRequest, key, wrong)
			}
		}
	}
	return nil
}

// maxText bounds names.
const maxText = 200

// Bearer is a token of the API as it is stored: not its secret, but the hash of it.
type Bearer struct {
	Format    int             `json:"format"`
	ID        string          `json:"id"`
	Hash      identity.Digest `json:"hash"`
	Name      string          `json:"name,omitempty"` // for people
	Scope     Scope           `json:"scope"`
	By        string          `json:"by"`
	Made      time.Time       `json:"made"`
	Expires   time.Time       `json:"expires"`
	Revoked   time.Time       `json:"revoked,omitzero"`
	RevokedBy string          `json:"revoked_by,omitempty"`
}

// BearerUse says when a token of the API was used last, about.
type BearerUse struct {
	Format int       `json:"format"`
	At     time.Time `json:"at"`
	From   string    `json:"from"`
}

// State is how a token stands, in a word.
func (b *Bearer) State(now time.Time) string {
	switch {
	case !b.Revoked.IsZero():
		return "revoked"
	case now.After(b.Expires):
		return "expired"
	}
	return "valid"
}

// Who names who brings the token, for logs and for what is stored about who did something.
func (b *Bearer) Who() string {
	if b.Name == "" {
		return "token/" + b.ID
	}
	return "token/" + b.ID + " (" + b.Name + ")"
}

// NewBearer says what token of the API to make.
type NewBearer struct {
	Name  string
	Scope Scope
	Life  time.Duration
	By    string
}

// newSecret makes the text of a token, its id, and the hash under which it is stored.
func newSecret(mark string) (text, id string, hash identity.Digest) {
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // it never fails
	id = hex.EncodeToString(raw[:])
	text = mark + id + "_" + rand.Text()
	return text, id, sha256.Sum256([]byte(text))
}

// secretID is the id in the text of a token; false when it is none.
func secretID(mark, text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, mark)
	id, secret, both := strings.Cut(rest, "_")
	return id, ok && both && len(id) == 16 && secret != ""
}

// CreateBearer makes a token of the API, and returns its text, which is nowhere else.
func CreateBearer(ctx context.Context, v View, write Write, w NewBearer, now time.Time) (string, *Bearer, error) {
	switch err := w.Scope.checkFields(); {
	case err != nil:
		return "", nil, err
	case w.Life < MinLife || w.Life > MaxBearerLife:
		return "", nil, fmt.Errorf("%w: a token of the API lasts for 1m to 366d", ErrRequest)
	case len(w.Name) > maxText:
		return "", nil, fmt.Errorf("%w: the name is longer than %d bytes", ErrRequest, maxText)
	}
	list, err := Bearers(v)
	if err != nil {
		return "", nil, err
	}
	c := &store.DocumentCommand{}
	for i := range list {
		if now.Sub(list[i].Expires) > listedFor {
			c.Sets = append(c.Sets, store.Document{Space: bearerSpace, Key: list[i].ID}, store.Document{Space: usedSpace, Key: list[i].ID})
		}
	}
	if len(list)-len(c.Sets)/2 >= maxCount {
		return "", nil, fmt.Errorf("%w: there are %d tokens already", ErrRequest, maxCount)
	}
	text, id, hash := newSecret(bearerMark)
	b := &Bearer{
		Format: format, ID: id, Hash: hash, Name: w.Name, Scope: w.Scope, By: w.By, Made: now.UTC(), Expires: now.Add(w.Life).UTC(),
	}
	c.If = append(c.If, store.Document{Space: bearerSpace, Key: id})
	c.Sets = append(c.Sets, encodeDocument(bearerSpace, id, b))
	return text, b, commitDocuments(ctx, write, c)
}

// Bearers lists the tokens of the API, the newest first.
func Bearers(v View) ([]Bearer, error) {
	list, err := listValues[Bearer](v, bearerSpace)
	slices.SortFunc(list, func(a, b Bearer) int { return b.Made.Compare(a.Made) })
	return list, err
}

// UsedBearer is the last use of a token of the API that was noted; nil: none was.
func UsedBearer(v View, id string) (*BearerUse, error) {
	use, _, err := findValue[BearerUse](v, usedSpace, id)
	return use, err
}

// FindBearer returns the token of the API of that text, or why it is refused. Who does not
// have the secret learns nothing of the token. No error holds the text.
func FindBearer(v View, text string, now time.Time) (*Bearer, error) {
	id, ok := secretID(bearerMark, text)
	if _, err := join.Parse(text); err == nil {
		return nil, ErrJoins
	} else if !ok {
		return nil, fmt.Errorf("%w: a token of the API begins with %s", ErrUnknown, bearerMark)
	}
	b, _, err := findValue[Bearer](v, bearerSpace, id)
	if err != nil {
		return nil, err
	}
	hash := identity.Digest(sha256.Sum256([]byte(text)))
	if b == nil || subtle.ConstantTimeCompare(hash[:], b.Hash[:]) != 1 {
		return nil, ErrUnknown
	}
	return b.checkValid(now)
}

// IsRefusal reports whether an error of [FindBearer] says that the token is not good.
func IsRefusal(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, ErrJoins) || errors.Is(err, ErrRevoked) || errors.Is(err, ErrExpired)
}

// SessionBearer returns the token of the API whose session it is, or why it is refused now.
func SessionBearer(v View, s *Session, now time.Time) (*Bearer, error) {
	b, _, err := findValue[Bearer](v, bearerSpace, s.Token)
	if err != nil || b == nil {
		return nil, errors.Join(err, errorIf(b == nil, ErrUnknown))
	}
	return b.checkValid(now)
}

// checkValid returns the token where it is good now, or why it is refused.
func (b *Bearer) checkValid(now time.Time) (*Bearer, error) {
	switch {
	case !b.Revoked.IsZero():
		return nil, ErrRevoked
	case now.After(b.Expires):
		return nil, ErrExpired
	}
	return b, nil
}

// NoteUses notes the last uses of tokens of the API, by id. Of a token that is gone none
// is noted.
func NoteUses(ctx context.Context, v View, write Write, uses map[string]BearerUse) error {
	c := &store.DocumentCommand{}
	for id, use := range uses {
		_, raw, err := findValue[Bearer](v, bearerSpace, id)
		if err != nil {
			return err
		}
		old, _, err := findValue[BearerUse](v, usedSpace, id)
		if err != nil {
			return err
		}
		if raw == nil || old != nil && !use.At.After(old.At) {
			continue
		}
		use.Format = format
		c.If = append(c.If, store.Document{Space: bearerSpace, Key: id, Value: raw})
		c.Sets = append(c.Sets, encodeDocument(usedSpace, id, &use))
	}
	if len(c.Sets) == 0 {
		return nil
	}
	return commitDocuments(ctx, write, c)
}

// revokeBearer makes a token of the API worthless at once; [ErrUnknown] where there is none.
func revokeBearer(ctx context.Context, v View, write Write, id, by string, now time.Time) error {
	b, raw, err := findValue[Bearer](v, bearerSpace, id)
	if err != nil || b == nil {
		return errors.Join(err, errorIf(b == nil, ErrUnknown))
	}
	if !b.Revoked.IsZero() {
		return nil
	}
	b.Revoked, b.RevokedBy = now.UTC(), by
	return commitDocuments(ctx, write, &store.DocumentCommand{
		If: []store.Document{{Space: bearerSpace, Key: id, Value: raw}}, Sets: []store.Document{encodeDocument(bearerSpace, id, b)},
	})
}
