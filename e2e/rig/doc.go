// Package rig starts what the end-to-end tests need beside bursar's own programs:
// a real Slurm with its accounting database, a real Nomad, a private PostgreSQL, and
// a Python that has AUDITOR's client. e2e/setup.sh installs them; everything else in this
// package is behind the build tag e2e.
//
// Every server runs below a temporary directory of its own. Slurm moreover runs in
// namespaces of its own (see DESIGN.md), so it opens no port on the machine, and
// when the test process ends, however it ends, nothing of it is left running.
//
// Errors of the rig itself are fatal for the test that asked for it.
package rig
