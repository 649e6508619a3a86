package v1

import (
	"cmp"
	"strings"
)

// AmountUnit is the unit of an amount of a component, by the names that our sources and
// AUDITOR's collectors give them; empty of what is counted, such as cores, and of names
// that a site gave.
func AmountUnit(component string) string {
	switch component {
	case "Memory", "MemoryUsed", "MemoryMax", "GPUMemory", "GPUMemoryUsed", "Disk":
		return "MiB"
	case "TotalCPU", "UserCPU", "SystemCPU", "naive_cpu_time", "TotalGPU":
		return "s"
	case "Energy", "joules":
		return "J"
	case "MHz":
		return "MHz"
	}
	return ""
}

// UsageUnit is the unit of what was used of a component: of a rate in a unit of time, hour
// or second, such as core-hours, GPU-hours and MiB-hours; of a total, which has none,
// that of its amount, such as CPU-seconds and GPU-seconds.
func UsageUnit(component, time string) string {
	unit := AmountUnit(component)
	switch {
	case time == "" && component == "TotalGPU":
		return "GPU-seconds"
	case time == "" && unit == "s":
		return "CPU-seconds"
	case time == "":
		return unit
	}
	switch kind, _, _ := strings.Cut(component, ":"); kind { // GPUs:a100 are GPUs
	case "Cores":
		unit = "core"
	case "GPUs":
		unit = "GPU"
	}
	return cmp.Or(unit, strings.TrimSuffix(component, "s")) + "-" + time + "s"
}

// UnitText is the unit of the measure for people: empty of numbers without one.
func (m *Measure) UnitText() string {
	component, unit := string(m.Component), string(m.Unit)
	switch {
	case m.Kind == "worth" || m.Kind == "capacity" && unit != "hour" && unit != "second":
		return unit
	case m.Kind == "capacity":
		_, component, _ = strings.Cut(m.Name, "*")
		component = cmp.Or(component, "Cores")
	case component == "" && unit != "":
		return unit + "s"
	case component == "" || m.Score != "" && unit == "":
		return ""
	case m.Score != "":
		return string(m.Score) + "-" + unit + "s"
	}
	return UsageUnit(component, unit)
}

// PerText is what the price is for, for people: a core-hour, a CPU-second, a J; "unit" of
// a total without a unit.
func (p *Price) PerText() string {
	if unit := EnergyUnit(p.Component); unit != "" && p.Per == "unit" {
		return unit
	}
	time := p.Per
	if time == "unit" {
		time = ""
	}
	return cmp.Or(strings.TrimSuffix(UsageUnit(p.Component, time), "s"), p.Per)
}

// EnergyOf takes what lacks a power or a CO2 factor apart, as an answer about a price of energy
// or of CO2 names it: the energy of Cores, the co2 of energy.
func EnergyOf(component string) (measure, of string, is bool) {
	measure, of, is = strings.Cut(component, " of ")
	return measure, of, is && (measure == "energy" || measure == "co2")
}

// UnitText is the unit of what has no price for people.
func (u *MeasureUnpriced) UnitText() string {
	if _, of, is := EnergyOf(u.Component); is {
		return (&MeasureUnpriced{Component: of, Unit: u.Unit}).UnitText()
	}
	return cmp.Or(EnergyUnit(u.Component), UsageUnit(u.Component, string(u.Unit)))
}

// EnergyUnit is the unit of the measures that may have a price beside components; empty of others.
func EnergyUnit(measure string) string {
	switch measure {
	case "energy":
		return "kWh"
	case "co2":
		return "kg CO2e"
	}
	return ""
}

// LackingUnit is the unit of what is not in the measure, since it has no score or no
// capacity, for people; of a utilization in the unit of time that was asked for.
func (m *Measure) LackingUnit(time string) string {
	if m.Component != "" {
		return UsageUnit(string(m.Component), string(m.Unit))
	}
	_, component, _ := strings.Cut(m.Name, "*")
	if component == "su" {
		return "service units"
	}
	return UsageUnit(cmp.Or(component, "Cores"), time)
}
