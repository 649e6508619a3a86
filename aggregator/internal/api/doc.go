// Package api serves the REST interface: AUDITOR's routes at the root, byte for
// byte where its clients depend on it, and bursar's own below /v1.
//
// AUDITOR's clients take every HTTP answer to a POST but RECORD_EXISTS for
// success and delete their copy. So on its routes a refusal for good is answered,
// and a write that cannot be committed now never is: it waits, and then the
// connection is broken off. An answer is either whole or an error: what fails
// before the first byte is a status, what fails behind it breaks the connection.
package api
