package join

import (
	"crypto/x509"
	"errors"

	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
)

// Explain says of an error of [Join] or [Way] which server was asked and what to type. line
// is the command with HOST:PORT and TOKEN, role what the token is for.
func Explain(err error, address, line, role string) error {
	if err == nil {
		return nil
	}
	do := line + "   # HOST:PORT is of api.tls_listen on an aggregator, usually port " + DefaultPort
	switch fault := client.FaultOf(err); {
	case errors.Is(err, ErrAuthority), fault == client.Unauthorized:
		do = line + "   # bursar token create -role " + role + ", on an aggregator of the cluster, prints it with a new token"
	case fault == client.InvalidCertificate:
		do = invalidCertificate(err)
	case fault == client.OtherFault:
		return err
	}
	return commandline.Refusal{Err: err, Tried: "https://" + address + ", from the command line", Do: do}
}

// invalidCertificate says what to type when the certificate of the server is not valid: now,
// or for a server.
func invalidCertificate(err error) string {
	const other = "the aggregator needs another certificate"
	if e, _ := errors.AsType[x509.CertificateInvalidError](err); e.Reason == x509.Expired { // or not yet valid
		return "date   # does the clock of this machine differ from that of the aggregator? If not, " + other + ": bursar status, on its node"
	}
	return "bursar status   # on the aggregator's node; " + other
}
