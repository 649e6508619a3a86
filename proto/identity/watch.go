package identity

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// watchEvery is how often the files are looked at while no one connects.
	watchEvery = 5 * time.Second
	// patience is how long new files may be broken before that is said: they are
	// three, and replaced one after the other.
	patience = 15 * time.Second
	// warnBefore is how long before its end a certificate is warned of.
	warnBefore = 14 * 24 * time.Hour
	// warnEvery is how often.
	warnEvery = 24 * time.Hour
)

// Run follows the files until ctx ends, and says in the log what comes of them:
// that they were renewed, that they are refused, and from 14 days before that a
// certificate ends. It ends the connections given to [Keys.Follow].
func (k *Keys) Run(ctx context.Context, log *slog.Logger) error {
	w := watch{keys: k, log: log, generation: k.seenGeneration()}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		w.checkKeys(time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (k *Keys) seenGeneration() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.generation
}

// watch is what was said of the files.
type watch struct {
	keys       *Keys
	log        *slog.Logger
	generation uint64
	broken     time.Time // since when the new files are refused
	said       string    // of what is wrong with them
	warned     time.Time
}

func (w *watch) checkKeys(now time.Time) {
	problem := w.keys.Problem()
	c := w.keys.currentContent()
	if g := w.keys.seenGeneration(); g != w.generation {
		w.generation, w.warned, w.said = g, time.Time{}, ""
		w.log.Info("certificates renewed", "certificate", c.cert.Leaf.Subject.CommonName, "ends", c.cert.Leaf.NotAfter.UTC(),
			"issuer", c.cert.Leaf.Issuer.CommonName, "authorities", len(c.authorities))
	}
	w.noteRefused(problem, now)
	w.keys.sweepConnections(now, w.noteEnded)
	if now.Sub(w.warned) >= warnEvery {
		w.warnOfEndings(&c, now)
	}
}

// noteEnded says that a connection had to end.
func (w *watch) noteEnded(peer *x509.Certificate, why error) {
	name := peer.Subject.CommonName
	if id, err := Of(peer); err == nil {
		name = id.String()
	}
	w.log.Warn("a connection was ended, for the certificate of its other end is not valid any more", "peer", name, "issuer", peer.Issuer.CommonName, "error", why)
}

func (w *watch) noteRefused(problem error, now time.Time) {
	switch {
	case problem == nil:
		w.broken, w.said = time.Time{}, ""
	case w.broken.IsZero():
		w.broken = now
	case now.Sub(w.broken) >= patience && problem.Error() != w.said:
		w.said = problem.Error()
		w.log.Error("new certificates are refused, the old ones stay in use", "error", problem)
	}
}

// warnOfEndings says what ends soon. Of the authorities that counts whose certificate the
// own one is of; the others may go out by design.
func (w *watch) warnOfEndings(c *content, now time.Time) {
	for _, e := range c.listEndings() {
		left := e.at.Sub(now)
		if left > warnBefore || e.kind == kindAuthority && !e.needed {
			continue
		}
		w.warned = now
		attrs := []any{"kind", e.kind, "name", e.name, "ends", e.at.UTC(), "serial", e.serial}
		if left < 0 {
			w.log.Error("a certificate has ended; peers refuse it", attrs...)
			continue
		}
		w.log.Warn("a certificate ends soon; bursar tls cert renew makes a new one", append(attrs, "days", int(left/(24*time.Hour)))...)
	}
}

// The kinds of certificates that end.
const (
	kindCertificate = "certificate"
	kindAuthority   = "authority"
)

// ending is when a certificate ends.
type ending struct {
	kind, name, serial string
	at                 time.Time
	needed             bool // the own certificate is worth nothing without it
}

func (c *content) listEndings() []ending {
	of := func(kind string, x *x509.Certificate) ending {
		return ending{kind: kind, name: x.Subject.CommonName, serial: fmt.Sprintf("%.16x", x.SerialNumber), at: x.NotAfter, needed: true}
	}
	list := []ending{of(kindCertificate, c.cert.Leaf)}
	seen := map[string]bool{}
	for _, a := range c.authorities {
		e := of(kindAuthority, a)
		e.needed = c.cert.Leaf.CheckSignatureFrom(a) == nil
		if !seen[e.serial] {
			list = append(list, e)
		}
		seen[e.serial] = true
	}
	return list
}

// Collector returns the metric bursar_cert_expiry_seconds: how long the own
// certificate and each trusted authority still last.
func (k *Keys) Collector() prometheus.Collector {
	return &expiry{k, prometheus.NewDesc("bursar_cert_expiry_seconds",
		"How long the daemon's certificate, and each authority that it trusts, still lasts; negative after the end.", []string{"kind", "name", "serial"}, nil)}
}

type expiry struct {
	keys *Keys
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (e *expiry) Describe(out chan<- *prometheus.Desc) { out <- e.desc }

// Collect implements prometheus.Collector.
func (e *expiry) Collect(out chan<- prometheus.Metric) {
	c, now := e.keys.currentContent(), time.Now()
	for _, end := range c.listEndings() {
		out <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, end.at.Sub(now).Seconds(), end.kind, end.name, end.serial)
	}
}
