//go:build e2e

package packages

import "os"

// tool installs packages.
type tool interface {
	// format of the packages.
	format() string
	// prepare makes the machine one of the tool's kind.
	prepare(m *machine)
	// install installs packages, or upgrades to them.
	install(m *machine, paths []string)
	downgrade(m *machine, paths []string)
	erase(m *machine)
	// saved is what the tool appends to the name of a configuration that was
	// changed, when its package goes.
	saved() string
}

// rpm is the tool rpm. On a machine of Debian it has no data base of what is there,
// so that dependencies on the system's own packages are not looked at.
type rpm struct{}

func (rpm) format() string { return "rpm" }
func (rpm) saved() string  { return ".rpmsave" }

func (rpm) prepare(m *machine) {
	m.mustRun("rpm", "--initdb")
	if _, err := os.Stat(m.pathOf("/usr/bin/systemctl")); err != nil {
		m.t.Fatal(err)
	}
}

func (rpm) install(m *machine, paths []string) {
	m.t.Helper()
	m.mustRun("rpm", append([]string{"-U", "--nodeps"}, paths...)...)
}

func (rpm) downgrade(m *machine, paths []string) {
	m.t.Helper()
	if _, err := m.runCommand("rpm", append([]string{"-U", "--nodeps"}, paths...)...); err == nil {
		m.t.Error("rpm -U takes an older version without --oldpackage")
	}
	m.mustRun("rpm", append([]string{"-U", "--nodeps", "--oldpackage"}, paths...)...)
}

func (rpm) erase(m *machine) {
	m.t.Helper()
	m.mustRun("rpm", append([]string{"-e"}, packageNames(m.t)...)...)
}

// dnf is the tool dnf, with the dependencies on the system's own packages met by
// an empty one.
type dnf struct{}

func (dnf) format() string { return "rpm" }
func (dnf) saved() string  { return ".rpmsave" }

func (d dnf) prepare(m *machine) {
	m.t.Helper()
	m.mustRun("rpm", "--initdb")
	m.writeFile("/etc/dnf/dnf.conf", "[main]\nreposdir=/nonexistent\nplugins=0\ngpgcheck=0\nlocalpkg_gpgcheck=0\nkeepcache=0\n")
	m.mustRun("rpm", "-U", "/packages/system.rpm")
}

func (dnf) install(m *machine, paths []string) {
	m.t.Helper()
	m.mustRun("dnf", append([]string{"-y", "--releasever=9", "install"}, paths...)...)
}

func (dnf) downgrade(m *machine, paths []string) {
	m.t.Helper()
	m.mustRun("dnf", append([]string{"-y", "--releasever=9", "downgrade"}, paths...)...)
}

func (dnf) erase(m *machine) {
	m.t.Helper()
	m.mustRun("dnf", append([]string{"-y", "--releasever=9", "remove"}, packageNames(m.t)...)...)
}

// dpkg is the tool dpkg.
type dpkg struct{}

func (dpkg) format() string   { return "deb" }
func (dpkg) saved() string    { return "" }
func (dpkg) prepare(*machine) {}

func (dpkg) install(m *machine, paths []string) {
	m.t.Helper()
	m.mustRun("dpkg", append([]string{"-i"}, paths...)...)
}

func (d dpkg) downgrade(m *machine, paths []string) {
	m.t.Helper()
	d.install(m, paths)
}

func (dpkg) erase(m *machine) {
	m.t.Helper()
	m.mustRun("dpkg", append([]string{"-r"}, packageNames(m.t)...)...)
}
