package identity

import (
	"crypto/tls"
	"slices"
)

// AgentProtocol is the protocol of TLS (ALPN) of a connection by which an agent dials in at
// an aggregator. After the handshake the aggregator sends [AgentWelcome] and the roles turn:
// what follows is gRPC, in which the agent serves. The agent sends nothing before the
// aggregator does.
const AgentProtocol = "bursar-agent/1"

// AgentWelcome is the byte by which an aggregator says that the agent's certificate is
// accepted: in TLS 1.3 the handshake of the agent is over before it was looked at.
const AgentWelcome = 'w'

// DialIn returns the configuration by which an agent dials in at any aggregator.
func (k *Keys) DialIn() *tls.Config {
	c := k.Client(Aggregator, "")
	c.NextProtos = []string{AgentProtocol}
	return c
}

// OpenToAgents is as Open, and lets agents in, and only them, that offer [AgentProtocol].
func (k *Keys) OpenToAgents() *tls.Config {
	c, agents := k.Open(), k.serverConfig(tls.VersionTLS13, tls.RequireAndVerifyClientCert, requireRole("", Agent), AgentProtocol)
	others := c.GetConfigForClient
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Contains(hello.SupportedProtos, AgentProtocol) {
			return agents.GetConfigForClient(hello)
		}
		return others(hello)
	}
	return c
}
