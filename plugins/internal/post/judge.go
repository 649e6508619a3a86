package post

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Judge says what an answer means.
//
// An answer of 500, 502 or 504 may come from someone between us and a receiver that
// has taken the post, and 409 says of a key that it is at work: these are not known.
// All are posted again with the same key.
func (r *Receiver) Judge(answer *http.Response, text []byte, now time.Time) sdk.Result {
	code := answer.StatusCode
	said := r.answerText(code, text)
	switch {
	case code >= 200 && code <= 299:
		return sdk.Result{Outcome: sdk.Done, Message: said, Reference: r.referenceOf(answer.Header)}
	case code >= 300 && code <= 399:
		return sdk.Result{Outcome: sdk.Rejected, Message: fmt.Sprintf("%s; it redirects%s, which is not followed: set url to where posts are taken", said, redirectTarget(answer))}
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		return sdk.Result{Outcome: sdk.Retry, Message: said, RetryAfter: retryAfter(answer.Header.Get("Retry-After"), now)}
	case code == http.StatusConflict, code >= 500:
		return sdk.Result{Outcome: sdk.Unknown, Message: said, RetryAfter: retryAfter(answer.Header.Get("Retry-After"), now)}
	}
	return sdk.Result{Outcome: sdk.Rejected, Message: said + refusalAdvice(code)}
}

// answerText is the status and what the receiver writes.
func (r *Receiver) answerText(code int, text []byte) string {
	status := fmt.Sprintf("%d %s", code, http.StatusText(code))
	if words := r.cleanText(string(text)); words != "" {
		return status + ": " + words
	}
	return status
}

// redirectTarget is where an answer redirects to, without what may be secret.
func redirectTarget(answer *http.Response) string {
	u, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || u.Host == "" || answer.Request != nil && u.Host == answer.Request.URL.Host {
		return ""
	}
	return fmt.Sprintf(" to %q", u.Host)
}

// refusalAdvice is what to do about a refusal.
func refusalAdvice(code int) string {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return "; the receiver does not accept who posts: look at secret, headers, tls and proxy"
	case http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed:
		return "; the server takes no posts there: check url and method"
	case http.StatusRequestEntityTooLarge:
		return "; it is too large for the receiver: set a smaller batch, or ask for fewer groups or buckets"
	}
	return ""
}

// referenceOf is what the receiver called the post.
func (r *Receiver) referenceOf(h http.Header) string {
	for _, name := range []string{"Request-Id", "X-Request-Id"} {
		if id := h.Get(name); id != "" {
			return r.cleanText(id)
		}
	}
	return ""
}

// maxWait bounds what a receiver may ask for.
const maxWait = 24 * time.Hour

// retryAfter reads the header of that name: seconds or a date. What is neither is
// none.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxWait/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil || at.Before(now) {
		return 0
	}
	return min(at.Sub(now), maxWait)
}
