package enrol

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
)

const userSpace = "users"

// Bounds of passwords.
const (
	MinPassword = 10
	maxPassword = 1000
)

// The reasons for which a user is refused.
var (
	ErrNoUser   = errors.New("no user has this name")
	ErrIsUser   = errors.New("there is such a user already")
	ErrPassword = errors.New("the name or the password is wrong")
)

// User is a person with a password, as it is stored.
type User struct {
	Format   int       `json:"format"`
	Name     string    `json:"name"`
	Scope    Scope     `json:"scope"`
	Password Argon2    `json:"password"`
	Changed  time.Time `json:"changed"` // sessions of before have ended
	By       string    `json:"by"`
	Made     time.Time `json:"made"`
}

// Argon2 is the argon2id hash of a password, with what it was made with.
type Argon2 struct {
	Salt    []byte `json:"salt"`
	Hash    []byte `json:"hash"`
	Time    uint32 `json:"time"`
	Memory  uint32 `json:"memory"` // KiB
	Threads uint8  `json:"threads"`
}

// hashPassword takes about 50 ms and 19 MiB.
func hashPassword(password string) Argon2 {
	a := Argon2{Salt: make([]byte, 16), Time: 2, Memory: 19 * 1024, Threads: 1}
	_, _ = rand.Read(a.Salt) // it never fails
	a.Hash = argon2.IDKey([]byte(password), a.Salt, a.Time, a.Memory, a.Threads, 32)
	return a
}

func (a *Argon2) is(password string) bool {
	if a.Time == 0 || a.Threads == 0 || len(a.Hash) == 0 {
		return false
	}
	got := argon2.IDKey([]byte(password), a.Salt, a.Time, a.Memory, a.Threads, uint32(len(a.Hash)))
	return subtle.ConstantTimeCompare(got, a.Hash) == 1
}

func checkPassword(password string) error {
	if n := len(password); n < MinPassword || n > maxPassword {
		return fmt.Errorf("%w: a password has %d to %d bytes", ErrRequest, MinPassword, maxPassword)
	}
	return nil
}

// AddUser adds a user.
func AddUser(ctx context.Context, v View, write Write, name, password, by string, scope Scope, now time.Time) error {
	switch list, err := Users(v); {
	case err != nil:
		return err
	case identity.CheckName(name) != nil:
		return fmt.Errorf("%w: %w", ErrRequest, identity.CheckName(name))
	case slices.ContainsFunc(list, func(u User) bool { return u.Name == name }):
		return fmt.Errorf("%w: %s", ErrIsUser, name)
	case len(list) >= maxCount:
		return fmt.Errorf("%w: there are %d users already", ErrRequest, maxCount)
	}
	if err := errors.Join(scope.check(), checkPassword(password)); err != nil {
		return err
	}
	u := &User{Format: format, Name: name, Scope: scope, Password: hashPassword(password), Changed: now.UTC(), By: by, Made: now.UTC()}
	return commit(ctx, write, &store.DocumentCommand{
		If: []store.Document{{Space: userSpace, Key: name}}, Sets: []store.Document{document(userSpace, name, u)},
	})
}

// SetPassword gives a user another password. The sessions of that user end.
func SetPassword(ctx context.Context, v View, write Write, name, password string, now time.Time) error {
	u, raw, err := find[User](v, userSpace, name)
	if err != nil || u == nil {
		return errors.Join(err, absent(u == nil, ErrNoUser))
	}
	if err := checkPassword(password); err != nil {
		return err
	}
	u.Password, u.Changed = hashPassword(password), now.UTC()
	return commit(ctx, write, &store.DocumentCommand{
		If: []store.Document{{Space: userSpace, Key: name, Value: raw}}, Sets: []store.Document{document(userSpace, name, u)},
	})
}

// RemoveUser takes a user away. The sessions of that user end.
func RemoveUser(ctx context.Context, v View, write Write, name string) error {
	u, raw, err := find[User](v, userSpace, name)
	if err != nil || u == nil {
		return errors.Join(err, absent(u == nil, ErrNoUser))
	}
	return commit(ctx, write, &store.DocumentCommand{
		If: []store.Document{{Space: userSpace, Key: name, Value: raw}}, Sets: []store.Document{{Space: userSpace, Key: name}},
	})
}

// Users lists the users, by name.
func Users(v View) ([]User, error) {
	list, err := all[User](v, userSpace)
	slices.SortFunc(list, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// FindUser returns a user; nil when there is none.
func FindUser(v View, name string) (*User, error) {
	u, _, err := find[User](v, userSpace, name)
	return u, err
}

// CheckPassword returns the user whose name and password these are. It takes as long where
// no user has this name.
func CheckPassword(v View, name, password string) (*User, error) {
	u, err := FindUser(v, name)
	if err != nil {
		return nil, err
	}
	if u == nil || len(password) > maxPassword {
		hashPassword("nothing")
		return nil, ErrPassword
	}
	if !u.Password.is(password) {
		return nil, ErrPassword
	}
	return u, nil
}
