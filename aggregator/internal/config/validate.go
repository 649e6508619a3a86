package config

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/hcl/preflight"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/local"
	"github.com/bursar-accounting/bursar/proto/origin"
	"github.com/bursar-accounting/bursar/proto/record"
)

// validate reports all that is wrong beyond types and names of keys.
func (c *Config) validate() hcl.Diagnostics {
	var diags hcl.Diagnostics
	a := &c.Aggregator
	diags.Extend(a.validateRaft())
	diags.Extend(a.Backup.validatePath(a.DataDir))
	diags.Extend(a.API.validate(a.TLS != nil))
	diags.Extend(c.Access.validate(&a.API))
	diags.Extend(c.validateActions())
	_, more := c.fileSettings().toShared()
	diags.Extend(more)
	if a.Authority.Path != "" && a.TLS == nil {
		diags.Add(hcl.Errorf(a.Authority.Range, "authority needs TLS", "machines join over TLS; add tls { ca cert key } to the aggregator block"))
	}
	if len(c.Agents) > 0 && a.TLS == nil && a.Range != (hcl.Range{}) {
		diags.Add(hcl.Errorf(c.Agents[0].Name.Range, "agents need TLS", "agents talk to aggregators with a certificate only; add tls { ca cert key } to the aggregator block (bursar tls makes certificates)"))
	}
	for i := range c.Agents {
		if g := &c.Agents[i]; g.DialsIn && len(a.API.TLSListen) == 0 && a.Range != (hcl.Range{}) {
			diags.Add(hcl.Errorf(g.Range, "agents cannot dial in", "the agent %q dials in at the TLS listeners of the nodes, and this one has none; add tls_listen to the api block of the aggregator block", g.Name))
			break
		}
	}
	if c.AgentSRV.Value != "" && a.TLS == nil && a.Range != (hcl.Range{}) {
		diags.Add(hcl.Errorf(c.AgentSRV.Range, "agents need TLS", "agents talk to aggregators with a certificate only; add tls { ca cert key } to the aggregator block (bursar tls makes certificates)"))
	}
	return diags
}

func (a *API) validate(tls bool) hcl.Diagnostics {
	var diags hcl.Diagnostics
	if len(a.Listen)+len(a.TLSListen) == 0 {
		diags.Add(hcl.Errorf(a.Range, "nothing listens", "api has neither listen nor tls_listen"))
	}
	for _, l := range a.Listen {
		if !a.AllowPlainRemote && !local.IsLoopback(l.Host) {
			diags.Add(hcl.Errorf(l.Range, "plain listener that other machines reach", "%s has neither encryption nor certificates: whoever reaches it has the roles of access.plain_role; use tls_listen, or set allow_plain_remote = true where a proxy or a firewall protects it", l))
		}
	}
	if len(a.TLSListen) > 0 && !tls {
		diags.Add(hcl.Errorf(a.TLSListen[0].Range, "tls_listen needs TLS", "add tls { ca cert key } to the aggregator block"))
	}
	for _, h := range a.Hosts {
		if name := origin.Name(h.Value); name == "" || strings.ContainsAny(name, "/@*? ") {
			diags.Add(hcl.Errorf(h.Range, `invalid value for "hosts"`, "%q is not a name or an address; expected one like accounting.example.org", h.Value))
		}
	}
	diags.Extend(checkDuplicates(slices.Concat(a.Listen, a.TLSListen)))
	return diags
}

// checkDuplicates reports addresses that stand more than once.
func checkDuplicates(all []hcl.Address) hcl.Diagnostics {
	var diags hcl.Diagnostics
	seen := map[string]bool{}
	for _, l := range all {
		if l.Port != 0 && seen[l.String()] {
			diags.Add(hcl.Errorf(l.Range, "duplicate address", "%s is listed twice", l))
		}
		seen[l.String()] = true
	}
	return diags
}

func (m *MetricKeys) validateKeys() (diags hcl.Diagnostics) {
	for _, k := range []struct {
		name string
		key  hcl.String
	}{{"site_meta_key", m.SiteKey}, {"group_meta_key", m.GroupKey}, {"user_meta_key", m.UserKey}} {
		if k.key.Value == "" {
			continue
		}
		if wrong := record.ValidateName(k.key.Value); wrong != "" {
			diags.Add(hcl.Errorf(k.key.Range, fmt.Sprintf("invalid value for %q", k.name), "%s", wrong))
		}
	}
	return diags
}

func (a *Agent) validateAddress() (diags hcl.Diagnostics) {
	switch listens := a.AddressAt != (hcl.Range{}); {
	case listens && a.DialsIn:
		diags.Add(hcl.Errorf(a.AddressAt, "both address and dials_in", "the agent %q is connected to at its address, or dials in: remove one of the two", a.Name))
	case !listens && !a.DialsIn && a.Range != (hcl.Range{}):
		diags.Add(hcl.Errorf(a.Range, "no address", "add address = \"HOST:PORT\", where the agent %q listens, or dials_in = true, if it can only connect to the aggregators", a.Name))
	}
	if a.Address.Range != (hcl.Range{}) && (a.Address.Host == "" || a.Address.Port == 0) {
		diags.Add(hcl.Errorf(a.Address.Range, `invalid value for "address"`, "%s cannot be connected to; expected host:port", a.Address))
	}
	return diags
}

// Check reports what this machine lacks for the configuration: certificates that
// cannot be read, do not fit, or are someone else's.
func (c *Config) Check() hcl.Diagnostics {
	t := c.Aggregator.TLS
	diags := t.Check()
	diags.Extend(c.Aggregator.Backup.checkFolder())
	if a := c.Aggregator.Authority; a.Path != "" {
		if _, err := identity.LoadAuthority(a.Path); err != nil {
			diags.Add(hcl.Errorf(a.Range, "the authority cannot be used", "%v: the folder has ca.pem and ca.key, which the daemon's user can read", err))
		}
	}
	if t == nil || diags.HasErrors() || (len(c.Agents) == 0 && c.AgentSRV.Value == "" && c.Aggregator.Authority.Path == "" && !c.Aggregator.Listens()) {
		return diags
	}
	keys, err := identity.Load(c.Files())
	if err != nil {
		diags.Add(hcl.Errorf(t.Range, "certificates cannot be used", "%v", err))
		return diags
	}
	id, err := keys.Identity()
	if err == nil && id.Role != identity.Aggregator {
		err = fmt.Errorf("it is the certificate of %s, and agents accept aggregators only", id)
	}
	if err == nil && c.Aggregator.Listens() && id.Name != c.Aggregator.Name.Value {
		err = fmt.Errorf("it is the certificate of %s, and this node is %q; the other nodes know it by that name", id, c.Aggregator.Name.Value)
	}
	if err != nil {
		diags.Add(hcl.Errorf(t.Cert.Range, "wrong certificate", "%s: %v; bursar tls cert create -role aggregator makes one", t.Cert, err))
	}
	if left := time.Until(keys.Expires()); left < 0 {
		diags.Add(hcl.Warnf(t.Cert.Range, "certificate has expired", "%s ended on %s", t.Cert, keys.Expires().UTC().Format(time.DateOnly)))
	}
	return diags
}

// CheckMachine says which folder, also that of backups, cannot be used and which port is
// taken, unless by the daemon of this configuration. Runtime is as in [Aggregator.SocketPath].
func (c *Config) CheckMachine(ctx context.Context, runtime string) hcl.Diagnostics {
	a := &c.Aggregator
	var diags hcl.Diagnostics
	if a.Backup != nil && !a.Backup.isThere() { // Check looks into one that is
		diags.Extend(preflight.Folder(a.Backup.Path.Path, a.Backup.Path.Range))
	}
	if preflight.IsRunning(ctx, a.SocketPath(runtime)) {
		return diags
	}
	diags.Extend(preflight.Folder(a.DataDir.Path, a.DataDir.Range))
	if a.API.Socket.Path != "" {
		diags.Extend(preflight.Folder(filepath.Dir(a.API.Socket.Path), a.API.Socket.Range))
	}
	addresses := slices.Concat(a.API.Listen, a.API.TLSListen)
	if a.Listens() {
		addresses = append(addresses, *a.Raft.Listen)
	}
	for i := range addresses {
		diags.Extend(preflight.Listen(addresses[i].String(), cmp.Or(addresses[i].Range, a.DataDir.Range)))
	}
	return diags
}

// Files are where the node's certificates are; zero without TLS.
func (c *Config) Files() identity.Files {
	t := c.Aggregator.TLS
	if t == nil {
		return identity.Files{}
	}
	return identity.Files{CA: t.CA.Path, Cert: t.Cert.Path, Key: t.Key.Path}
}
