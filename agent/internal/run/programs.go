package run

import (
	"strings"

	"github.com/bursar-accounting/bursar/agent/internal/programs"
	"github.com/bursar-accounting/bursar/agent/internal/serve"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// programAdmitter implements serve.ProgramAdmitter.
type programAdmitter struct{ runner *programs.Runner }

// Admit implements serve.ProgramAdmitter.
func (e programAdmitter) Admit(errand *bursarv1.Errand, by string) (serve.Permit, error) {
	p, err := e.runner.Admit(errand, by)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// currentRules are what actions may run by the present configuration, and where it is.
func (a *Agent) currentRules() (programs.Rules, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.config.Rules(), strings.Join(a.opt.Paths, ", ")
}
