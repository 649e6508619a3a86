package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
)

// formField is the field of a form that has the token of its browser.
const formField = "token"

type formKey struct{}

// withFormToken gives a browser the token that its forms carry, unless it has one: a
// cookie, so that any node takes a form of another one.
func withFormToken(w http.ResponseWriter, r *http.Request) *http.Request {
	name := access.CookieName("form", r.Host)
	cookie, err := r.Cookie(name)
	if err != nil || cookie.Value == "" {
		cookie = &http.Cookie{Name: name, Value: rand.Text(), Path: "/ui/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode} //nolint:gosec // Secure where the listener has TLS
		http.SetCookie(w, cookie)
	}
	return r.WithContext(context.WithValue(r.Context(), formKey{}, cookie.Value))
}

// formToken is the token that forms of the answer to r carry.
func formToken(r *http.Request) string {
	token, _ := r.Context().Value(formKey{}).(string)
	return token
}

// checkForm returns an error when a form, which was parsed, does not come from a page
// that its browser was given.
func checkForm(r *http.Request) error {
	if token := formToken(r); token == "" || subtle.ConstantTimeCompare([]byte(r.PostForm.Get(formField)), []byte(token)) != 1 {
		return badRequest("This form was not sent from a page of this server, or its page is too old. Send it again.")
	}
	return nil
}
